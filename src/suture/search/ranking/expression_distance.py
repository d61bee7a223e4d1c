"""Measures how far two versions of an expression can differ, without running anything of the project.

Names, calls and attributes can have any value, the same wherever one appears twice. Both versions are
evaluated for many such values: `n - 2 + 1` and `n - 1` agree on all of them, `not (a or b)` and `not a or
b` do not. Only the expression counts, so a value that no caller ever passes counts too. Guards and
effects count as well: `node and node.next` differs from `node.next and node`, and one call differs from two.

Statements have a normal form, so that changes which differ only by redundant parts are equal. `except (ValueError,
Exception)` catches what `except Exception` catches, `range(0, n)` is `range(n)`, and `len(x) >= 1` is `len(x) > 0`.
Only forms that are equal for every input are joined. Names of builtins count only where the file does not bind them
itself.
"""

from __future__ import annotations

import ast
import builtins
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from suture.mutation import Edit, apply_edits
from suture.mutation.edits import decode_source, encode_source
from suture.mutation.python.edit_locations import find_statement_span
from suture.project.python_source.parsing import parse_module
from suture.search.ranking.symbolic_eval import (
    EVALUATED_NODES,
    FAILS,
    SymbolicEvaluator,
    constants_outside_parts,
    is_too_large,
)
from suture.search.tuning import COMPARED_VALUE_RATE, FAILURE_RATE, MAX_PARTS, MAX_VALUE_SETS, VALUES_PER_SET

BASIC_VALUES = (0, 1, 2, -1, 3, True, False, None, "", "a", "ab", (), (1,), 1.5)
"""A few values of each plain type, with the edge cases."""
STEPS = (-1, -0.5, 0.5, 1)
"""From a number in the expression to its neighbours: `n < 10` differs from `n <= 9` where `n` is 9.5."""
CONDITIONAL_NODES = (ast.If, ast.While, ast.IfExp, ast.Assert)
"""Nodes of whose `test` only the truth counts."""


def measure_distance(text: str, left: Sequence[Edit], right: Sequence[Edit]) -> float:
    """Return the share of values for which two changes of a source differ; no edits for the unchanged source.

    The share is 0 where nothing distinguishes them, and 1 where they differ by more than one readable expression.
    What cannot be evaluated counts as different, because it is not known to be equal.
    """
    start, end = find_statement_span(text, (*left, *right))
    statement = decode_source(encode_source(text)[start:end])

    def change_statement(edits: Sequence[Edit]) -> str:
        shifted = [replace(edit, start=edit.start - start, end=edit.end - start) for edit in edits]
        changed = apply_edits(statement, shifted)
        # The indentation stays: removing it would change strings of several lines.
        indent = changed[: len(changed) - len(changed.lstrip(" \t"))]
        if changed.startswith("except", len(indent)):  # a clause is not a statement by itself
            changed = f"{indent}try:\n{indent} pass\n{changed}"
        return f"if True:\n{changed}" if indent else changed

    return _text_distance(change_statement(left), change_statement(right), _bound_builtins(text))


def count_redundant_operations(text: str) -> int:
    """Return how many operations of a source have no effect: `x + 0`, `x * 1`, `x or False`."""
    tree = parse_module(text)
    return sum(map(_is_redundant, ast.walk(tree))) if tree is not None else 0


def _is_redundant(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.BitOr(), right=ast.Constant(value=value)):
            return type(value) is int and value == 0
        case ast.BinOp(op=ast.Mult() | ast.FloorDiv() | ast.Pow(), right=ast.Constant(value=value)):
            return type(value) is int and value == 1
        case ast.BoolOp(op=operator, values=[*_, ast.Constant(value=bool() as value)]):
            return value is isinstance(operator, ast.And)
    return False


@lru_cache(maxsize=16)
def _bound_builtins(text: str) -> frozenset[str]:
    tree = parse_module(text)
    return find_bound_builtins(tree) if tree is not None else frozenset(vars(builtins))


@lru_cache(maxsize=512)
def _text_distance(left: str, right: str, bound: frozenset[str]) -> float:
    trees = [tree for tree in (parse_module(left), parse_module(right)) if tree is not None]
    if len(trees) == 2:
        # A number may be too long for `repr`, and an expression too deep for recursion.
        with suppress(ValueError, RecursionError):
            left_tree, right_tree = (NormalForm(bound).visit(tree) for tree in trees)
            return _tree_distance(left_tree, right_tree)
    return float(left != right)


def _tree_distance(left_tree: ast.Module, right_tree: ast.Module) -> float:
    pair, is_condition = _differing_nodes(left_tree, right_tree)
    if pair is None:
        return 0.0
    left, right = pair
    if not (isinstance(left, ast.expr) and isinstance(right, ast.expr)):
        return 1.0
    distance = _expression_distance(left, right, is_condition)
    # A call is one unknown part, so `f(a + 0)` and `f(a)` seem to differ until their arguments are compared.
    inner_pairs = _inner_differences(left, right)
    if distance and any(_expression_distance(*pair, is_condition=False) == 0.0 for pair in inner_pairs):
        return 0.0
    return distance


