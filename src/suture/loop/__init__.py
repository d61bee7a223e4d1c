"""The loop: state, graph, nodes, policy, stuck detection, recipes.

This room decides what happens next and in what order. It imports no front door, it never runs code itself
(`checks` does, in the sandbox), and its policy is a pure function. LangGraph's graph API is known here only.
"""

from suture.loop.context import RunContext
from suture.loop.recipe import Recipe, list_recipes, load_recipe
from suture.loop.run import run_task

__all__ = ["Recipe", "RunContext", "list_recipes", "load_recipe", "run_task"]
