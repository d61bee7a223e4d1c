"""Suture's own tasks: to write, and to heal. They are read here, and nothing of them is run.

A task is a folder, `own/CATEGORY/NAME`: `task.toml` (statement, bug, wrong solutions), `solution.py` with
`beside/` (the reference project) and `hidden.py` (what grades). See docs/datasets.md.
"""

from suture.bench.suites.tasks import suite_tasks, suture, suture_heal

__all__ = ["suite_tasks", "suture", "suture_heal"]