def _expression_distance(left: ast.expr, right: ast.expr, is_condition: bool) -> float:
    evaluator = SymbolicEvaluator(left, right)
    if len(evaluator.parts) > MAX_PARTS:  # not evaluated, so not known to be equal
        return 1.0
    value_sets, are_all = _value_sets(evaluator, left, right)
    results = [
        (evaluator.evaluate(left, values, is_condition), evaluator.evaluate(right, values, is_condition))
        for values in value_sets
    ]
    differing_count = sum(left_result.differs_from(right_result) for left_result, right_result in results)
    if differing_count:
        return differing_count / len(results)
    has_same_effects = all(
        left_result.effects == right_result.effects for left_result, right_result in results
    )
    # Equal results of drawn values say something only if all branches of both expressions were taken.
    # Without that they are not known to be equal, and have the least distance that can be measured.
    is_equal = has_same_effects and (are_all or evaluator.has_taken_all_branches)
    return 0.0 if is_equal else 1 / MAX_VALUE_SETS


def _differing_nodes(left: ast.AST, right: ast.AST) -> tuple[tuple[ast.AST, ast.AST] | None, bool]:
    """Return `(pair of the outermost nodes around all differences, whether these nodes are conditions)`."""
    if ast.dump(left) == ast.dump(right):
        return None, False
    is_condition = False
    while type(left) is type(right) and not isinstance(left, EVALUATED_NODES):
        differences = list(_unequal_children(left, right))
        if len(differences) != 1 or differences[0] is None:
            break
        field_name, left_child, right_child = differences[0]
        is_condition = isinstance(left, CONDITIONAL_NODES) and field_name == "test"
        left, right = left_child, right_child
    return (left, right), is_condition


def _inner_differences(left: ast.AST, right: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what differs inside nodes that are not evaluated, such as arguments; outermost first."""
    while type(left) is type(right):
        differences = list(_unequal_children(left, right))
        if len(differences) != 1 or differences[0] is None:
            return
        is_evaluated = isinstance(left, EVALUATED_NODES)
        _, left, right = differences[0]
        if not is_evaluated and isinstance(left, ast.expr) and isinstance(right, ast.expr):
            yield left, right


def _unequal_children(left: ast.AST, right: ast.AST) -> Iterator[tuple[str, ast.AST, ast.AST] | None]:
    """Yield `(field, left child, right child)` of children that differ; `None` for those that are not nodes."""
    for field_name, left_value in ast.iter_fields(left):
        right_value = getattr(right, field_name, None)
        left_items, right_items = (v if isinstance(v, list) else [v] for v in (left_value, right_value))
        if len(left_items) != len(right_items):
            yield None
            continue
        for left_child, right_child in zip(left_items, right_items, strict=True):
            if isinstance(left_child, ast.AST) and isinstance(right_child, ast.AST):
                if ast.dump(left_child) != ast.dump(right_child):
                    yield field_name, left_child, right_child
            elif left_child != right_child:
                yield None


def _value_sets(evaluator: SymbolicEvaluator, *nodes: ast.expr) -> tuple[list[dict[str, Any]], bool]:
    """Return `(sets of values for the parts, whether these are all combinations)`."""
    parts, values = evaluator.parts, _possible_values(constants_outside_parts(node) for node in nodes)
    options = [(*values, FAILS) if part in evaluator.may_fail else values for part in parts]
    if math.prod(map(len, options)) <= MAX_VALUE_SETS:
        return [dict(zip(parts, combination, strict=True)) for combination in product(*options)], True
    compared: dict[str, list[Any]] = {}
    for node in nodes:
        for leaf in _leaves(node):
            constants = [value for value in constants_outside_parts(leaf) if not is_too_large(value)]
            for part in evaluator.parts_in(leaf):
                compared.setdefault(part, []).extend(constants)
    neighbours = {part: _possible_values([constants]) for part, constants in compared.items()}
    random_source = random.Random(0)
    drawn = [_draw(evaluator, values, compared, neighbours, random_source) for _ in range(MAX_VALUE_SETS)]
    return drawn, False


def _draw(
    evaluator: SymbolicEvaluator,
    values: Sequence[Any],
    compared: Mapping[str, Sequence[Any]],
    neighbours: Mapping[str, Sequence[Any]],
    random_source: random.Random,
) -> dict[str, Any]:
    """Draw a value for each part: what it is compared with, a neighbour of that, or a shared value."""
    shared = [random_source.choice(values) for _ in range(VALUES_PER_SET)]
    drawn: dict[str, Any] = {}
    for part in evaluator.parts:
        chance, constants = random_source.random(), compared.get(part)
        if part in evaluator.may_fail and chance < FAILURE_RATE:
            drawn[part] = FAILS
        elif constants and chance < COMPARED_VALUE_RATE:
            drawn[part] = random_source.choice(constants)
        elif constants and chance < 2 * COMPARED_VALUE_RATE:
            drawn[part] = random_source.choice(neighbours[part])
        else:
            drawn[part] = random_source.choice(shared)
    return drawn


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions without boolean operators, in which constants relate to their neighbours."""
    is_negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    if isinstance(node, (ast.BoolOp, ast.IfExp)) or is_negation:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _leaves(child)
    else:
        yield node


def _possible_values(constants: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    """Return values that an unknown part may have: constants of the expressions, neighbours, basic values."""
    small = [value for values in constants for value in values if not is_too_large(value)]
    neighbours = [value + step for value in small if isinstance(value, (int, float)) for step in STEPS]
    plain = [value for value in (*small, *neighbours) if isinstance(value, (int, float, str, bytes))]
    return tuple({repr(value): value for value in (*BASIC_VALUES, *plain)}.values())


BUILTIN_CLASSES = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
"""Builtin classes by name; some have several names, as `OSError` has."""
CLASS_CHECKS = ("isinstance", "issubclass")
INT_BUILTINS = ("len", "ord")
"""Builtins whose result is an int."""
INT_METHODS = frozenset(("weekday", "isoweekday", "toordinal"))
"""Methods of dates whose result is an int; other classes hardly use their names."""
STRICT_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], int]] = {
    ast.GtE: (ast.Gt, 1),
    ast.LtE: (ast.Lt, -1),
}
"""Comparison of ints -> the strict one that is equal if a number on its left becomes larger by the given step."""


