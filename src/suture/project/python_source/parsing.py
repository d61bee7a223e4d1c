"""Reading Python that anyone may have written: deep, torn or no Python at all."""

from __future__ import annotations

import ast
import warnings

from suture.project.python_source.bounded_reading import allowance

PARSE_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises: the last two for sources that nest too deeply, `ValueError` for NUL bytes."""


def parsed(source: str | bytes) -> ast.Module | None:
    """The tree of a source; `None` where it has none. While a reply is read, equal texts share one tree.

    Raises:
        MalformedReply: A reply is being read, and that has become too much work.
    """
    known = allowance()
    if known is None or isinstance(source, bytes):
        return _tree(source)
    if source not in known.trees:
        known.take(source)
        known.trees[source] = _tree(source)
    return known.trees[source]


def _tree(source: str | bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape: its author's business
        try:
            return _parse(source)
        except PARSE_FAULTS:
            return None


def _parse(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # CPython 3.11 miscounts its depth where the garbage collector runs somebody's finaliser meanwhile.
        return ast.parse(source)


def first_line(node: ast.stmt) -> int:
    """The number of a statement's first line, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
