"""What the shell offers for the values of arguments and options: runs, recipes and models."""

from __future__ import annotations

import os
from pathlib import Path

import suture
from suture.errors import SutureError

MAX_OFFERED_RUNS = 50
"""Older runs are found by `suture history`. Chosen by judgement; not measured."""


def complete_run(incomplete: str) -> list[str]:
    """Return the newest runs whose id starts with what was typed."""
    from suture.core.ledger import stamp_ledgers
    from suture.core.settings import load_settings

    try:
        home = load_settings(Path(), {}, os.environ, read_only=True).settings.paths.home
        newest = list(stamp_ledgers(home))[-MAX_OFFERED_RUNS:]
    except (SutureError, OSError):
        return []  # the command itself will say what is wrong with the settings, or that the folder is gone
    return [name for name in ("last", "newest", *reversed(newest)) if name.startswith(incomplete)]


def complete_recipe(incomplete: str) -> list[str]:
    """Return the recipes of Suture and of installed packages whose name starts with what was typed."""
    from suture.core.plugins import plugin_names

    # `suture.loop` lists them, too, but takes a second to import.
    recipes = sorted(file.stem for file in (Path(suture.__file__).parent / "loop/recipes").glob("*.toml"))
    names = dict.fromkeys((*recipes, *plugin_names("suture.recipes")))
    return [name for name in names if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Return the models of the catalogue. Nobody can list those of a provider without a request."""
    from suture.models.weights.weights_cache import CATALOGUE

    names = ("none", *(f"local:{name}" for name in CATALOGUE))
    return [name for name in names if name.startswith(incomplete)]
