"""`suture config`, `suture init`, `suture completion`: settings and shell completion."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli import COMPLETE_VARIABLE
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Json,
    load_command_settings,
    require_project_folder,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import format_table, print_answer, print_note, print_text
from suture.interfaces.narrative.plain_text import escape_unprintable

config_app = typer.Typer(name="config", help="Show and change settings.", no_args_is_help=True)
BASH_COMPLETION = r"""
_suture_completion() {
    # Bash splits words at colons and replaces only what follows the last one, but `local:NAME` is one value.
    local IFS=$'\n' words=("${COMP_WORDS[0]}") word before=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ $word == :* || ${words[-1]} == *: ]]; then words[-1]+=$word; else words+=("$word"); fi
    done
    word=${words[-1]}
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then before=${word%:*}:; fi
    COMPREPLY=( $( env COMP_WORDS="${words[*]}" COMP_CWORD=$(( ${#words[@]} - 1 )) \
                   COMPLETE_VARIABLE=complete_bash $1 ) )
    COMPREPLY=( "${COMPREPLY[@]#"$before"}" )
}

complete -o default -F _suture_completion suture
""".lstrip()
"""Like Typer's script, which completes nothing after a colon."""
SETTINGS_TEMPLATE = """\
# Suture's settings for this project. `suture config show` lists all settings; docs/settings.md explains them.
# Without `suture trust`, only harmless settings of a project's own file apply.

[project]
{test}

# [repair]
# candidates = 20000   # max number of small edits to try

# [certification]
# mutants = 12         # deliberate mistakes that the tests should catch
"""


@config_app.command()
@handle_errors
def show(
    project: Annotated[
        Path, Option("--project", metavar="FOLDER", help="The project whose suture.toml and .env apply.")
    ] = Path(),
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Print each setting with its value and its origin; keys are masked."""
    from suture.core.settings import render_settings

    loaded = load_command_settings(project, assignments, read_only=True)
    for note in loaded.notes:
        print_note(note)
    rows = render_settings(loaded.settings, loaded.origins)
    values = {key: {"value": value, "origin": origin} for key, value, origin in rows}
    print_answer(values, format_table(rows), as_json=as_json)


@config_app.command("set")
@handle_errors
def set_one(
    key: Annotated[str, Argument(metavar="KEY", help="A setting, such as budget.tokens.")],
    value: Annotated[str, Argument(metavar="VALUE", help="Its value.")],
    project: Annotated[
        Path | None,
        Option(
            "--project",
            metavar="FOLDER",
            help="Write to this project's suture.toml instead of your own file.",
        ),
    ] = None,
) -> None:
    """Write a setting to your own file or a project's file; the rest of the file does not change."""
    import os

    from suture.core.settings import set_value

    if project is not None:
        require_project_folder(project)
    print_note(f"written: {set_value(key, value, project=project, environ=os.environ)}")


@handle_errors
def init(
    project: Annotated[Path, Argument(metavar="PROJECT", help="The project's folder.")] = Path(),
) -> None:
    """Write a suture.toml with the test command detected from the project's files."""
    from suture.core.settings import create_settings_file

    require_project_folder(project)
    path = project / "suture.toml"
    if path.exists() or path.is_symlink():
        raise UsageError(f"{str(path)!r} exists already", remedy="suture config set KEY VALUE --project .")
    text = SETTINGS_TEMPLATE.format(test=_test_line(project))
    create_settings_file(path, text)
    print_note(f"written: {path}")
    print_text(escape_unprintable(text))


def _test_line(project: Path) -> str:
    from suture.loop.intake.heal_task import build_heal_task

    try:
        task, _ = build_heal_task(project)
    except (PrerequisiteError, UsageError) as fault:
        return f'# test = "COMMAND"    # {" ".join(fault.message.split())}'
    return f"test = {json.dumps(shlex.join(task.test_command), ensure_ascii=False)}"


@handle_errors
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(help="Your shell.")],
) -> None:
    """Print a script that completes commands and options in your shell.

    For bash, add `eval "$(suture completion bash)"` to ~/.bashrc; likewise for zsh. For fish, write the
    output to ~/.config/fish/completions/suture.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # in no `__all__`

    if shell == "bash":
        script = BASH_COMPLETION.replace("COMPLETE_VARIABLE", COMPLETE_VARIABLE).rstrip()
    else:
        script = get_completion_script(prog_name="suture", complete_var=COMPLETE_VARIABLE, shell=shell)
    typer.echo(script)
