"""Roles, moves and sources of checks that installed packages bring; a recipe names those that it wants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from suture.loop.recipes.schema import Helpers
from suture.plugins import load_plugin
from suture.records import Check, Task
from suture.roles import RepairBrief

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
        advisers=_loaded(ADVISERS, "adviser", "advisers", helpers.advisers),
        check_sources=_loaded(SOURCES, "source of checks", "check_sources", helpers.check_sources),
        menders=_loaded(MENDERS, "mender", "menders", helpers.menders),
    )


def _loaded(group: str, what: str, key: str, names: Sequence[str]) -> dict[str, Any]:
    return {name: load_plugin(group, name, what=what, where=f"helpers.{key}") for name in names}
