"""Failures that a test program saw itself, though it went on to its end: nobody looked at them.

Runs behind the wall. A test that runs unittest or doctest by a runner of its own and never reads the result,
or one whose assert fails in a thread, gets to its last statement all the same; and one that only defines its
tests gets there without having run any.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

CATCHING = frozenset(("AssertionError", "BaseException", "Exception", "failureException"))
EXPECTING = "expectedFailure"
RAISING = frozenset(("raises", "assertRaises", "assertRaisesRegex", "suppress", EXPECTING))
NOTED = (
    ("unittest", "TestResult", ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess")),
    ("doctest", "DocTestRunner", ("report_failure", "report_unexpected_exception")),
)
"""Modules, their classes, and the methods of these that are called for what went wrong."""
PASSIVE = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.Pass)


class OwnFailures:
    """What the frameworks that a test program uses note while it runs; a context.

    Args:
        source: The program; only what it names is watched.
    """

    def __init__(self, source: str) -> None:
        self.seen: list[str] = []
        self._noted = [noted for noted in NOTED if noted[0] in source]
        self._undo: list[tuple[type, str, Any]] = []

    def __enter__(self) -> OwnFailures:
        for module, kind, methods in self._noted:
            owner = getattr(__import__(module), kind)
            for method in methods:
                known = getattr(owner, method)
                self._undo.append((owner, method, known))
                setattr(owner, method, self._noting(known))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, method, known in self._undo:
            setattr(owner, method, known)

    def _noting(self, known: Callable[..., Any]) -> Callable[..., Any]:
        def noting(this: Any, *reported: Any) -> Any:
            if known.__name__ != "addSubTest" or reported[-1] is not None:
                self.seen.append(_summary(reported))
            return known(this, *reported)

        return noting


def _summary(reported: tuple[Any, ...]) -> str:
    """The test, or the exception of it, in one line."""
    for part in reported:
        if isinstance(part, tuple) and len(part) == 3 and isinstance(part[1], BaseException):
            return f"{type(part[1]).__name__}: {part[1]}".partition("\n")[0]
    want = [part for part in reported if hasattr(part, "want")]
    if want:
        return f"the example {want[0].source.strip()!r} did not answer {want[0].want.strip()!r}"
    return str(reported[0]) if reported else "a test failed"


def catches_failures(tree: ast.Module) -> bool:
    """Whether a program's text catches failing asserts anywhere; then one that failed may be meant to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            return True
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name == EXPECTING or (name in CATCHING and not _is_raised(node, tree)):
            return True
    return False


def catches_anything(tree: ast.Module) -> bool:
    """Whether a program's text catches exceptions of any kind."""
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.ExceptHandler) or name in RAISING or name in CATCHING:
            return True
    return False


def _is_raised(name: ast.AST, tree: ast.Module) -> bool:
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    return any(name is (exc.func if isinstance(exc, ast.Call) else exc) for exc in raised)


def is_idle(tree: ast.Module) -> bool:
    """Whether a program does nothing but define things: then it tests nothing."""
    return all(_is_passive(node) for node in tree.body)


def _is_passive(node: ast.stmt) -> bool:
    if isinstance(node, PASSIVE):
        return True
    if isinstance(node, ast.ClassDef):
        return all(map(_is_passive, node.body))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not any(isinstance(part, (ast.Call, ast.Await, ast.Subscript)) for part in ast.walk(node))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
