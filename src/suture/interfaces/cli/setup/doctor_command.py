"""`suture doctor` and `suture self-check`: what is installed, and whether a heal works here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from suture.errors import PrerequisiteError, SutureError, describe_fault
from suture.interfaces.cli.terminal.command_options import Assignments, Json, Model, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    print_json,
    print_note,
    print_text,
    print_text_line,
    show_activity,
    stdout_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suture.core.settings import Settings
    from suture.sandbox import Requirement

STATE_COLUMNS, NAME_COLUMNS = 7, 28
"""Widths of the columns where each row is printed when it is known: those of the longest state and name."""
EXAMPLE_PROGRAM = "def total(prices):\n    return sum(prices) - 1\n"
EXAMPLE_TEST = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"


@handle_errors
def doctor(model: Model = None, assignments: Assignments = None, as_json: Json = False) -> None:
    """Report what is installed, what is missing, and how to get it."""
    loaded = load_command_settings(Path(), assignments, read_only=True, model__name=model)
    for note in loaded.notes:
        print_note(f"note: {note}")
    with show_activity("examining this machine"):
        from suture.api.prerequisites import examine_machine

        examined: Iterable[Requirement] = examine_machine(loaded.settings)
        if as_json or stdout_columns() is not None:
            examined = list(examined)
    print_prerequisites(examined, as_json=as_json)


def print_prerequisites(examined: Iterable[Requirement], *, as_json: bool) -> None:
    """Print the prerequisites and how to get the missing ones; exit if a needed one is missing.

    A terminal gets a table. A pipe gets each line as soon as it is known.
    """
    if as_json:
        requirements = list(examined)
        print_json([asdict(requirement) for requirement in requirements])
    else:
        requirements = _print_table(examined) if stdout_columns() is not None else _print_rows(examined)
        for requirement in requirements:
            if not requirement.ok and requirement.remedy:
                optional = "" if requirement.needed else " (optional)"
                print_text_line(f"To get {requirement.name}{optional}: {requirement.remedy}")
        for line in _render_conclusion(requirements):
            print_text_line(line)
    if not all(requirement.ok for requirement in requirements if requirement.needed):
        raise typer.Exit(PrerequisiteError.exit_code)


def _print_table(examined: Iterable[Requirement]) -> list[Requirement]:
    """Print prerequisites as a table, and return them."""
    requirements = list(examined)
    print_text(format_table([(_render_state(one), one.name, one.detail) for one in requirements]))
    return requirements


def _print_rows(examined: Iterable[Requirement]) -> list[Requirement]:
    """Print each prerequisite when it is known, and return all of them."""
    requirements = []
    for requirement in examined:
        state, name = _render_state(requirement), requirement.name
        print_text_line(f"{state:<{STATE_COLUMNS}}  {name:<{NAME_COLUMNS}}  {requirement.detail}")
        requirements.append(requirement)
    return requirements


def _render_state(requirement: Requirement) -> str:
    return "ok" if requirement.ok else "MISSING" if requirement.needed else "off"


def _render_conclusion(requirements: Sequence[Requirement]) -> list[str]:
    """Return lines that say whether everything that is needed is there, or what to do first."""
    missing = [requirement for requirement in requirements if requirement.needed and not requirement.ok]
    if not missing:
        return ["Ready."]
    first = missing[0]
    # No full stop: a remedy may end with a command to copy.
    lines = [f"First: {first.remedy or first.detail}"]
    if first.name == "model" and len(missing) == 1:
        lines.append("Without a model, `suture heal --no-model` works.")
    return lines


@handle_errors
def self_check(assignments: Assignments = None, as_json: Json = False) -> None:
    """Run `suture doctor`, then heal a small program in the sandbox, without a model.

    Exit code 0: `suture heal --no-model` works here. The program's run is not kept.
    """
    settings = load_command_settings(
        Path(), assignments, read_only=True, model__name="none", models__coder="none"
    ).settings
    with show_activity("examining this machine") as show:
        from suture.api.prerequisites import examine_machine

        requirements = list(examine_machine(settings))
        # No model was chosen: this check needs none.
        requirements = [requirement for requirement in requirements if requirement.name != "model"]
        if all(requirement.ok for requirement in requirements if requirement.needed):
            show("healing a small program, which may take 20 s")
            requirements.append(_check_heal(settings))
    print_prerequisites(requirements, as_json=as_json)


def _check_heal(settings: Settings) -> Requirement:
    """Return whether a broken program could be healed, using only the settings about where code runs."""
    from suture.api import heal, run_sync
    from suture.api.options import HealOptions
    from suture.core.records import render_reason
    from suture.core.settings import Settings
    from suture.core.temporary_folders import temporary_folder
    from suture.sandbox import Requirement

    try:
        with temporary_folder("suture-check-") as folder:
            project = folder / "shop"
            project.mkdir()
            (project / "shop.py").write_text(EXAMPLE_PROGRAM)
            (project / "test_shop.py").write_text(EXAMPLE_TEST)
            check_settings = Settings.model_validate(
                {
                    "model": {"name": "none"},
                    "sandbox": settings.sandbox,
                    "keys": settings.keys,
                    "paths": {"home": folder / "home", "cache": settings.paths.cache},
                    "certification": {"seconds": 0},  # no certificate: it would only take time
                }
            )
            options = HealOptions(test="python -m pytest -q", settings=check_settings)
            result = run_sync(heal(project, options))
    except SutureError as fault:
        return Requirement(name="heal", ok=False, detail=fault.message, remedy=fault.remedy)
    except OSError as fault:
        detail = f"the example cannot be written: {describe_fault(fault)}"
        return Requirement(name="heal", ok=False, detail=detail, remedy="free some disk space")
    if result.outcome == "healed":
        return Requirement(name="heal", ok=True, detail="a broken program was healed")
    detail = f"a broken program was not healed: {render_reason(result.reason)}"
    return Requirement(name="heal", ok=False, detail=detail, remedy="run `suture heal --debug` for details")
