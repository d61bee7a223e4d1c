"""`suture config`: every setting, its value and where that comes from; and one set in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suture.errors import UsageError
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.options import Json, Set, load
from suture.interfaces.cli.terminal.output import answer, answer_json, note, table

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
) -> None:
    """Print each setting with its value and its origin; keys are masked."""
    from suture.core.settings import render_settings

    loaded = load(project, assignments, looks=True)
    for remark in loaded.notes:
        note(remark)
    rows = render_settings(loaded.settings, loaded.origins)
    if as_json:
        answer_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
    else:
        answer(table(rows))


@config_app.command("set")
@reports_faults
def set_one(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as budget.tokens.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value.")],
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="FOLDER", help="In its suture.toml, in place of your own file."),
    ] = None,
) -> None:
    """Write a setting into your own file, or a project's; the rest of the file stays as it is."""
    import os

    from suture.core.settings import set_value

    if project is not None and not project.is_dir():
        raise UsageError(f"{str(project)!r} is no folder", remedy="name a project's folder")
    note(f"written: {set_value(key, value, project=project, environ=os.environ)}")
