"""Set-up that the serving commands share: the extra they need, and the settings of their runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.cli.terminal.command_options import parse_assignments


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Wrap the import of an interface: a missing package becomes an error that names its extra."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if (fault.name or "suture").startswith("suture"):
            raise  # a module of Suture itself, which no extra installs
        remedy = f'pip install "suture[{extra}]"'
        raise PrerequisiteError(f"this needs the package {fault.name!r}", remedy=remedy) from fault


def require_folders(roots: Sequence[Path]) -> None:
    """Check that all of these are folders."""
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir may raise
            message = f"there is no folder at {str(root)!r}"
            raise UsageError(message, remedy="name a folder that contains projects")


def command_line_settings(assignments: list[str] | None, model: str | None) -> dict[str, object]:
    """Return the settings of the command line; each run loads the rest for its own project."""
    flags: dict[str, object] = dict(parse_assignments(assignments or ()))
    if model is not None:
        flags["model.name"] = model
    return flags
