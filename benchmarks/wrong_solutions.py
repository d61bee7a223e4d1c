"""Make wrong solutions from a right one, which a grader must reject.

They are wrong whatever the task is. If one is accepted, the grader or the tests are at fault.
"""

from __future__ import annotations

import ast

from suture.bench.problem import Problem, build_task

REPLACEMENT = """

_right = {name}


def {name}(*arguments, **named):
{body}
"""
"""Code that replaces the right function, which stays available to the new one as `_right`."""
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
"""Code that returns another value of the same type. Twice the absolute value plus one differs from every finite
number, but not from infinity."""
EQUAL_TO_ALL = """

class _Equal:
    def __eq__(self, other):
        return True

    __hash__ = None
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __le__ = __ge__ = __eq__
    __bool__ = __contains__ = lambda self, *item: True
"""
"""Code of a class whose instances satisfy every comparison for equality."""
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
    """Return kind of fault -> a module that defines the problem's function and is wrong.

    The problem's reference must be one module, and its entry point a function.
    """
    bodies = dict(BODIES)
    if example_arguments := _visible_arguments(problem):
        condition = f"repr(arguments) in {example_arguments!r}"
        bodies[KNOWS_EXAMPLES] = ("", f"    return _right(*arguments, **named) if {condition} else None")
    return {
        kind: problem.reference + helper + REPLACEMENT.format(name=problem.entry_point, body=body)
        for kind, (helper, body) in bodies.items()
    }


def _visible_arguments(problem: Problem) -> list[str]:
    """Return the arguments of the visible checks' calls of the entry point, each as the `repr` of a tuple."""
    calls = (
        node
        for check in build_task(problem).checks
        for node in ast.walk(ast.parse(check.source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == problem.entry_point
    )
    return sorted({arguments for call in calls if (arguments := _render_arguments(call))})


def _render_arguments(call: ast.Call) -> str:
    try:
        return repr(tuple(ast.literal_eval(argument) for argument in call.args))
    except ValueError:
        return ""
