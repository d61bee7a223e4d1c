"""What expressions come to for given values of their parts, without running anything of the project.

Names, calls and attributes are parts: they stand for any value, the same wherever one stands twice. What is
no plain name may end with an exception, and a call may do something: to which of them an expression comes,
and in which order, is a part of what it does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
ONE_OF_A_KIND = (type(None), bool)
"""Types of which equal values are one object; of all others the interpreter decides."""
KNOWN = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp)
ACTING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
ONLY_TELLING = frozenset(
    (
        *("abs", "all", "any", "bool", "chr", "float", "hasattr", "int", "isinstance", "issubclass", "len"),
        *("max", "min", "ord", "repr", "round", "sorted", "str", "sum", "tuple", "type"),
    )
)
"""Builtins that do nothing but answer."""
UNKNOWN = ""
"""What is said of what is not worked out here: a power, a shift, a format, what is too large."""
FAILS = object()
"""In the place of a part's value: it ends with an exception."""


class _Failed(Exception):
    """A part ended with an exception."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What an expression did.

    Attributes:
        text: What it came to, or what it ended with; `UNKNOWN` where that is not known.
        acted: The parts that may do something, as it came to them.
    """

    text: str
    acted: tuple[str, ...]

    def differs(self, other: Evaluation) -> bool:
        """Whether the two are not known to have come to the same."""
        return self.text != other.text or self.text == UNKNOWN


class SymbolicEvaluator:
    """Works expressions out.

    Args:
        nodes: They.
    """

    def __init__(self, *nodes: ast.expr) -> None:
        known = [(ast.dump(part), part) for node in nodes for part in _parts(node)]
        self._keys = {id(part): key for key, part in known}
        self._acting = {key for key, part in known if _acts(part)}
        self.may_fail = {key for key, part in known if not isinstance(part, ast.Name)}
        self.parts = sorted({key for key, _ in known})
        self._ways = {(id(one), way) for node in nodes for one in _choices(node) for way in (True, False)}
        self._taken: set[tuple[int, bool]] = set()
        self._given: Mapping[str, Any] = {}
        self._acted: list[str] = []

    @property
    def has_gone_all_ways(self) -> bool:
        """Whether each condition in them was true once and false once."""
        return self._ways <= self._taken

    def said(self, node: ast.expr, given: Mapping[str, Any], is_asked: bool) -> Evaluation:
        """What one of them does.

        Args:
            node: An expression of the code under test.
            given: The value of each part, or `FAILS`.
            is_asked: Whether only its truth counts.
        """
        self._given, self._acted = given, []
        try:
            value = self._of(node)
            text = repr(bool(value)) if is_asked else repr(value)
        except (ArithmeticError, TypeError) as fault:
            text = type(fault).__name__
        except _Failed as fault:
            text = f"{fault} fails"
        except ValueError:
            text = UNKNOWN
        return Evaluation(text=text, acted=tuple(self._acted))

    def keys_in(self, node: ast.expr) -> set[str]:
        """The parts of an expression within them."""
        return {self._keys[id(part)] for part in _parts(node)}

    def _of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return _worth(node.value)
        if isinstance(node, ast.BoolOp):
            value: Any = None
            for part in node.values:
                value = self._of(part)
                if self._way(part, value) is isinstance(node.op, ast.Or):
                    return value
            return value
        if isinstance(node, ast.IfExp):
            return self._of(node.body if self._way(node.test, self._of(node.test)) else node.orelse)
        if isinstance(node, ast.UnaryOp):
            return UNARY[type(node.op)](self._of(node.operand))
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.BinOp):
            left, right = self._of(node.left), self._of(node.right)
            if type(node.op) not in BINARY or _may_grow(node.op, left, right):
                raise ValueError("not worked out here")
            return _worth(BINARY[type(node.op)](left, right))
        return self._part(node)

    def _part(self, node: ast.expr) -> Any:
        key = self._keys[id(node)]
        if key in self._acting:
            self._acted.append(key)
        value = self._given[key]
        if value is FAILS:
            raise _Failed(key)
        return value

    def _compared(self, node: ast.Compare) -> Any:
        value, left = True, self._of(node.left)
        for sign, side in zip(node.ops, node.comparators, strict=True):
            right = self._of(side)
            is_known = isinstance(left, ONE_OF_A_KIND) or isinstance(right, ONE_OF_A_KIND)
            if isinstance(sign, (ast.Is, ast.IsNot)) and not is_known:
                raise ValueError("whether two are one object is not worked out here")
            value = COMPARED[type(sign)](left, right)
            if not self._way(side, value):
                return value
            left = right
        return value

    def _way(self, node: ast.expr, value: Any) -> bool:
        self._taken.add((id(node), bool(value)))
        return bool(value)


def constants_in(node: ast.expr) -> list[Any]:
    """What an expression names outside its parts."""
    if isinstance(node, ast.Constant):
        return [node.value]
    return [value for child in _below(node) for value in constants_in(child)]


def is_much(value: Any) -> bool:
    """Whether a value is too long or too large to go on with."""
    if isinstance(value, SEQUENCES):
        return len(value) > LONGEST
    return isinstance(value, int) and abs(value) > LARGEST


def _below(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, KNOWN):
        return []
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """What may have any value."""
    if isinstance(node, KNOWN):
        for child in _below(node):
            yield from _parts(child)
    elif not isinstance(node, ast.Constant):
        yield node


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    """What decides how an expression goes on."""
    if isinstance(node, ast.BoolOp):
        yield from (part for part in node.values if not isinstance(part, ast.Constant))
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield node.test
    elif isinstance(node, ast.Compare):
        yield from node.comparators
    for child in _below(node):
        yield from _choices(child)


def _acts(part: ast.expr) -> bool:
    """Whether coming to a part may do something."""
    return any(
        isinstance(node, ACTING)
        and not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ONLY_TELLING
        )
        for node in ast.walk(part)
    )


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
    if is_much(value):
        raise ValueError("too long or too large")
    return value
