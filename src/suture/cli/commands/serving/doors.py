"""What the commands share that start a front door: its extra, and the settings of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from suture.cli.terminal.options import parse_assignments
from suture.errors import PrerequisiteError


@contextmanager
def extra_needed(extra: str) -> Iterator[None]:
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


def flags_said(assignments: list[str] | None, model: str | None) -> dict[str, object]:
    """The settings of the command line alone: each run reads the rest anew, for its own project."""
    flags: dict[str, object] = dict(parse_assignments(assignments or ()))
    if model is not None:
        flags["model.name"] = model
    return flags
