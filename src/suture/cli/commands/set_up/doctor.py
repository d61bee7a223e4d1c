"""`suture doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Model, Set, load
from suture.cli.terminal.output import answer, answer_json, note, table
from suture.errors import PrerequisiteError
from suture.narrative.lines import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suture.api.prerequisites import Row


@reports_faults
def doctor(model: Model = None, assignments: Set = None, as_json: Json = False, debug: Debug = False) -> None:
    """Say what is there, what is missing, and how to get it."""
    from suture.api.prerequisites import examine

    loaded = load(Path(), assignments, looks=True, model__name=model)
    for remark in loaded.notes:
        note(f"note: {remark}")
    rows = list(examine(loaded.settings))
    if as_json:
        answer_json([asdict(row) for row in rows])
    else:
        tell(rows)
    if not all(row.ok for row in rows if row.needed):
        raise typer.Exit(PrerequisiteError.exit_code)


def tell(rows: Sequence[Row]) -> None:
    """Print what is there, and how to get what is not."""
    answer(table([(_state(row), row.name, row.detail) for row in rows]))
    for row in rows:
        if not row.ok and row.remedy:
            answer(one_line(f"to get {row.name}: {row.remedy}"))


def _state(row: Row) -> str:
    if row.ok:
        return "ok"
    return "MISSING" if row.needed else "off"
