"""Recipes: short TOML files that say which moves the policy may make, and what installed packages bring."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from suture.agents import RepairBrief
from suture.core.plugins import load_plugin, plugin_names
from suture.core.records import Check, Task
from suture.core.safe_files import parse_toml, read_text_file
from suture.core.settings import LoopSettings, ModelSettings
from suture.errors import UsageError
from suture.loop.recipes.schema import Helpers, Recipe, recipe_fields

AskText = Callable[[str], Awaitable[str]]
"""Asks the critic's model a question in words; reserved and paid from the run's budget."""
Adviser = Callable[[RepairBrief, AskText], Awaitable[Sequence[str]]]
"""A role: what it says of a candidate that is to be mended, one sentence each; the coder reads it."""
CheckSource = Callable[[Task], Iterable[Check]]
"""Tests of a task. They begin with trust 0, as those of any model do, and may earn more."""
Mender = Callable[[RepairBrief], Mapping[str, str] | None]
"""A move without a model: what it would write over a failing candidate, path -> text; `None` for nothing."""

ADVISERS, SOURCES, MENDERS = "suture.advisers", "suture.check_sources", "suture.menders"
GROUP = "suture.recipes"
"""The group of entry points: each loads to the text of a recipe, in TOML."""
MOST_BYTES = 64 * 2**10
"""Of the file of a recipe."""
SHOWN = "see one that works: suture recipes show adaptive"
"""What to do about a file that is no recipe."""


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


def list_recipes() -> tuple[str, ...]:
    """Names of the recipes that ship with Suture."""
    folder = files("suture.loop") / "recipes"
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    )


def load_recipe(settings: LoopSettings, temperature: float, text: str = "") -> Recipe:
    """The recipe that the settings name, with the settings' own numbers where the file leaves them open.

    Args:
        settings: `recipe` is the name of one that ships, or the path of a TOML file.
        temperature: The coder's.
        text: What the file holds, where a run's record says so; it is not read then.

    Raises:
        UsageError: There is no such recipe, or the file is not one.
    """
    where = settings.recipe
    text = text or recipe_text(where)
    try:
        raw = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"{where}: it is no TOML: {fault}", remedy=SHOWN) from fault
    general = {
        "name": Path(settings.recipe).stem,
        "samples": settings.samples,
        "repair_rounds": settings.repair_rounds,
        "temperature": temperature,
    }
    try:
        return Recipe.model_validate({**general, **raw})
    except ValidationError as fault:
        raise UsageError(f"{where}: {_first_fault(fault)}", remedy=SHOWN) from fault


def recipe_text(name: str) -> str:
    """What the file of a recipe holds.

    Args:
        name: The name of one that ships or that an installed package brings, or the path of a TOML file.

    Raises:
        UsageError: There is no such recipe, or the file cannot be read.
    """
    if is_own_file(name):
        return read_text_file(Path(os.path.expanduser(name)), MOST_BYTES, "the recipe")  # noqa: PTH111 - raises
    known = list_recipes()
    if name in plugin_names(GROUP) and name not in known:
        return str(load_plugin(GROUP, name, what="recipe", where="loop.recipe"))
    if name not in known:
        near = get_close_matches(name, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"there is no recipe called {name!r}", remedy=f"{remedy}; or name a .toml file")
    return (files("suture.loop") / "recipes" / f"{name}.toml").read_text("utf-8")


def is_own_file(name: str) -> bool:
    """Whether a recipe is a file of the user's own."""
    return name.endswith(".toml")


def describe_recipe(name: str) -> Recipe:
    """A recipe with our defaults where its file leaves something open; raises as `load_recipe`."""
    return load_recipe(LoopSettings(recipe=name), ModelSettings().temperature)


def recipe_as_toml(recipe: Recipe) -> str:
    """A recipe as the text of a file; what has no value is a comment."""
    plain = recipe.model_dump(mode="json")
    helpers = plain.pop("helpers")
    return "\n".join([*_lines(plain), "", "[helpers]", *_lines(helpers), ""])


def _lines(plain: Mapping[str, Any]) -> Iterator[str]:
    for key, value in plain.items():
        # Of what a recipe holds JSON and TOML write texts, numbers, lists and booleans alike.
        yield f"# {key} is not set" if value is None else f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _first_fault(fault: ValidationError) -> str:
    first: Any = fault.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"{key} = {first['input']!r}: {first['msg']}"
    *table, last = key.split(".")
    known = [name.rpartition(".")[2] for name in recipe_fields() if name.startswith(".".join(table))]
    near = get_close_matches(last, known, n=1)
    return f"there is no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
