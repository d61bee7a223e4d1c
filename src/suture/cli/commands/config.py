"""`suture config show`: every setting, its value, and where the value comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.cli.terminal.faults import reports_faults
from suture.cli.terminal.options import Debug, Json, Set, load
from suture.cli.terminal.output import answer, answer_json, note, table

__all__ = ["config_app"]

config_app = typer.Typer(name="config", help="What Suture is set to.", no_args_is_help=True)


@config_app.callback()
def config() -> None:
    """What Suture is set to."""


@config_app.command()
@reports_faults
def show(
    project: Annotated[
        Path, typer.Option("--project", metavar="FOLDER", help="Whose suture.toml and .env count.")
    ] = Path(),
    assignments: Set = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print each setting with its value and its origin; keys are masked."""
    from suture.settings import render_settings

    loaded = load(project, assignments, looks=True)
    for remark in loaded.notes:
        note(remark)
    rows = render_settings(loaded.settings, loaded.origins)
    if as_json:
        answer_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
    else:
        answer(table(rows))
