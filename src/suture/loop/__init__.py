"""The loop: state, graph, nodes, policy, stuck detection, recipes.

This room decides what happens next and in what order. It imports no front door, it never runs code itself
(`checks` does, in the sandbox), and its policy is a pure function. LangGraph's graph API is known here only.
"""

from suture.loop.context import RunContext
from suture.loop.opening import Opening, opened
from suture.loop.recipe import Recipe, list_recipes, load_recipe
from suture.loop.recorded import RecordedRun, Replay, open_recorded
from suture.loop.run import fork_task, resume_task, run_task

__all__ = [
    "Opening",
    "Recipe",
    "RecordedRun",
    "Replay",
    "RunContext",
    "fork_task",
    "list_recipes",
    "load_recipe",
    "open_recorded",
    "opened",
    "resume_task",
    "run_task",
]
