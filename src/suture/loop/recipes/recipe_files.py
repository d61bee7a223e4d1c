"""Load recipes, which are TOML files, and the extensions of installed packages that they name."""

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

from suture.agents.roles.coder import RepairBrief
from suture.core.plugins import load_plugin, plugin_names
from suture.core.records import Check, Task
from suture.core.safe_files import parse_toml, read_text_file
from suture.core.settings import LoopSettings, ModelSettings
from suture.errors import UsageError
from suture.loop.recipes.recipe_schema import Recipe, RecipeHelpers, list_recipe_keys
from suture.loop.tuning import MAX_RECIPE_BYTES

AskText = Callable[[str], Awaitable[str]]
"""Asks the critic's model a question in plain text; the run's budget pays for it."""
Adviser = Callable[[RepairBrief, AskText], Awaitable[Sequence[str]]]
"""A role that returns remarks on a candidate to repair, one sentence each; the coder reads them."""
CheckSource = Callable[[Task], Iterable[Check]]
"""Returns tests of a task. They start with trust 0, like the tests of a model, and may earn more."""
Fixer = Callable[[RepairBrief], Mapping[str, str] | None]
"""A move without a model: returns the files to write over a failing candidate, or `None`: path -> text."""

ADVISER_GROUP = "suture.advisers"
CHECK_SOURCE_GROUP = "suture.check_sources"
FIXER_GROUP = "suture.fixers"
RECIPE_GROUP = "suture.recipes"
"""Groups of entry points. An entry point of `suture.recipes` loads to the TOML source of a recipe."""
RECIPE_FOLDER = files("suture.loop") / "recipes"
EXAMPLE_REMEDY = "see one that works: suture recipes show adaptive"


@dataclass(frozen=True, kw_only=True)
class RecipeExtensions:
    """The extensions of installed packages that a recipe uses, by name."""

    advisers: Mapping[str, Adviser] = field(default_factory=dict)
    check_sources: Mapping[str, CheckSource] = field(default_factory=dict)
    fixers: Mapping[str, Fixer] = field(default_factory=dict)


def load_extensions(helpers: RecipeHelpers) -> RecipeExtensions:
    """Load the extensions that a recipe names.

    Raises:
        UsageError: No installed package has an extension of this name.
        PrerequisiteError: The package cannot be loaded.
    """

    def load(group: str, what: str, key: str, names: Sequence[str]) -> dict[str, Any]:
        return {name: load_plugin(group, name, what=what, where=f"helpers.{key}") for name in names}

    return RecipeExtensions(
        advisers=load(ADVISER_GROUP, "adviser", "advisers", helpers.advisers),
        check_sources=load(CHECK_SOURCE_GROUP, "source of checks", "check_sources", helpers.check_sources),
        fixers=load(FIXER_GROUP, "fixer", "fixers", helpers.fixers),
    )


def list_recipes() -> tuple[str, ...]:
    """Return the names of the recipes that ship with Suture, sorted."""
    names = (file.name for file in RECIPE_FOLDER.iterdir() if file.name.endswith(".toml"))
    return tuple(sorted(name.removesuffix(".toml") for name in names))


def list_installed_recipes() -> tuple[str, ...]:
    """Return the names of the recipes that other installed packages offer, sorted, without loading them."""
    return tuple(name for name in plugin_names(RECIPE_GROUP) if name not in list_recipes())


def load_recipe(settings: LoopSettings, temperature: float, text: str = "") -> Recipe:
    """Load the recipe that the settings name, with defaults from the settings.

    Args:
        settings: `recipe` is the name of a recipe, or the path of a TOML file.
        temperature: The temperature of the coder.
        text: The content of the file, if a run's record has it; the file is not read then.

    Raises:
        UsageError: There is no such recipe, or the file is not valid.
    """
    name = settings.recipe
    text = text or _read_recipe_text(name)
    try:
        raw = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"{name}: it is not valid TOML: {fault}", remedy=EXAMPLE_REMEDY) from fault
    defaults = {
        "name": Path(name).stem,
        "samples": settings.samples,
        "repair_rounds": settings.repair_rounds,
        "temperature": temperature,
    }
    try:
        return Recipe.model_validate({**defaults, **raw})
    except ValidationError as fault:
        raise UsageError(f"{name}: {_describe_first_fault(fault)}", remedy=EXAMPLE_REMEDY) from fault


def _read_recipe_text(name: str) -> str:
    """Return the content of a recipe file: the user's own, a shipped one, or that of an installed package."""
    if name.endswith(".toml"):
        return read_text_file(Path(os.path.expanduser(name)), MAX_RECIPE_BYTES, "the recipe")  # noqa: PTH111 - raises
    shipped = list_recipes()
    if name in shipped:
        return (RECIPE_FOLDER / f"{name}.toml").read_text("utf-8")
    if name in list_installed_recipes():
        return str(load_plugin(RECIPE_GROUP, name, what="recipe", where="loop.recipe"))
    similar = get_close_matches(name, shipped, n=1)
    remedy = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(shipped)}"
    raise UsageError(f"there is no recipe called {name!r}", remedy=f"{remedy}; or name a .toml file")


def describe_recipe(name: str) -> Recipe:
    """Return a recipe with the default settings where its file sets no value; raises as `load_recipe`."""
    return load_recipe(LoopSettings(recipe=name), ModelSettings().temperature)


def render_recipe_toml(recipe: Recipe) -> str:
    """Return a recipe as a TOML file; a key without a value becomes a comment."""
    values = recipe.model_dump(mode="json")
    helpers = values.pop("helpers")
    return "\n".join([*_render_lines(values), "", "[helpers]", *_render_lines(helpers), ""])


def _render_lines(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        # JSON and TOML write the strings, numbers, lists and booleans of a recipe in the same way.
        yield f"# {key} is not set" if value is None else f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _describe_first_fault(fault: ValidationError) -> str:
    error: Any = fault.errors()[0]
    path = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{path} = {error['input']!r}: {error['msg']}"
    table, _, key = path.rpartition(".")
    keys = [name.rpartition(".")[2] for name in list_recipe_keys() if name.startswith(table)]
    similar = get_close_matches(key, keys, n=1)
    return f"there is no key {path!r}" + (f"; did you mean {similar[0]!r}?" if similar else "")
