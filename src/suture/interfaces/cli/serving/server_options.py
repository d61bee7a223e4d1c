"""What the commands share that start a front door: its extra, and the settings of its runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli.terminal.command_options import parse_assignments


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Around the import of a front door.

    Args:
        extra: What is to be installed where a package is missing.

    Raises:
        PrerequisiteError: One is.
    """
    try:
        yield
    except ModuleNotFoundError as fault:
        if (fault.name or "suture").startswith("suture"):
            raise  # that is ours, and no package would bring it
        raise PrerequisiteError(
            f"this needs the package {fault.name!r}", remedy=f'pip install "suture[{extra}]"'
        ) from fault


def require_folders(roots: Sequence[Path]) -> None:
    """Refuse folders that are none, in which nothing could ever be healed.

    Raises:
        UsageError: One is not there, or is a file.
    """
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir may raise
            raise UsageError(f"there is no folder at {str(root)!r}", remedy="name a folder with projects")


def command_line_settings(assignments: list[str] | None, model: str | None) -> dict[str, object]:
    """The settings of the command line alone: each run reads the rest anew, for its own project."""
    flags: dict[str, object] = dict(parse_assignments(assignments or ()))
    if model is not None:
        flags["model.name"] = model
    return flags
