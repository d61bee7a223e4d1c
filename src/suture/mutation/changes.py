"""What an operator is: a function from one node to changes near it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import PythonTree

MOST_WORDS = 60


@dataclass(frozen=True, kw_only=True)
class Change:
    """One way to change a node.

    Attributes:
        edits: What changes.
        note: The same in a few words.
        weight: How likely it is beside the operator's other changes; 1 for the likeliest.
    """

    edits: tuple[Edit, ...]
    note: str
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A kind of change.

    Attributes:
        name: Its name.
        prior: How likely a repair is of this kind, in (0, 1]; rough, and the same for all projects.
        nodes: The nodes that it looks at.
        changes: The ways to change one of them.
    """

    name: str
    prior: float
    nodes: tuple[type[ast.AST], ...]
    changes: Callable[[ast.AST, PythonTree], Iterator[Change]]


def replace_with(view: PythonTree, node: ast.expr, text: str, weight: float = 1.0) -> Change:
    """The change that puts an expression in a node's place."""
    return Change(
        edits=(view.replacement(node, text),),
        note=f"{shorten(view.text(node))} becomes {shorten(text)}",
        weight=weight,
    )


def shorten(text: str) -> str:
    """A text on one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_WORDS else f"{line[:MOST_WORDS]}..."


def find_operator_sign(view: PythonTree, left: ast.expr, right: ast.expr, signs: tuple[str, ...]) -> tuple[int, int]:
    """Where the sign between two operands stands; `(0, 0)` where it cannot be told."""
    start, stop = view.span(left)[1], view.span(right)[0]
    between = view.raw[start:stop]
    for sign in sorted(signs, key=len, reverse=True):
        at = between.find(sign.encode())
        if at >= 0 and b"#" not in between:
            return start + at, start + at + len(sign)
    return 0, 0
