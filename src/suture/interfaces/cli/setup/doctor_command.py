"""`suture doctor` and `suture self-check`: what is installed, and whether a heal works here."""

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

    from suture.core.settings import Settings
    from suture.sandbox import Requirement

EXAMPLE_PROGRAM = "def total(prices):\n    return sum(prices) - 1\n"
EXAMPLE_TEST = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"


@handle_errors
def doctor(model: Model = None, assignments: Assignments = None, as_json: Json = False) -> None:
    """Report what is installed, what is missing, and how to get it."""
    from suture.api.prerequisites import examine_machine

    loaded = load_command_settings(Path(), assignments, read_only=True, model__name=model)
    for remark in loaded.notes:
        print_note(f"note: {remark}")
    print_prerequisites(list(examine_machine(loaded.settings)), as_json=as_json)


def print_prerequisites(rows: Sequence[Requirement], *, as_json: bool) -> None:
    """Print the prerequisites, and how to get the missing ones.

    Raises:
        Exit: A required prerequisite is missing.
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


def _state(row: Requirement) -> str:
    if row.ok:
        return "ok"
    return "MISSING" if row.needed else "off"


@handle_errors
def self_check(assignments: Assignments = None, as_json: Json = False) -> None:
    """Run `suture doctor`, then heal a small program in the sandbox, without a model.

    Exit code 0: `suture heal --no-model` works here. The program's run is not kept.
    """
    from suture.api.prerequisites import examine_machine

    settings = load_command_settings(
        Path(), assignments, read_only=True, model__name="none", models__coder="none"
    ).settings
    rows = list(examine_machine(settings))
    if all(row.ok for row in rows if row.needed):
        rows.append(_check_heal(settings))
    print_prerequisites(rows, as_json=as_json)


def _check_heal(settings: Settings) -> Requirement:
    """Return whether a broken program could be healed, using only the settings about where code runs."""
    from suture.api import heal, run_sync
    from suture.api.options import HealOptions
    from suture.core.settings import Settings
    from suture.sandbox import Requirement

    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "shop")
        project.mkdir()
        (project / "shop.py").write_text(EXAMPLE_PROGRAM)
        (project / "test_shop.py").write_text(EXAMPLE_TEST)
        own = Settings.model_validate(
            {
                "model": {"name": "none"},
                "sandbox": settings.sandbox,
                "keys": settings.keys,
                "paths": {"home": Path(folder, "home"), "cache": settings.paths.cache},
                "certification": {"seconds": 0},
            }
        )
        try:
            result = run_sync(heal(project, HealOptions(test="python -m pytest -q", settings=own)))
        except SutureError as fault:
            return Requirement(name="heal", ok=False, detail=fault.message, remedy=fault.remedy)
    healed = result.outcome == "healed"
    why = "a broken program was healed" if healed else f"a broken program was not healed: {result.outcome}"
    return Requirement(
        name="heal", ok=healed, detail=why, remedy="" if healed else "run `suture heal --debug` for details"
    )
