"""How far a change of one expression goes, worked out as of Python's: its tree is read as one of Python's.

That is for an order alone: what these languages calculate otherwise (the rest of a negative number, a text
beside a number) counts as Python has it, so two are never said to do the same because of it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.records import Language
from suture.repair.editing.edits import Edit
from suture.repair.ordering.expressions import needless_in, trees_apart
from suture.repair.other_languages.grammars import (
    CALLS,
    EXPRESSIONS,
    MEMBERS,
    NUMBERS,
    PARTS,
    STRINGS,
    parsed_tree,
)
from suture.repair.other_languages.tree_view import field, same, walked
from suture.repair.ranking import left_for_distance

if TYPE_CHECKING:
    from tree_sitter import Node

WORKED_OUT = ("binary_expression", "unary_expression", "ternary_expression")
JOINED: dict[str, type[ast.boolop]] = {"&&": ast.And, "||": ast.Or, "??": ast.Or}
COMPARED: dict[str, type[ast.cmpop]] = {
    **{"==": ast.Eq, "===": ast.Eq, "!=": ast.NotEq, "!==": ast.NotEq, "in": ast.In},
    **{"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE},
}
CALCULATED: dict[str, type[ast.operator]] = {
    **{"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod, "**": ast.Pow},
    **{"&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "<<": ast.LShift, ">>": ast.RShift},
}
TURNED: dict[str, type[ast.unaryop]] = {"!": ast.Not, "-": ast.USub, "+": ast.UAdd, "~": ast.Invert}
VALUES: dict[str, bool | None] = {
    **{"true": True, "false": False},
    **dict.fromkeys(("null", "nil", "undefined")),
}


def tree_distance(language: Language, path: str, before: str, edits: Sequence[Edit], after: str) -> float:
    """What is left of a score for how far a change goes, and for what it writes without need.

    Args:
        language: What the file is written in.
        path: For its ending.
        before: The file.
        edits: The change.
        after: The file with it.
    """
    added = needless_of(after, path, language) - needless_of(before, path, language)
    return left_for_distance(tree_apart(before, after, path, language), added)


def tree_apart(before: str, after: str, path: str, language: Language) -> float:
    """How far two texts of a file differ: the share of values for which the expression in question does.

    Args:
        before: The file.
        after: The file with a change.
        path: For its ending.
        language: What it is written in.

    Returns:
        1 where they differ by more than one expression that can be read.
    """
    one, other = (parsed_tree(text, path, language) for text in (before, after))
    is_asked = False
    while one.type == other.type and one.type not in WORKED_OUT:
        if one.child_count != other.child_count:
            break
        below = [(a, b) for a, b in zip(one.children, other.children, strict=True) if a.text != b.text]
        if not below:
            return float(one.text != other.text and not one.child_count)
        if len(below) > 1:
            break
        inner, across = below[0]
        condition = one.child_by_field_name("condition")
        is_asked = same(condition, inner) or (is_asked and one.type == "parenthesized_expression")
        one, other = inner, across
    if not {one.type, other.type} <= EXPRESSIONS:
        return 1.0
    with suppress(ValueError, RecursionError):
        left, right = (_module(_read(node), is_asked) for node in (one, other))
        return trees_apart(left, right)
    return 1.0


@lru_cache(maxsize=64)
def needless_of(text: str, path: str, language: Language) -> int:
    """How many operations of a file change nothing: `x + 0`, `x * 1`, `x || false`.

    Args:
        text: The file.
        path: For its ending.
        language: What it is written in.
    """
    root = parsed_tree(text, path, language)
    found = 0
    for node in walked(root):
        if node.type == "binary_expression" and (sides := field(node, "right")) is not None:
            is_plain = sides.type in (*NUMBERS, *VALUES)
            found += needless_in(_with_sides(node)) if is_plain else 0
    return found


def _with_sides(node: Node) -> ast.expr:
    """An operation, with a name for what stands at its left."""
    sign, right = node.child_by_field_name("operator"), node.child_by_field_name("right")
    assert sign is not None
    assert right is not None
    return _joined(sign.type, ast.Name(id="x"), _read(right)) or ast.Name(id="x")


def _module(value: ast.expr, is_asked: bool) -> ast.Module:
    holder = ast.If(test=value, body=[], orelse=[]) if is_asked else ast.Expr(value=value)
    return ast.Module(body=[holder], type_ignores=[])


def _read(node: Node) -> ast.expr:
    """An expression as Python's; what Python has none for is a name, and stands for any value."""
    named = node.named_children
    if node.type == "parenthesized_expression" and len(named) == 1:
        return _read(named[0])
    if node.type == "binary_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator")
        if left is not None and right is not None and sign is not None:
            return _joined(sign.type, _read(left), _read(right)) or _named(node)
    if node.type == "unary_expression":
        value, sign = field(node, "argument", "operand"), node.child_by_field_name("operator")
        if value is not None and sign is not None and sign.type in TURNED:
            return ast.UnaryOp(op=TURNED[sign.type](), operand=_read(value))
    if node.type == "ternary_expression" and len(named) == 3:
        test, body, orelse = map(_read, named)
        return ast.IfExp(test=test, body=body, orelse=orelse)
    if node.type in (*NUMBERS, *STRINGS, *VALUES):
        return _constant(node)
    return _part(node)


def _part(node: Node) -> ast.expr:
    """What may have any value: a name, a call, a member, a function."""
    named = node.named_children
    if node.type in CALLS and (given := node.child_by_field_name("arguments")) is not None:
        called = field(node, "function", "constructor")
        func = _read(called) if called is not None else _named(node)
        return ast.Call(func=func, args=[_read(one) for one in given.named_children], keywords=[])
    if node.type in MEMBERS and len(named) == 2:
        return ast.Attribute(value=_read(named[0]), attr=_text(named[1]))
    if node.type in PARTS and len(named) == 2:
        return ast.Subscript(value=_read(named[0]), slice=_read(named[1]))
    body = node.child_by_field_name("body")
    if node.type == "arrow_function" and body is not None and body.type in EXPRESSIONS:
        taken = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Lambda(args=taken, body=_read(body))
    return _named(node)


def _joined(sign: str, left: ast.expr, right: ast.expr) -> ast.expr | None:
    if sign in JOINED:
        return ast.BoolOp(op=JOINED[sign](), values=[left, right])
    if sign in COMPARED:
        return ast.Compare(left=left, ops=[COMPARED[sign]()], comparators=[right])
    if sign in CALCULATED:
        return ast.BinOp(left=left, op=CALCULATED[sign](), right=right)
    return None


def _constant(node: Node) -> ast.expr:
    text = _text(node)
    if node.type in VALUES:
        return ast.Constant(value=VALUES[node.type])
    if node.type in STRINGS:
        return ast.Constant(value=text[1:-1])
    for read in (lambda written: int(written, 0), float):
        with suppress(ValueError):
            return ast.Constant(value=read(text))
    return _named(node)


def _named(node: Node) -> ast.Name:
    return ast.Name(id=_text(node))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
