"""`suture doctor` and `suture self-check`: what is there, what is missing, and whether a heal works here."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suture.errors import PrerequisiteError, SutureError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, Model, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_json, print_note, print_text
from suture.interfaces.narrative.plain_text import escape_line_breaks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suture.api.prerequisites import Prerequisite
    from suture.core.settings import Settings

PROGRAM = "def total(prices):\n    return sum(prices) - 1\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"


@handle_errors
def doctor(model: Model = None, assignments: Assignments = None, as_json: Json = False) -> None:
    """Say what is there, what is missing, and how to get it."""
    from suture.api.prerequisites import examine

    loaded = load_command_settings(Path(), assignments, looks=True, model__name=model)
    for remark in loaded.notes:
        print_note(f"note: {remark}")
    tell(list(examine(loaded.settings)), as_json=as_json)


def tell(rows: Sequence[Prerequisite], *, as_json: bool) -> None:
    """Print what is there, and how to get what is not.

    Raises:
        Exit: Something is missing that is needed.
    """
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        print_text(format_table([(_state(row), row.name, row.detail) for row in rows]))
        for row in rows:
            if not row.ok and row.remedy:
                print_text(escape_line_breaks(f"to get {row.name}: {row.remedy}"))
    if not all(row.ok for row in rows if row.needed):
        raise typer.Exit(PrerequisiteError.exit_code)


def _state(row: Prerequisite) -> str:
    if row.ok:
        return "ok"
    return "MISSING" if row.needed else "off"


@handle_errors
def self_check(assignments: Assignments = None, as_json: Json = False) -> None:
    """Say what `suture doctor` says, and heal a small program in the sandbox, without a model.

    Exit code 0: `suture heal --no-model` works here. The program's run is not kept.
    """
    from suture.api.prerequisites import examine

    settings = load_command_settings(
        Path(), assignments, looks=True, model__name="none", models__coder="none"
    ).settings
    rows = list(examine(settings))
    if all(row.ok for row in rows if row.needed):
        rows.append(_healed(settings))
    tell(rows, as_json=as_json)


def _healed(settings: Settings) -> Prerequisite:
    """Whether a broken program was mended. Of the settings only those count that say where code runs."""
    from suture.api import heal, run_sync
    from suture.api.prerequisites import Prerequisite
    from suture.core.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "shop")
        project.mkdir()
        (project / "shop.py").write_text(PROGRAM)
        (project / "test_shop.py").write_text(TEST)
        own = Settings.model_validate(
            {
                "model": {"name": "none"},
                "sandbox": settings.sandbox,
                "keys": settings.keys,
                "paths": {"home": Path(folder, "home"), "cache": settings.paths.cache},
                "proof": {"seconds": 0},
            }
        )
        try:
            result = run_sync(heal(project, test="python -m pytest -q", settings=own))
        except SutureError as fault:
            return Prerequisite(name="heal", ok=False, detail=fault.message, remedy=fault.remedy)
    healed = result.outcome == "healed"
    why = "a broken program was healed" if healed else f"a broken program was not: {result.outcome}"
    return Prerequisite(
        name="heal", ok=healed, detail=why, remedy="" if healed else "suture heal --debug says more"
    )
