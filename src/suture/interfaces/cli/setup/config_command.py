"""`suture config`: every setting, its value and where that comes from; and one set in a file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli import COMPLETE_VARIABLE
from suture.interfaces.cli.terminal.command_options import Json, Set, load
from suture.interfaces.cli.terminal.error_reporting import reports_faults
from suture.interfaces.cli.terminal.terminal_output import answer, answer_json, note, table
from suture.interfaces.narrative.plain_text import printable

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


TEXT = """\
# Settings of Suture for this project; `suture config show` lists all, docs/settings.md explains them.
# Without `suture trust` a project's own file decides harmless things alone.

[project]
{test}

# [repair]
# candidates = 20000   # small changes that are tried, at most

# [proof]
# mutants = 12         # deliberate mistakes that the tests are tried on
"""


@reports_faults
def init(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="A project's folder.")] = Path(),
) -> None:
    """Write a suture.toml with the test command that the project's files show."""
    from suture.core.settings import new_file

    if not project.is_dir():
        raise UsageError(f"{str(project)!r} is no folder", remedy="name a project's folder")
    path = project / "suture.toml"
    if path.exists() or path.is_symlink():
        raise UsageError(f"{str(path)!r} is there already", remedy="suture config set KEY VALUE --project .")
    text = TEXT.format(test=_test_line(project))
    new_file(path, text)
    note(f"written: {path}")
    answer(printable(text))


def _test_line(project: Path) -> str:
    from suture.loop.intake.building import heal_task

    try:
        task, _ = heal_task(project)
    except (PrerequisiteError, UsageError) as fault:
        return f'# test = "COMMAND"    # {" ".join(fault.message.split())}'
    return f"test = {json.dumps(shlex.join(task.test_command), ensure_ascii=False)}"


@reports_faults
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Whose language.")],
) -> None:
    """Print a script that makes a shell complete commands and flags.

    For bash, put `eval "$(suture completion bash)"` into ~/.bashrc; zsh likewise. For fish, write it into
    ~/.config/fish/completions/suture.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # in no `__all__`

    typer.echo(get_completion_script(prog_name="suture", complete_var=COMPLETE_VARIABLE, shell=shell))
