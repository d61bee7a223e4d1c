"""Progress on stderr while a run goes on: what just happened, and on a terminal how the run stands."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from rich.control import Control
from rich.live import Live
from rich.segment import ControlType

from suture.core.ledger import Event
from suture.core.ledger.kinds import CandidateChecked, RunFinished, RunPaused
from suture.interfaces.cli.terminal.live_view import LiveView
from suture.interfaces.cli.terminal.terminal_output import make_console, print_line
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.run_progress_text import ProgressNarrator

if TYPE_CHECKING:
    from suture.core.settings import BudgetSettings
    from suture.interfaces.cli.terminal.command_options import Detail

REFRESHES_PER_SECOND = 8
"""Often enough for a clock that is seen to move."""


class RunProgress:
    """Called with each event of a run; a context manager, because a terminal gets a live view too.

    The lines stay on the screen, above the view; without a terminal they are all there is.
    """

    def __init__(self, budget: BudgetSettings, detail: Detail = "brief") -> None:
        self._detail = detail
        self._brief = ProgressNarrator()
        self._console = make_console(stderr=True)
        self._view = LiveView(budget.model_dump())
        self._live = self._new_live()
        self._drawing = threading.RLock()
        """Rich would draw in a thread of its own, also between what a print clears and what it writes."""
        self._ended = threading.Event()
        self._drawer = threading.Thread(target=self._draw, daemon=True)
        self._before: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal:
            self._live.start()
            self._drawer.start()
            if threading.current_thread() is threading.main_thread():
                self._before = signal.signal(signal.SIGWINCH, self._resized)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGWINCH, self._before)
        self._ended.set()
        with self._drawing:
            self._live.stop()

    def _draw(self) -> None:
        while not self._ended.wait(1 / REFRESHES_PER_SECOND):
            with self._drawing:
                if self._live.is_started:
                    self._live.refresh()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the view, so that the user can be asked something."""
        with self._drawing:
            self._live.stop()
        yield
        with self._drawing:
            self._live = self._new_live()  # the old one would wipe as many rows above as it had
            if self._console.is_terminal:
                self._live.start()

    def _new_live(self) -> Live:
        return Live(
            self._view,
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def hear(self, reply: int, words: str | None) -> None:
        """Show a reply while it comes; only a terminal does."""
        with self._drawing:
            self._view.hear(reply, words)

    def __call__(self, event: Event) -> None:
        """Say what happened."""
        with self._drawing:
            self._view.tell(event)
            if self._detail == "brief":
                for line in self._brief.tell(event):
                    print_line(self._console, line)
            elif self._detail == "verbose":
                self._say_all(event)

    def _say_all(self, event: Event) -> None:
        line = render_event(event)
        told_at_the_end = isinstance(event.payload, RunFinished | RunPaused)
        if line is not None and not told_at_the_end:
            print_line(self._console, line)
        if isinstance(event.payload, CandidateChecked):
            self._console.print(f"  spent {self._view.spent(event.time_s)}", style="dim")

    def _resized(self, number: int, frame: FrameType | None) -> None:
        """A terminal that got narrower has wrapped the view's lines: clear the rows that came of it."""
        if not self._live.is_started:
            return
        width = max(1, self._console.width)
        wrapped = sum((cells - 1) // width for cells in self._view.widths if cells)
        row = (ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        with self._drawing:
            self._console.control(Control(*row * wrapped))
            self._live.refresh()
