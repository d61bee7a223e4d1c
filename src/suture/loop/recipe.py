"""Recipes: short TOML files that say which moves the policy may make."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files

from suture.errors import UsageError
from suture.settings import LoopSettings

__all__ = ["Recipe", "list_recipes", "load_recipe"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the policy may do.

    Attributes:
        name: Its file's name.
        summary: One sentence for people.
        opening: Replies asked for in the first round; the first of them is greedy.
        samples: Replies asked for in each fresh start after that.
        repair_width: Repairs of the same candidate asked for at once.
        repair_rounds: Repairs in one lineage before a fresh start.
        max_rounds: Rounds before the run gives up; `None` leaves that to the budget.
        mutate: Whether code that fails is first searched for a repair without a model.
        temperature: Of every reply that is not greedy.
    """

    name: str
    summary: str
    opening: int = 1
    samples: int = 4
    repair_width: int = 2
    repair_rounds: int = 2
    max_rounds: int | None = None
    temperature: float = 0.8
    mutate: bool = False


def list_recipes() -> tuple[str, ...]:
    """Names of the recipes that ship with Suture."""
    folder = files("suture.loop") / "recipes"
    return tuple(
        sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    )


def load_recipe(settings: LoopSettings, temperature: float) -> Recipe:
    """The recipe that the settings name, with the settings' own numbers where the file leaves them open.

    Raises:
        UsageError: There is no such recipe.
    """
    known = list_recipes()
    if settings.recipe not in known:
        near = get_close_matches(settings.recipe, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"there is no recipe called {settings.recipe!r}", remedy=remedy)
    raw = tomllib.loads((files("suture.loop") / "recipes" / f"{settings.recipe}.toml").read_text("utf-8"))
    general = Recipe(
        name=settings.recipe,
        summary="",
        samples=settings.samples,
        repair_rounds=settings.repair_rounds,
        temperature=temperature,
    )
    return replace(general, **raw)
