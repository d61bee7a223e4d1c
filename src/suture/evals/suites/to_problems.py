"""From a task of the own suite to a problem: to write it, or to heal it."""

from __future__ import annotations

from collections.abc import Callable

from suture.checks import examples_in
from suture.evals.problem import MODULE, Problem
from suture.evals.suites.tasks import SuiteTask

__all__ = ["suture", "suture_heal"]

Make = Callable[..., Problem]


def suture(task: SuiteTask, make: Make) -> Problem:
    """A task to write. Visible are the examples in the docstring, and the files that are there already."""
    return make(
        id=f"suture/{task.category}/{task.name}",
        kind="write",
        statement=_among(task) if task.beside else task.statement,
        entry_point=task.entry_point,
        beside=task.beside,
        visible=_examples(task),
        hidden=task.hidden,
        reference=task.solution[MODULE],
    )


def suture_heal(task: SuiteTask, make: Make) -> Problem:
    """The same task to heal: a project with one bug. Visible is a failing assert too, which reports it."""
    given = task.bug.made_to(task.solution)
    elsewhere = task.bug.file != MODULE
    return make(
        id=f"suture-heal/{task.category}/{task.name}",
        kind="heal",
        statement=task.statement,
        entry_point=task.entry_point,
        given=given.pop(MODULE),
        beside=given,
        visible=f"{_examples(task)}\n{task.report}",
        hidden=task.hidden,
        reference=task.solution[MODULE],
        reference_beside={task.bug.file: task.solution[task.bug.file]} if elsewhere else {},
    )


def _examples(task: SuiteTask) -> str:
    checks = examples_in(task.statement, task.entry_point)
    return "\n".join(check.source.strip() for check in checks)


def _among(task: SuiteTask) -> str:
    files = "\n".join(f"`{path}`:\n\n```python\n{text}```\n" for path, text in task.beside.items())
    return (
        f"Write the file `{MODULE}` of a project, with this function:\n\n"
        f"```python\n{task.statement}```\n\nThe project has these files already:\n\n{files}"
    )
