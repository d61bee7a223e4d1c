"""Recipes: short TOML files that say which moves the policy may make."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from suture.errors import UsageError
from suture.loop.recipe_schema import Helpers, Recipe, recipe_fields
from suture.settings import LoopSettings

__all__ = ["Helpers", "Recipe", "list_recipes", "load_recipe", "recipe_fields"]


def list_recipes() -> tuple[str, ...]:
    """Names of the recipes that ship with Suture."""
    folder = files("suture.loop") / "recipes"
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    )


def load_recipe(settings: LoopSettings, temperature: float) -> Recipe:
    """The recipe that the settings name, with the settings' own numbers where the file leaves them open.

    Args:
        settings: `recipe` is the name of one that ships, or the path of a TOML file.
        temperature: The coder's.

    Raises:
        UsageError: There is no such recipe, or the file is not one.
    """
    where, text = _source(settings.recipe)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise UsageError(f"{where}: it is no TOML: {fault}") from fault
    general = {
        "name": Path(settings.recipe).stem,
        "samples": settings.samples,
        "repair_rounds": settings.repair_rounds,
        "temperature": temperature,
    }
    try:
        return Recipe.model_validate({**general, **raw})
    except ValidationError as fault:
        raise UsageError(f"{where}: {_first_fault(fault)}") from fault


def _source(wanted: str) -> tuple[str, str]:
    """What to call a recipe in an error, and its text."""
    if wanted.endswith(".toml"):
        try:
            return wanted, Path(wanted).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError, RuntimeError) as fault:
            raise UsageError(f"the recipe {wanted!r} cannot be read: {fault}") from fault
    known = list_recipes()
    if wanted not in known:
        near = get_close_matches(wanted, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"there is no recipe called {wanted!r}", remedy=f"{remedy}; or name a .toml file")
    return f"recipe {wanted}", (files("suture.loop") / "recipes" / f"{wanted}.toml").read_text("utf-8")


def _first_fault(fault: ValidationError) -> str:
    first: Any = fault.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] != "extra_forbidden":
        return f"{key} = {first['input']!r}: {first['msg']}"
    *table, last = key.split(".")
    known = [name.rpartition(".")[2] for name in recipe_fields() if name.startswith(".".join(table))]
    near = get_close_matches(last, known, n=1)
    return f"there is no key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
