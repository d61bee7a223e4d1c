"""Progress of a run on stderr: a line for each event, and on a terminal a live view."""

from __future__ import annotations

import signal
import threading
import time
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
    from suture.search.search_records import SearchProgress

REFRESHES_PER_SECOND = 8
"""Fast enough for a clock that visibly moves."""
SILENCE_S = 9.0
"""Seconds without a line after which a line says what the run does, where there is no live view: nobody should wait
for ten seconds without a sign of life."""


class RunProgress:
    """Print a run's events; a context manager, because a terminal also gets a live view.

    The lines stay on the screen above the view. Without a terminal there are only lines.
    """

    def __init__(self, budget: BudgetSettings, detail: Detail = "brief") -> None:
        self._detail = detail
        self._narrator = ProgressNarrator()
        self._console = make_console(stderr=True)
        self._view = LiveView(budget.model_dump())
        self._live = self._new_live()
        self._drawing = threading.RLock()
        """Rich's own refresh thread could draw between a print's clearing and its writing, so this lock
        guards both."""
        self._ended = threading.Event()
        self._last_line_s = time.monotonic()
        loop = self._refresh_loop if self._console.is_terminal else self._report_loop
        self._draw_thread = threading.Thread(target=loop, daemon=True)
        self._previous_handler: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> RunProgress:
        if not self._console.is_terminal:
            if self._detail != "quiet":
                self._draw_thread.start()
        else:
            self._live.start()
            self._draw_thread.start()
            if threading.current_thread() is threading.main_thread():
                self._previous_handler = signal.signal(signal.SIGWINCH, self._resized)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGWINCH, self._previous_handler)
        self._ended.set()
        with self._drawing:
            self._live.stop()

    def _refresh_loop(self) -> None:
        while not self._ended.wait(1 / REFRESHES_PER_SECOND):
            with self._drawing:
                if self._live.is_started:
                    self._live.refresh()

    def _report_loop(self) -> None:
        while not self._ended.wait(SILENCE_S / 10):
            with self._drawing:
                if self._view.is_running and time.monotonic() - self._last_line_s > SILENCE_S:
                    self._print(f"... {self._view.status_text()}")

    def _print(self, line: str) -> None:
        self._last_line_s = time.monotonic()
        print_line(self._console, line)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the view, so that the user can be asked something."""
        with self._drawing:
            self._live.stop()
        yield
        with self._drawing:
            self._live = self._new_live()  # the old view would erase as many rows above as it had
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

    def show_reply(self, reply: int, text: str | None) -> None:
        """Show a reply while it is being written."""
        with self._drawing:
            self._view.update_reply(reply, text)

    def show_search(self, progress: SearchProgress) -> None:
        """Show how far the search for a repair has come."""
        with self._drawing:
            self._view.update_search(progress)

    def __call__(self, event: Event) -> None:
        """Print an event."""
        with self._drawing:
            self._view.update(event)
            if self._detail == "brief":
                for line in self._narrator.lines_for(event):
                    self._print(line)
            elif self._detail == "verbose":
                self._print_all_details(event)

    def _print_all_details(self, event: Event) -> None:
        line = render_event(event)
        is_ending = isinstance(
            event.payload, RunFinished | RunPaused
        )  # the command prints it with the result
        if line is not None and not is_ending:
            self._print(line)
        if isinstance(event.payload, CandidateChecked):
            self._console.print(f"  spent {self._view.spend_text(event.time_s)}", style="dim")

    def _resized(self, number: int, frame: FrameType | None) -> None:
        """Clear the extra rows that a narrower terminal made by wrapping the view's lines."""
        if not self._live.is_started:
            return
        width = max(1, self._console.width)
        wrapped = sum((cells - 1) // width for cells in self._view.widths if cells)
        row = (ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        with self._drawing:
            self._console.control(Control(*row * wrapped))
            self._live.refresh()
