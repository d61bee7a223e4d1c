"""What the shell offers for the values of arguments and options: runs, recipes and models."""

from __future__ import annotations

import os
from pathlib import Path

from suture.errors import SutureError

MAX_OFFERED_RUNS = 50
"""Older runs are found by `suture history`. Chosen by judgement; not measured."""


def complete_run(incomplete: str) -> list[str]:
    """Return the newest runs whose id starts with a text."""
    from suture.core.ledger import stamp_ledgers
    from suture.core.settings import load_settings

    try:
        home = load_settings(Path(), {}, os.environ, read_only=True).settings.paths.home
    except SutureError:
        return []  # the command itself will say what is wrong with the settings
    newest = reversed(list(stamp_ledgers(home))[-MAX_OFFERED_RUNS:])
    return [name for name in ("last", "newest", *newest) if name.startswith(incomplete)]


def complete_recipe(incomplete: str) -> list[str]:
    """Return the recipes of Suture and of installed packages whose name starts with a text."""
    from suture.loop import list_installed_recipes, list_recipes

    return [name for name in (*list_recipes(), *list_installed_recipes()) if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Return the models of the catalogue, and the providers whose models nobody can list without a request."""
    from suture.models import PROVIDERS
    from suture.models.weights.weights_cache import CATALOGUE

    names = ("none", *(f"local:{name}" for name in CATALOGUE), *(f"{provider}:" for provider in PROVIDERS))
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
