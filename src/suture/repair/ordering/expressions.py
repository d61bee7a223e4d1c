"""Two texts of one expression, without running anything of the project: whether they can differ, and how far.

Names, calls and attributes stand for any value, the same wherever one stands twice. Both texts are worked out
for many such values: `n - 2 + 1` and `n - 1` agree on all of them, `not (a or b)` and `not a or b` do not.
That is about the expression alone: a value that no caller ever brings counts as well.
"""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product
from textwrap import dedent
from typing import Any

from suture.pysource.parsing import parsed
from suture.repair.editing.edits import Edit, mutated
from suture.repair.editing.places import statement_around

VALUES = (0, 1, 2, -1, 3, True, False, None, "", "a", "ab", (), (1,), 1.5)
"""A few of each plain type, the edges among them."""
DRAWN = 1000
"""Sets of values, where not all can be tried."""
MOST_PARTS = 6
LONGEST, LARGEST = 1000, 1 << 64
"""The longest text and the largest number that are worked out: the project wrote them."""
BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_},
    **{ast.BitOr: operator.or_, ast.BitXor: operator.xor},
}
SEQUENCES = (str, bytes, tuple)
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    **{ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert},
}
COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le},
    **{ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not},
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
KNOWN = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp)
ASKED = (ast.If, ast.While, ast.IfExp, ast.Assert)
UNKNOWN = ""
"""What is said of what is not worked out here: a power, a shift, a format, what is too large."""


def apart(text: str, one: Sequence[Edit], other: Sequence[Edit]) -> float:
    """How far two changes of a source differ: the share of values for which the expression in question does.

    Args:
        text: The source.
        one: A change.
        other: Another; empty for the source as it is.

    Returns:
        0 where nothing tells them apart, 1 where they differ by more than one expression that can be read.
        What is not worked out counts as different: that they do the same is not known then.
    """
    start, end = statement_around(text, (*one, *other))
    raw = text.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")
    texts = [
        mutated(raw, [replace(edit, start=edit.start - start, end=edit.end - start) for edit in edits])
        for edits in (one, other)
    ]
    return _apart(*map(dedent, texts))


def needless(text: str) -> int:
    """How many operations of a source change nothing: `x + 0`, `x * 1`, `x or False`."""
    tree = parsed(text)
    return sum(map(_is_needless, ast.walk(tree))) if tree is not None else 0


def _is_needless(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.BitOr(), right=ast.Constant(value=value)):
            return type(value) is int and value == 0
        case ast.BinOp(op=ast.Mult() | ast.FloorDiv() | ast.Pow(), right=ast.Constant(value=value)):
            return type(value) is int and value == 1
        case ast.BoolOp(op=joined, values=[*_, ast.Constant(value=bool() as value)]):
            return value is isinstance(joined, ast.And)
    return False


@lru_cache(maxsize=512)
def _apart(one: str, other: str) -> float:
    first, second = parsed(one), parsed(other)
    if first is not None and second is not None:
        with suppress(ValueError):  # a number in it may be too long to be written out
            return _trees_apart(first, second)
    return float(one != other)


def _trees_apart(first: ast.Module, second: ast.Module) -> float:
    pair, is_asked = _differing(first, second)
    if pair is None:
        return 0.0
    left, right = pair
    if not (isinstance(left, ast.expr) and isinstance(right, ast.expr)):
        return 1.0
    parts, values = sorted({*_parts(left), *_parts(right)}), _values(left, right)
    if len(parts) > MOST_PARTS:
        return 1.0
    pairs = [[_said(node, given, is_asked) for node in (left, right)] for given in _given(parts, values)]
    return sum(ours != theirs or ours == UNKNOWN for ours, theirs in pairs) / len(pairs)


def _differing(one: ast.AST, other: ast.AST) -> tuple[tuple[ast.AST, ast.AST] | None, bool]:
    """The largest expressions around all that differs, or other nodes; whether only their truth counts."""
    if ast.dump(one) == ast.dump(other):
        return None, False
    is_asked = False
    while type(one) is type(other) and not isinstance(one, KNOWN):
        below = list(_unequal(one, other))
        if len(below) != 1 or below[0] is None:
            break
        name, deeper, across = below[0]
        is_asked = isinstance(one, ASKED) and name == "test"
        one, other = deeper, across
    return (one, other), is_asked


