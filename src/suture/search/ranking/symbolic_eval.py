"""Evaluates expressions for given values of their parts, without running anything of the project.

Names, calls and attributes are parts that can have any value, the same wherever one appears twice. A part
that is not a plain name may raise, and a call may have effects. Which parts an expression evaluates, and in
which order, belongs to its behaviour.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from suture.search.tuning import MAX_NUMBER, MAX_TEXT_LENGTH

BINARY_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
UNARY_OPERATORS: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}  # fmt: skip
SEQUENCES = (str, bytes, tuple)
SINGLETON_TYPES = (type(None), bool)
"""Types whose equal values are the same object; for all others the interpreter decides."""
EVALUATED_NODES = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp)
"""Expressions that are computed here. All others, except constants, are parts."""
EFFECT_NODES = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
"""Expressions that may have effects."""
PURE_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "chr", "float", "hasattr", "int", "isinstance", "issubclass", "len", "max",
    "min", "ord", "repr", "round", "sorted", "str", "sum", "tuple", "type",
))  # fmt: skip
"""Builtins without effects."""
UNKNOWN = ""
"""The result of what is not evaluated here: a power, a shift, a format, or a value that is too large."""
FAILS = object()
"""Stands for the value of a part that raises."""


class _PartRaised(Exception):
    """A part raised an exception; the message is its key."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The behaviour of an expression.

    Attributes:
        text: Its value, or the exception it raises, as a string; `UNKNOWN` where that is not known.
        effects: The parts with possible effects that were evaluated, in order.
    """

    text: str
    effects: tuple[str, ...]

    def differs_from(self, other: Evaluation) -> bool:
        """Return whether two evaluations are not known to have the same result."""
        return self.text != other.text or self.text == UNKNOWN


class SymbolicEvaluator:
    """Evaluates expressions with shared parts."""

    def __init__(self, *nodes: ast.expr) -> None:
        parts = [(ast.dump(part), part) for node in nodes for part in _parts_of(node)]
        self._keys = {id(part): key for key, part in parts}
        self._with_effects = {key for key, part in parts if _may_have_effects(part)}
        self.may_fail = {key for key, part in parts if not isinstance(part, ast.Name)}
        self.parts = sorted({key for key, _ in parts})
        self._branches = {
            (id(choice), branch) for node in nodes for choice in _choices(node) for branch in (True, False)
        }
        self._taken: set[tuple[int, bool]] = set()
        self._values: Mapping[str, Any] = {}
        self._effects: list[str] = []

    @property
    def has_taken_all_branches(self) -> bool:
        """Whether each condition in the expressions was true once and false once."""
        return self._branches <= self._taken

    def evaluate(self, node: ast.expr, values: Mapping[str, Any], is_condition: bool) -> Evaluation:
        """Evaluate one of the expressions.

        Args:
            values: Part -> its value, or `FAILS`.
            is_condition: Whether only the truth of the result counts.
        """
        self._values, self._effects = values, []
        try:
            value = self._value_of(node)
            text = repr(bool(value)) if is_condition else repr(value)
        except (ArithmeticError, TypeError) as fault:
            text = type(fault).__name__
        except _PartRaised as fault:
            text = f"{fault} fails"
        except ValueError:
            text = UNKNOWN
        return Evaluation(text=text, effects=tuple(self._effects))

    def parts_in(self, node: ast.expr) -> set[str]:
        """Return the parts inside an expression that belongs to the evaluator's expressions."""
        return {self._keys[id(part)] for part in _parts_of(node)}

    def _value_of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return _require_small(node.value)
        if isinstance(node, ast.BoolOp):
            value: Any = None
            for part in node.values:
                value = self._value_of(part)
                if self._take_branch(part, value) is isinstance(node.op, ast.Or):
                    return value
            return value
        if isinstance(node, ast.IfExp):
            is_true = self._take_branch(node.test, self._value_of(node.test))
            return self._value_of(node.body if is_true else node.orelse)
        if isinstance(node, ast.UnaryOp):
            return UNARY_OPERATORS[type(node.op)](self._value_of(node.operand))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.BinOp):
            left, right = self._value_of(node.left), self._value_of(node.right)
            if type(node.op) not in BINARY_OPERATORS or _may_grow(node.op, left, right):
                raise ValueError("this operation is not evaluated")
            return _require_small(BINARY_OPERATORS[type(node.op)](left, right))
        return self._part_value(node)

    def _part_value(self, node: ast.expr) -> Any:
        key = self._keys[id(node)]
        if key in self._with_effects:
            self._effects.append(key)
        value = self._values[key]
        if value is FAILS:
            raise _PartRaised(key)
        return value

    def _compare(self, node: ast.Compare) -> Any:
        value, left = True, self._value_of(node.left)
        for sign, side in zip(node.ops, node.comparators, strict=True):
            right = self._value_of(side)
            is_known = isinstance(left, SINGLETON_TYPES) or isinstance(right, SINGLETON_TYPES)
            if isinstance(sign, (ast.Is, ast.IsNot)) and not is_known:
                raise ValueError("identity is not evaluated")
            value = COMPARISONS[type(sign)](left, right)
            if not self._take_branch(side, value):
                return value
            left = right
        return value

    def _take_branch(self, node: ast.expr, value: Any) -> bool:
        self._taken.add((id(node), bool(value)))
        return bool(value)


def constants_outside_parts(node: ast.expr) -> list[Any]:
    """Return the constants of an expression that are not inside its parts."""
    if isinstance(node, ast.Constant):
        return [node.value]
    return [value for child in _evaluated_children(node) for value in constants_outside_parts(child)]


def is_too_large(value: Any) -> bool:
    """Return whether a value is too long or too large to continue with."""
    if isinstance(value, SEQUENCES):
        return len(value) > MAX_TEXT_LENGTH
    return isinstance(value, int) and abs(value) > MAX_NUMBER


def _evaluated_children(node: ast.expr) -> list[ast.expr]:
    if not isinstance(node, EVALUATED_NODES):
        return []
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _parts_of(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of an expression, which may have any value."""
    if isinstance(node, EVALUATED_NODES):
        for child in _evaluated_children(node):
            yield from _parts_of(child)
    elif not isinstance(node, ast.Constant):
        yield node


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the nodes whose truth decides how the evaluation continues."""
    if isinstance(node, ast.BoolOp):
        yield from (part for part in node.values if not isinstance(part, ast.Constant))
    elif isinstance(node, ast.IfExp) and not isinstance(node.test, ast.Constant):
        yield node.test
    elif isinstance(node, ast.Compare):
        yield from node.comparators
    for child in _evaluated_children(node):
        yield from _choices(child)


def _may_have_effects(part: ast.expr) -> bool:
    return any(isinstance(node, EFFECT_NODES) and not _is_pure_call(node) for node in ast.walk(part))


def _is_pure_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PURE_BUILTINS


def _may_grow(sign: ast.operator, left: Any, right: Any) -> bool:
    """Return whether an operation may produce a value of any size; a format may name any width."""
    if isinstance(sign, ast.Mod):
        return isinstance(left, (str, bytes))
    return isinstance(sign, ast.Mult) and any(
        isinstance(sequence, SEQUENCES) and isinstance(count, int) and len(sequence) * count > MAX_TEXT_LENGTH
        for sequence, count in ((left, right), (right, left))
    )


def _require_small(value: Any) -> Any:
    """Return a value, or raise `ValueError` if it is too large."""
    if is_too_large(value):
        raise ValueError("the value is too large")
    return value
