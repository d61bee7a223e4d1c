"""Making wrong solutions from a right one, which a grader must reject.

They are wrong whatever the task is. So if one is accepted, the grader or the tests are at fault.
"""

from __future__ import annotations

import ast

from suture.bench.problem import Problem, build_task

REPLACEMENT = """

_right = {name}


def {name}(*arguments, **named):
{body}
"""
SPOILING_HELPER = """


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
EQUAL_TO_ALL = """

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
    "equals everything": (EQUAL_TO_ALL, "    return _Equal()"),
    "answers another value": (SPOILING_HELPER, "    return _spoiled(_right(*arguments, **named))"),
}
"""Kind of fault -> code to append to the module, and the body that replaces the right function's."""
KNOWS_EXAMPLES = "knows the visible examples"
FAULT_KINDS = (*BODIES, KNOWS_EXAMPLES)


def make_wrong_solutions(problem: Problem) -> dict[str, str]:
    """Return modules that define the problem's function and are wrong, by the kind of fault.

    Args:
        problem: A problem whose reference is one module and whose entry point is a function.
    """
    solutions = {
        how: problem.reference + before + REPLACEMENT.format(name=problem.entry_point, body=body)
        for how, (before, body) in BODIES.items()
    }
    known = _visible_arguments(problem)
    if known:
        body = f"    return _right(*arguments, **named) if repr(arguments) in {known!r} else None"
        solutions[KNOWS_EXAMPLES] = problem.reference + REPLACEMENT.format(
            name=problem.entry_point, body=body
        )
    return solutions


def _visible_arguments(problem: Problem) -> list[str]:
    calls = (
        node
        for check in build_task(problem).checks
        for node in ast.walk(ast.parse(check.source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    named = (
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id == problem.entry_point
    )
    return sorted({shown for call in named if (shown := _render_arguments(call))})


def _render_arguments(call: ast.Call) -> str:
    try:
        return repr(tuple(ast.literal_eval(argument) for argument in call.args))
    except ValueError:
        return ""