def _unequal(one: ast.AST, other: ast.AST) -> Iterator[tuple[str, ast.AST, ast.AST] | None]:
    """The children that differ, two by two; `None` for what has no counterpart."""
    for name, value in ast.iter_fields(one):
        against = getattr(other, name, None)
        ours, theirs = (v if isinstance(v, list) else [v] for v in (value, against))
        if len(ours) != len(theirs):
            yield None
            continue
        for left, right in zip(ours, theirs, strict=True):
            if isinstance(left, ast.AST) and isinstance(right, ast.AST):
                if ast.dump(left) != ast.dump(right):
                    yield name, left, right
            elif left != right:
                yield None


def _parts(node: ast.expr) -> Iterator[str]:
    """What may have any value, by its syntax."""
    if isinstance(node, KNOWN):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _parts(child)
    elif not isinstance(node, ast.Constant):
        yield ast.dump(node)


def _values(*nodes: ast.expr) -> tuple[Any, ...]:
    """What an unknown part may be: what the expressions name, beside it, and a few of each plain type."""
    named = [part.value for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant)]
    near = [value + step for value in named if isinstance(value, (int, float)) for step in (-1, 1)]
    plain = [value for value in (*named, *near) if isinstance(value, (int, float, str, bytes))]
    every = [value for value in plain if not _is_much(value)]
    return tuple({repr(value): value for value in (*VALUES, *every)}.values())


def _given(parts: Sequence[str], values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    if len(values) ** len(parts) <= DRAWN:
        yield from (dict(zip(parts, given, strict=True)) for given in product(values, repeat=len(parts)))
        return
    draw = random.Random(0)
    for _ in range(DRAWN):
        yield {part: draw.choice(values) for part in parts}


def _said(node: ast.expr, given: Mapping[str, Any], is_asked: bool) -> str:
    """What an expression comes to, or the exception that it ends with; `UNKNOWN` where that is not known."""
    try:
        value = _worked_out(node, given)
        return repr(bool(value)) if is_asked else repr(value)
    except (ArithmeticError, TypeError) as fault:
        return type(fault).__name__
    except ValueError:
        return UNKNOWN


def _worked_out(node: ast.expr, given: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return _worth(node.value)
    if isinstance(node, ast.BoolOp):
        value: Any = None
        for part in node.values:
            value = _worked_out(part, given)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value
    if isinstance(node, ast.IfExp):
        return _worked_out(node.body if _worked_out(node.test, given) else node.orelse, given)
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](_worked_out(node.operand, given))
    if isinstance(node, ast.Compare):
        return _compared(node, given)
    if isinstance(node, ast.BinOp):
        left, right = _worked_out(node.left, given), _worked_out(node.right, given)
        if type(node.op) not in BINARY or _may_grow(node.op, left, right):
            raise ValueError("not worked out here")
        return _worth(BINARY[type(node.op)](left, right))
    return given[ast.dump(node)]


def _may_grow(sign: ast.operator, left: Any, right: Any) -> bool:
    """Whether what comes of it may be of any size: a format may name any width."""
    if isinstance(sign, ast.Mod):
        return isinstance(left, (str, bytes))
    sides = ((left, right), (right, left))
    return isinstance(sign, ast.Mult) and any(
        isinstance(one, SEQUENCES) and isinstance(times, int) and len(one) * times > LONGEST
        for one, times in sides
    )


def _worth(value: Any) -> Any:
    """A value that is small enough to go on with.

    Raises:
        ValueError: It is not.
    """
    if _is_much(value):
        raise ValueError("too long or too large")
    return value


def _is_much(value: Any) -> bool:
    if isinstance(value, SEQUENCES):
        return len(value) > LONGEST
    return isinstance(value, int) and abs(value) > LARGEST


def _compared(node: ast.Compare, given: Mapping[str, Any]) -> Any:
    value, left = True, _worked_out(node.left, given)
    for sign, side in zip(node.ops, node.comparators, strict=True):
        right = _worked_out(side, given)
        value = COMPARED[type(sign)](left, right)
        if not value:
            return value
        left = right
    return value
