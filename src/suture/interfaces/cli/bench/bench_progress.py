"""The progress of a benchmark: a bar with the remaining time on a terminal, otherwise plain lines."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from suture.interfaces.cli.terminal.terminal_output import make_console, print_note

if TYPE_CHECKING:
    from suture.bench.running.benchmark import BenchmarkPhase, BenchmarkProgress

LINE_INTERVAL_S = 20.0
"""Seconds between two progress lines without a terminal."""
MINUTES_FROM_S = 90.0
"""From this many seconds on, the remaining time is shown in minutes."""
PHASE_TEXTS: dict[BenchmarkPhase, str] = {
    "references": "grading the reference solutions",
    "controls": "checking the grader",
    "tasks": "measuring",
    "grading": "regrading",
}
"""The phases of a benchmark as text."""


class BenchProgress:
    """Show each step of a benchmark; a context manager, because a terminal gets a progress bar."""

    def __init__(self) -> None:
        self._console = make_console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
        )
        self._line = self._bar.add_task("preparing", total=None)
        self._phase = ""
        self._first: tuple[float, int] = (time.monotonic(), 0)
        self._printed_s = 0.0

    def __enter__(self) -> BenchProgress:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def __call__(self, advance: BenchmarkProgress) -> None:
        """Show a step."""
        if advance.phase != self._phase:
            self._phase, self._first = advance.phase, (time.monotonic(), max(0, advance.done - 1))
            self._printed_s = 0.0
            if self._console.is_terminal:
                self._bar.remove_task(self._line)
                self._line = self._bar.add_task(PHASE_TEXTS[advance.phase], total=advance.total)
        if advance.row is not None and advance.row.fault:
            self._console.print(
                f"{advance.row.problem} under {advance.row.arm}: not measured: {advance.row.fault}"
            )
        if self._console.is_terminal:
            self._bar.update(self._line, completed=advance.done, total=advance.total)
        elif time.monotonic() - self._printed_s >= LINE_INTERVAL_S or advance.done == advance.total:
            self._printed_s = time.monotonic()
            print_note(
                f"{PHASE_TEXTS[advance.phase]}: {advance.done} of "
                f"{advance.total}{self._time_left_text(advance)}"
            )

    def _time_left_text(self, advance: BenchmarkProgress) -> str:
        began_s, before = self._first
        done = advance.done - before
        if done < 1 or advance.done == advance.total:
            return ""
        left_s = (time.monotonic() - began_s) / done * (advance.total - advance.done)
        if left_s < 1:
            return ""
        return (
            f", about {left_s / 60:.0f} min left"
            if left_s > MINUTES_FROM_S
            else f", about {left_s:.0f} s left"
        )
