"""Roles, moves and sources of checks that installed packages bring; a recipe names those that it wants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

from suture.errors import PrerequisiteError, UsageError
from suture.loop.recipes.schema import Helpers
from suture.records import Check, Task
from suture.roles import RepairBrief

__all__ = ["Adviser", "AskText", "CheckSource", "Extensions", "Mender", "load_extensions"]

AskText = Callable[[str], Awaitable[str]]
"""Asks the critic's model a question in words; reserved and paid from the run's budget."""
Adviser = Callable[[RepairBrief, AskText], Awaitable[Sequence[str]]]
"""A role: what it says of a candidate that is to be mended, one sentence each; the coder reads it."""
CheckSource = Callable[[Task], Iterable[Check]]
"""Tests of a task. They begin with trust 0, as those of any model do, and may earn more."""
Mender = Callable[[RepairBrief], Mapping[str, str] | None]
"""A move without a model: what it would write over a failing candidate, path -> text; `None` for nothing."""

ADVISERS, SOURCES, MENDERS = "suture.advisers", "suture.check_sources", "suture.menders"


@dataclass(frozen=True, kw_only=True)
class Extensions:
    """What a recipe wants of installed packages: name -> what the package brings."""

    advisers: Mapping[str, Adviser] = field(default_factory=dict)
    check_sources: Mapping[str, CheckSource] = field(default_factory=dict)
    menders: Mapping[str, Mender] = field(default_factory=dict)


def load_extensions(helpers: Helpers) -> Extensions:
    """Load what a recipe names; nothing is looked for where it names nothing.

    Raises:
        UsageError: No installed package brings something of this name.
        PrerequisiteError: The package that brings it does not load.
    """
    return Extensions(
        advisers=_loaded(ADVISERS, helpers.advisers),
        check_sources=_loaded(SOURCES, helpers.check_sources),
        menders=_loaded(MENDERS, helpers.menders),
    )


def _loaded(group: str, names: Sequence[str]) -> dict[str, Any]:
    brought = {point.name: point for point in entry_points(group=group)} if names else {}
    loaded: dict[str, Any] = {}
    for name in names:
        if name not in brought:
            known = ", ".join(sorted(brought)) or "none is installed"
            raise UsageError(f"no package brings {name!r} as one of {group}", remedy=f"known are: {known}")
        try:
            loaded[name] = brought[name].load()
        except Exception as fault:  # importing a package runs its code, which may raise anything
            raise PrerequisiteError(
                f"{name!r} of {group} does not load: {type(fault).__name__}: {fault}",
                remedy=f"install {brought[name].value!r} anew",
            ) from fault
    return loaded
