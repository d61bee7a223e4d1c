"""A short table of a benchmark: one line for each dataset, model, cap and arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from suture.errors import SutureError
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_note, print_text

if TYPE_CHECKING:
    from suture.bench.rows import BenchmarkRow

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
