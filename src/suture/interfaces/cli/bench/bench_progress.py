"""The progress of a benchmark: a bar with the remaining time on a terminal, otherwise plain lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from suture.errors import SutureError
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    make_console,
    print_json,
    print_note,
    print_text,
)

if TYPE_CHECKING:
    from suture.bench.rows import BenchmarkRow
    from suture.bench.running.benchmark_plan import BenchmarkPhase, BenchmarkProgress


LINE_INTERVAL_S = 20.0
"""Seconds between two progress lines without a terminal. Chosen by judgement; not measured."""
MINUTES_FROM_S = 90.0
"""From this many seconds on, the remaining time is shown in minutes. Chosen by judgement; not measured."""
PHASE_TEXTS: dict[BenchmarkPhase, str] = {
    "references": "grading the reference solutions",
    "controls": "checking the grader",
    "tasks": "measuring",
    "grading": "regrading",
}


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
        self._task = self._bar.add_task("preparing", total=None)
        self._phase = ""
        self._phase_started_s, self._done_before = time.monotonic(), 0
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

    def __call__(self, progress: BenchmarkProgress) -> None:
        """Show a step."""
        phase_text = PHASE_TEXTS[progress.phase]
        if progress.phase != self._phase:
            self._phase, self._printed_s = progress.phase, 0.0
            # The step that begins a phase may already be done in it; earlier ones come from a resumed benchmark.
            self._phase_started_s, self._done_before = time.monotonic(), max(0, progress.done - 1)
            if self._console.is_terminal:
                self._bar.remove_task(self._task)
                self._task = self._bar.add_task(phase_text, total=progress.total)
        if (row := progress.row) is not None and row.fault:
            self._console.print(f"{row.problem} under {row.arm}: not measured: {row.fault}")
        if self._console.is_terminal:
            self._bar.update(self._task, completed=progress.done, total=progress.total)
        elif time.monotonic() - self._printed_s >= LINE_INTERVAL_S or progress.done == progress.total:
            self._printed_s = time.monotonic()
            print_note(f"{phase_text}: {progress.done} of {progress.total}{self._time_left_text(progress)}")

    def _time_left_text(self, progress: BenchmarkProgress) -> str:
        done = progress.done - self._done_before
        if done < 1 or progress.done == progress.total:
            return ""
        left_s = (time.monotonic() - self._phase_started_s) / done * (progress.total - progress.done)
        if left_s < 1:
            return ""
        time_left = f"{left_s / 60:.0f} min" if left_s > MINUTES_FROM_S else f"{left_s:.0f} s"
        return f", about {time_left} left"


_GROUP_COLUMNS = ("set", "regime", "model", "cap", "arm")
COLUMNS = (*_GROUP_COLUMNS, "tasks", "solved", "claimed", "tokens", "calls", "no number")
_Group = tuple[str, str, str, int, str]
"""The values of the first columns, which the rows of one line share."""


def print_rows(rows: Sequence[BenchmarkRow], *, as_json: bool) -> None:
    """Print the table; list on stderr the rows without a number, grading time-outs and sandbox failures."""
    from suture.bench.reports.report_summary import render_shown_checks

    groups: dict[_Group, list[BenchmarkRow]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.regime, row.model, row.cap, row.arm), []).append(row)
    lines = [_summary_row(group, group_rows) for group, group_rows in groups.items()]
    if as_json:
        print_json([dict(zip(COLUMNS, line, strict=True)) for line in lines])
    elif lines:
        print_text(format_table([COLUMNS, *([str(cell) for cell in line] for line in lines)]))
    for name in dict.fromkeys(row.dataset for row in rows):
        if remark := render_shown_checks(row for row in rows if row.dataset == name):
            print_note(f"{name}: {remark}")
    for row in rows:
        name = f"{row.problem} under {row.arm}"
        if row.fault:
            print_note(f"{name}: no number: {row.fault}")
        if row.sandbox_failure:
            print_note(f"{name}: wrong, its code makes the sandbox fail: {row.sandbox_failure}")
        for grade in (step.grade for step in row.steps):
            if grade is not None and grade.status == "broke_sandbox":
                print_note(f"{name}: wrong, {grade.reason}")
            if grade is not None and grade.status == "timeout":
                print_note(f"{name}: the grading timed out ({grade.wall_s:.1f} s)")


def require_a_number(rows: Sequence[BenchmarkRow]) -> None:
    """Raise an error if nothing was measured."""
    if all(row.solved() is None for row in rows):
        raise SutureError(
            f"none of the {len(rows)} rows has a number",
            remedy="see the reasons above; suture bench run --resume measures them again",
        )


def _summary_row(group: _Group, rows: list[BenchmarkRow]) -> tuple[str | int, ...]:
    from suture.bench.measures.arm_metrics import claims_success

    counted = [row for row in rows if row.solved() is not None]
    return (
        *group,
        len(counted),
        sum(bool(row.solved()) for row in counted),
        sum(map(claims_success, counted)),
        sum(row.completion_tokens for row in counted),
        sum(row.calls for row in counted),
        len(rows) - len(counted),
    )
