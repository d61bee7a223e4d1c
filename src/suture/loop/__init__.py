"""The loop: state, graph, nodes, policy, stuck detection, recipes.

This room decides what happens next and in what order. It imports no front door, it never runs code itself
(`checks` does, in the sandbox), and its policy is a pure function. LangGraph's graph API is known here only.
It takes a second to import, so whoever runs a task imports `suture.loop.run`, and does it late.
"""

from suture.loop.context import RunContext
from suture.loop.open_run import open_run
from suture.loop.recipes.recipe import describe_recipe, list_recipes, load_recipe, recipe_as_toml
from suture.loop.recipes.schema import Recipe
from suture.loop.resuming.recorded import RecordedRun, Replay, open_recorded
from suture.loop.run_spec import RunSpec

__all__ = [
    "Recipe",
    "RecordedRun",
    "Replay",
    "RunContext",
    "RunSpec",
    "describe_recipe",
    "list_recipes",
    "load_recipe",
    "open_recorded",
    "open_run",
    "recipe_as_toml",
]
