"""Templates mined from sibling code: an expression that the same file uses in such a place elsewhere."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator

from suture.mutation.python.scope_names import guess_kind
from suture.mutation.python.python_tree import PythonTree
from suture.mutation.changes import Change, Operator, replace_with

MINED = (
    *(ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp),
    *(ast.Attribute, ast.List, ast.Tuple, ast.IfExp),
)
MOST_MINED = 16
"""Expressions of the surroundings that one place is offered, the likeliest first."""
MOST_NEAR = 100
"""Expressions in front of a node, and as many behind it, that are looked at."""
SMALL = 40
"""Characters of a mined expression."""


def _sibling(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    parent = view.parent(node)
    if _is_called(node, view) or isinstance(parent, ast.Attribute):
        return
    if isinstance(node, (ast.Constant, ast.Name)) and isinstance(parent, (ast.BinOp, ast.Expr, ast.BoolOp)):
        return
    text, kind = view.text(node), guess_kind(node, view.scope_names(node))
    for other, weight in _mined(node, view):
        if view.text(other) == text:
            continue
        other_kind = guess_kind(other, view.scope_names(node))
        unlike = kind != other_kind and "unknown" not in (kind, other_kind)
        yield replace_with(view, node, view.text(other), weight * (0.4 if unlike else 1.0))


def _mined(node: ast.expr, view: PythonTree) -> Iterator[tuple[ast.expr, float]]:
    """Expressions of the same function, those of the same place first; none that holds the node."""
    scope: ast.AST | None = view.enclosing_function(node)
    if scope is None:
        return
    holders = {id(holder) for holder in view.ancestors(node)}
    if scope not in view.mined:
        view.mined[scope] = _minable(scope, view)
    all_mined = view.mined[scope]
    at = bisect_left(all_mined, node.lineno, key=lambda entry: entry[0].lineno)
    found: dict[str, tuple[float, int, ast.expr]] = {}
    for other, text in all_mined[max(0, at - MOST_NEAR) : at + MOST_NEAR]:
        if id(other) in holders or other is node:
            continue
        same_place = type(view.parent(other)) is type(view.parent(node))
        entry = (1.0 if same_place else 0.7, -abs(other.lineno - node.lineno), other)
        if text not in found or entry[:2] > found[text][:2]:
            found[text] = entry
    best = sorted(found.values(), key=lambda entry: entry[:2], reverse=True)
    for weight, _, other in best[:MOST_MINED]:
        yield other, weight


def _minable(scope: ast.AST, view: PythonTree) -> list[tuple[ast.expr, str]]:
    """Small expressions of a function that are read, with their texts, in the order of their lines."""
    found = []
    for node in ast.walk(scope):
        if not isinstance(node, MINED) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        if not _is_called(node, view) and len(text := view.text(node)) <= SMALL:
            found.append((node, text))
    return sorted(found, key=lambda entry: entry[0].lineno)


def _is_called(node: ast.expr, view: PythonTree) -> bool:
    return getattr(view.parent(node), "func", None) is node


PLACES = (*MINED, ast.Name, ast.Constant)
OPERATORS = (Operator(name="sibling expression", prior=0.2, nodes=PLACES, changes=_sibling),)
