"""A person's candidate as the command line names it: `FILE`, or `PATH=FILE` where it is another's place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from suture.errors import UsageError

if TYPE_CHECKING:
    from suture.core.records import Task


def files_given(named: Iterable[str], task: Task, project: Path) -> Mapping[str, str]:
    """Path in the project -> text of each file.

    Args:
        named: The values of the option.
        task: What it is a candidate for.
        project: The folder that the task is about.

    Raises:
        UsageError: A file cannot be read, or its place in the project is not clear.
    """
    given: dict[str, str] = {}
    for name in named:
        path, equals, file = name.partition("=")
        source = Path(file if equals else name)
        try:
            text = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise UsageError(f"{str(source)!r} cannot be read: {fault}") from fault
        given[path if equals else _place_of(source, task, project)] = text
    return given


def _place_of(file: Path, task: Task, project: Path) -> str:
    if task.kind == "write":
        named = [path for path in task.modules if Path(path).name == file.name]
        if len(named) == 1 or not task.several:
            return (named or [task.module])[0]
    try:
        inside = file.resolve().relative_to(project.resolve()).as_posix()
    except ValueError:
        inside = ""
    alike = [path for path in task.files if Path(path).name == file.name]
    if inside in task.files:
        return inside
    if len(alike) == 1:
        return alike[0]
    raise UsageError(
        f"which file of the project is {str(file)!r}?", remedy=f"say so: PATH={file}, with its path there"
    )
