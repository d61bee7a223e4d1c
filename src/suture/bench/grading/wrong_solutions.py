"""Wrong solutions made of a right one: what a grader must reject.

They are wrong whatever the task is, so that one which is accepted is the grader's fault or the tests'.
"""

from __future__ import annotations

import ast

from suture.bench.problem import Problem, task_of

INSTEAD = """

_right = {name}


def {name}(*arguments, **named):
{body}
"""
SPOILED = """


def _spoiled(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float, complex)):
        return 0 if value == float("inf") else abs(value) * 2 + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, (list, tuple)):
        return value + type(value)((0,))
    if isinstance(value, (set, frozenset)):
        return value ^ {("spoiled",)}
    return {**value, "spoiled": 0} if isinstance(value, dict) else None
"""
EQUAL = """

class _Equal:
    def __eq__(self, other):
        return True

    __hash__ = None
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __le__ = __ge__ = __eq__
    __bool__ = __contains__ = lambda self, *item: True
"""
BODIES = {
    "answers nothing": ("", "    return None"),
    "raises": ("", "    raise RuntimeError('no')"),
    "ends the process": ("", "    raise SystemExit(0)"),
    "ends the process at once": ("import os as _os", "    _os._exit(0)"),
    "equals everything": (EQUAL, "    return _Equal()"),
    "answers another value": (SPOILED, "    return _spoiled(_right(*arguments, **named))"),
}
"""What is put after the module, and the body of the function that takes the right one's place."""
KNOWN = "knows the visible examples"
WRONG = (*BODIES, KNOWN)


def wrong_solutions(problem: Problem) -> dict[str, str]:
    """Modules that define the problem's function and are wrong, by how they are.

    Args:
        problem: With a reference that is one module, and an entry point that is a function.
    """
    made = {
        how: problem.reference + before + INSTEAD.format(name=problem.entry_point, body=body)
        for how, (before, body) in BODIES.items()
    }
    known = _visible_arguments(problem)
    if known:
        body = f"    return _right(*arguments, **named) if repr(arguments) in {known!r} else None"
        made[KNOWN] = problem.reference + INSTEAD.format(name=problem.entry_point, body=body)
    return made


def _visible_arguments(problem: Problem) -> list[str]:
    calls = (
        node
        for check in task_of(problem).checks
        for node in ast.walk(ast.parse(check.source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    named = (
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id == problem.entry_point
    )
    return sorted({shown for call in named if (shown := _shown(call))})


def _shown(call: ast.Call) -> str:
    try:
        return repr(tuple(ast.literal_eval(argument) for argument in call.args))
    except ValueError:
        return ""
