"""The loop: the state machine of a run, its policy, its recipes, and what turns a request into a task.

This package decides what happens next and in what order. It imports no interface and runs no untrusted code
itself (`judge` does, in the sandbox), and its policy is a pure function. Only this package uses LangGraph's
graph API, which takes a second to import: import `suture.loop.run` only to run a task.

Any node may raise `BudgetExceeded` when the time is up, `SandboxError` and `StorageError`. They end the run,
and `run` turns them into its outcome, so that only functions whose callers handle them document them.

Each name here is loaded when it is first used: `suture judge` needs few of the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from suture.loop.context import RunContext
    from suture.loop.recipes.recipe_files import (
        describe_recipe,
        list_installed_recipes,
        list_recipes,
        load_recipe,
        render_recipe_toml,
    )
    from suture.loop.recipes.recipe_schema import Recipe
    from suture.loop.resume.recorded_run import RecordedRun, Replay, read_recorded_run
    from suture.loop.run_opening import open_run
    from suture.loop.run_spec import RunSpec

__all__ = [
    "Recipe",
    "RecordedRun",
    "Replay",
    "RunContext",
    "RunSpec",
    "describe_recipe",
    "list_installed_recipes",
    "list_recipes",
    "load_recipe",
    "open_run",
    "read_recorded_run",
    "render_recipe_toml",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Recipe": "suture.loop.recipes.recipe_schema",
        "RecordedRun": "suture.loop.resume.recorded_run",
        "Replay": "suture.loop.resume.recorded_run",
        "RunContext": "suture.loop.context",
        "RunSpec": "suture.loop.run_spec",
        "describe_recipe": "suture.loop.recipes.recipe_files",
        "list_installed_recipes": "suture.loop.recipes.recipe_files",
        "list_recipes": "suture.loop.recipes.recipe_files",
        "load_recipe": "suture.loop.recipes.recipe_files",
        "open_run": "suture.loop.run_opening",
        "read_recorded_run": "suture.loop.resume.recorded_run",
        "render_recipe_toml": "suture.loop.recipes.recipe_files",
    },
)
