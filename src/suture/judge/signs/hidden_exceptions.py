"""Count what ends exceptions in a Python program, so that nobody sees the failure of a test."""

from __future__ import annotations

import ast

from suture.mutation.python.python_tree import FUNCTIONS

BROAD_EXCEPTIONS = ("Exception", "BaseException", "AssertionError")
"""Exceptions whose handlers catch the failures of tests."""
EXIT_METHODS = ("__exit__", "__aexit__")
"""Methods of context managers that end an exception if they answer `True`."""
RECORDING_METHODS = frozenset(
    ("critical", "debug", "error", "exception", "info", "log", "print_exc", "warn", "warning")
)
"""Methods of loggers, `warnings` and `traceback` that show an exception to somebody."""


def count_hiding_handlers(tree: ast.AST) -> int:
    """Count handlers that catch everything and handlers that do nothing; one that is both counts twice.

    A handler that raises, logs or uses the exception does not hide it. What else ends an exception counts as well.
    """
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            count += _is_broad(node.type) and not _shows_exception(node)
            count += all(isinstance(statement, (ast.Pass, ast.Continue)) for statement in node.body)
        elif isinstance(node, ast.Try):
            count += any(map(_leaves, node.finalbody))
        elif isinstance(node, ast.Call):
            count += _suppresses_broadly(node)
        elif isinstance(node, FUNCTIONS):
            count += node.name in EXIT_METHODS and any(map(_answers_true, ast.walk(node)))
        elif isinstance(node, ast.keyword):  # of `asyncio.gather`
            count += node.arg == "return_exceptions" and not _is_false(node.value)
    return count


def _is_broad(exceptions: ast.expr | None) -> bool:
    """Return whether what is caught includes the failures of tests."""
    if isinstance(exceptions, ast.Tuple):
        return any(map(_is_broad, exceptions.elts))
    return exceptions is None or ast.unparse(exceptions).removeprefix("builtins.") in BROAD_EXCEPTIONS


def _suppresses_broadly(call: ast.Call) -> bool:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return function == "suppress" and any(map(_is_broad, call.args))


def _leaves(statement: ast.stmt, *, in_loop: bool = False) -> bool:
    """Return whether a statement of a `finally` leaves it, so that the exception is lost."""
    if isinstance(statement, ast.Return) or (
        isinstance(statement, (ast.Break, ast.Continue)) and not in_loop
    ):
        return True
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    is_loop = in_loop or isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
    parts = ast.iter_child_nodes(statement)
    return any(_leaves(part, in_loop=is_loop) for part in parts if isinstance(part, ast.stmt))


def _answers_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is True


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _shows_exception(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises, logs the exception, or uses it in another way."""
    for node in (part for statement in handler.body for part in ast.walk(statement)):
        is_used = isinstance(node, ast.Name) and node.id == handler.name
        is_logged = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RECORDING_METHODS
        )
        if is_used or is_logged or isinstance(node, ast.Raise):
            return True
    return False
