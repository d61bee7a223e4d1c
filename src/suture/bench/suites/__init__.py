"""Suture's own tasks, to write and to heal. This package reads them and runs nothing of them.

A task is a folder `own/CATEGORY/NAME` with `task.toml` (statement, bug, wrong solutions), `solution.py` and
`beside/` (the reference project) and `hidden.py` (the grading tests). See docs/benchmark.md.
"""

from suture.bench.suites.suite_tasks import adapt_suture, adapt_suture_heal, load_suite_tasks

__all__ = ["adapt_suture", "adapt_suture_heal", "load_suite_tasks"]
