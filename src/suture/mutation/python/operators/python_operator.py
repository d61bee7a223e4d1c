"""What a Python operator is, and what operators share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from suture.mutation.changes import Change, shorten
from suture.mutation.operator_names import OperatorName
from suture.mutation.python.python_tree import PythonTree


@dataclass(frozen=True, kw_only=True)
class PythonOperator:
    """A kind of change of Python source.

    Attributes:
        nodes: The classes of nodes that it changes.
        changes: Yields the ways to change one node.
    """

    name: OperatorName
    nodes: tuple[type[ast.AST], ...]
    changes: Callable[[ast.AST, PythonTree], Iterator[Change]]


def replace_with(tree: PythonTree, node: ast.expr, text: str, weight: float = 1.0) -> Change:
    """Return the change that puts an expression in the place of a node."""
    return Change(
        edits=(tree.replacement(node, text),),
        note=f"{shorten(tree.text(node))} becomes {shorten(text)}",
        weight=weight,
    )


def is_read(node: ast.AST) -> bool:
    """Return whether an expression is read, and not assigned or deleted."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def find_operator_sign(tree: PythonTree, left: ast.expr, right: ast.expr, sign: str) -> tuple[int, int]:
    """Return the span of the sign between two operands; `(0, 0)` if a comment makes it uncertain."""
    start, stop = tree.span(left)[1], tree.span(right)[0]
    between = tree.raw[start:stop]
    index = between.find(sign.encode())
    if index < 0 or b"#" in between:
        return 0, 0
    return start + index, start + index + len(sign)
