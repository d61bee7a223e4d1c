"""What a benchmark's rows say in short: one line for each set, model, cap and arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from suture.errors import SutureError
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_note, print_text

if TYPE_CHECKING:
    from suture.bench.rows import Row

HEADS = ("set", "regime", "model", "cap", "arm", "tasks", "solved", "claimed", "tokens", "calls", "no number")


def print_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print them; on stderr what has no number, every time-out of the grading, and what felled the wall."""
    from suture.bench.reports.summary import shown_in_words

    lines = [_line(group) for group in _groups(rows)]
    if as_json:
        print_json([dict(zip(HEADS, line, strict=True)) for line in lines])
    elif lines:
        print_text(format_table([HEADS, *([str(cell) for cell in line] for line in lines)]))
    for name in dict.fromkeys(row.dataset for row in rows):
        if remark := shown_in_words(row for row in rows if row.dataset == name):
            print_note(f"{name}: {remark}")
    for row in rows:
        if row.fault:
            print_note(f"{row.problem} under {row.arm}: no number: {row.fault}")
        if row.felled:
            print_note(f"{row.problem} under {row.arm}: wrong, the wall fails under its code: {row.felled}")
        for step in row.steps:
            if step.grade is not None and step.grade.standing == "felled":
                print_note(f"{row.problem} under {row.arm}: wrong, {step.grade.why}")
            if step.grade is not None and step.grade.standing == "timeout":
                print_note(
                    f"{row.problem} under {row.arm}: the grading ran out of time ({step.grade.wall_s:.1f} s)"
                )


def require_a_number(rows: Sequence[Row]) -> None:
    """See that something was measured.

    Raises:
        SutureError: Not one row has a number.
    """
    if all(row.solved() is None for row in rows):
        raise SutureError(
            f"not one of {len(rows)} rows has a number",
            remedy="each says why above; suture bench run --resume measures them again",
        )


def _groups(rows: Iterable[Row]) -> Iterable[list[Row]]:
    groups: dict[tuple[str | int, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.regime, row.model, row.cap, row.arm), []).append(row)
    return groups.values()


def _line(rows: list[Row]) -> tuple[str | int, ...]:
    from suture.bench.measures.metrics import claims

    counted = [row for row in rows if row.solved() is not None]
    return (
        rows[0].dataset,
        rows[0].regime,
        rows[0].model,
        rows[0].cap,
        rows[0].arm,
        len(counted),
        sum(bool(row.solved()) for row in counted),
        sum(map(claims, counted)),
        sum(row.generated for row in counted),
        sum(row.calls for row in counted),
        len(rows) - len(counted),
    )