def find_bound_builtins(tree: ast.Module) -> frozenset[str]:
    """Return the names of builtins that a file binds itself, anywhere; a star import may bind any of them."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name="*"):
                return frozenset(vars(builtins))
            case ast.alias(name=name, asname=asname):
                bound.add(asname or name.partition(".")[0])
    return frozenset(bound & vars(builtins).keys())


class NormalForm(ast.NodeTransformer):
    """Replaces each redundant form by the shortest one.

    Args:
        bound: Names of builtins that mean something else in this file.
    """

    def __init__(self, bound: frozenset[str]) -> None:
        self._bound = bound

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Leave out classes that another class of the same handler covers."""
        self.generic_visit(node)
        if node.type is not None:
            node.type = self._shorten_classes(node.type)
            if self._is_builtin(node.type, "BaseException"):
                node.type = None if node.name is None else node.type
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out redundant classes of a class check, and defaults of `range`."""
        self.generic_visit(node)
        if any(isinstance(argument, ast.Starred) for argument in node.args) or node.keywords:
            return node
        if any(self._is_builtin(node.func, name) for name in CLASS_CHECKS) and len(node.args) == 2:
            node.args[1] = self._shorten_classes(node.args[1])
        elif self._is_builtin(node.func, "range"):
            if len(node.args) == 3 and _is_int(node.args[2], 1):
                node.args.pop()
            if len(node.args) == 2 and _is_int(node.args[0], 0):
                node.args.pop(0)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Write `len(x) >= 1` as `len(x) > 0`, because a length is an int."""
        self.generic_visit(node)
        strict = STRICT_COMPARISONS.get(type(node.ops[0]))
        if strict is None or len(node.ops) > 1:
            return node
        sign, step = strict
        left, right = node.left, node.comparators[0]
        for number, other, change in ((left, right, step), (right, left, -step)):
            if isinstance(number, ast.Constant) and type(number.value) is int and self._returns_int(other):
                node.ops, number.value = [sign()], number.value + change
                break
        return node

    def _returns_int(self, node: ast.expr) -> bool:
        """Return whether an expression is a call whose result is an int."""
        if not isinstance(node, ast.Call):
            return False
        is_date_method = isinstance(node.func, ast.Attribute) and node.func.attr in INT_METHODS
        return is_date_method or any(self._is_builtin(node.func, name) for name in INT_BUILTINS)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Write `return None` as `return`."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None
        return node

    def _shorten_classes(self, node: ast.expr) -> ast.expr:
        """Return a tuple of classes without repeated ones and subclasses of others, in a fixed order."""
        if not isinstance(node, ast.Tuple) or not all(isinstance(each, ast.Name) for each in node.elts):
            return node
        names = {self._canonical_name(each.id) for each in node.elts if isinstance(each, ast.Name)}
        known = {
            name: BUILTIN_CLASSES[name] for name in names if name in BUILTIN_CLASSES.keys() - self._bound
        }
        covered = {
            name
            for name, cls in known.items()
            if any(issubclass(cls, o) for o in known.values() if o is not cls)
        }
        classes: list[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in sorted(names - covered)]
        return classes[0] if len(classes) == 1 else ast.Tuple(elts=classes, ctx=ast.Load())

    def _canonical_name(self, name: str) -> str:
        """Return the name of a builtin class that the class itself has: `OSError` for `IOError`."""
        known = BUILTIN_CLASSES.get(name) if name not in self._bound else None
        return name if known is None or known.__name__ in self._bound else known.__name__

    def _is_builtin(self, node: ast.AST, name: str) -> bool:
        return isinstance(node, ast.Name) and node.id == name and name not in self._bound


def _is_int(node: ast.AST, value: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value
