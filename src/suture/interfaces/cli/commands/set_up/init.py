"""`suture init`: a commented file of settings for a project."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli.terminal.faults import reports_faults
from suture.interfaces.cli.terminal.output import answer, note
from suture.interfaces.narrative.lines import printable

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
