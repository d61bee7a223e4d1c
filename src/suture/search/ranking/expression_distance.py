"""Measures how far two versions of an expression can differ, without running anything of the project.

Names, calls and attributes can have any value, the same wherever one appears twice. Both versions are
evaluated for many such values: `n - 2 + 1` and `n - 1` agree on all of them, `not (a or b)` and `not a or
b` do not. Only the expression counts, so that a value which no caller ever passes counts too. Guards and
effects count as well: `node and node.next` differs from `node.next and node`, and one call of a function
differs from two.
"""

from __future__ import annotations

import ast
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
from suture.search.tuning import (
    COMPARED_VALUE_RATE,
    FAILURE_RATE,
    MAX_PARTS,
    MAX_VALUE_SETS,
    VALUES_PER_SET,
)

BASIC_VALUES = (0, 1, 2, -1, 3, True, False, None, "", "a", "ab", (), (1,), 1.5)
"""A few values of each plain type, with the edge cases."""
STEPS = (-1, -0.5, 0.5, 1)
"""From a number in the expression to its neighbours: `n < 10` differs from `n <= 9` where `n` is 9.5."""
CONDITIONAL_NODES = (ast.If, ast.While, ast.IfExp, ast.Assert)


def measure_distance(text: str, one: Sequence[Edit], other: Sequence[Edit]) -> float:
    """Return the share of values for which two changes of a source differ.

    Args:
        one: The edits of one change.
        other: The edits of the other; empty for the unchanged source.

    Returns:
        0 where nothing distinguishes them, 1 where they differ by more than one readable expression. What
        cannot be evaluated counts as different, because it is not known to be equal.
    """
    start, end = find_statement_span(text, (*one, *other))
    statement = decode_source(encode_source(text)[start:end])
    versions = [
        apply_edits(
            statement, [replace(edit, start=edit.start - start, end=edit.end - start) for edit in edits]
        )
        for edits in (one, other)
    ]
    # The indentation stays: removing it would change strings of several lines.
    return _text_distance(*(f"if True:\n{text}" if text[:1].isspace() else text for text in versions))


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


@lru_cache(maxsize=512)
def _text_distance(one: str, other: str) -> float:
    first, second = parse_module(one), parse_module(other)
    if first is not None and second is not None:
        # A number may be too long for `repr`, and an expression too deep for recursion.
        with suppress(ValueError, RecursionError):
            return _tree_distance(first, second)
    return float(one != other)


def _tree_distance(first: ast.Module, second: ast.Module) -> float:
    pair, is_condition = _differing_nodes(first, second)
    if pair is None:
        return 0.0
    left, right = pair
    if not (isinstance(left, ast.expr) and isinstance(right, ast.expr)):
        return 1.0
    distance = _expression_distance(left, right, is_condition)
    inner = _inner_differences(left, right)
    if distance and any(_expression_distance(*pair, is_condition=False) == 0.0 for pair in inner):
        return 0.0
    return distance


def _expression_distance(left: ast.expr, right: ast.expr, is_condition: bool) -> float:
    evaluator = SymbolicEvaluator(left, right)
    if len(evaluator.parts) > MAX_PARTS:
        return 1.0
    value_sets, are_all = _value_sets(evaluator, left, right)
    results = [
        (evaluator.evaluate(left, values, is_condition), evaluator.evaluate(right, values, is_condition))
        for values in value_sets
    ]
    differing = sum(ours.differs_from(theirs) for ours, theirs in results)
    if differing:
        return differing / len(results)
    has_same_effects = all(ours.effects == theirs.effects for ours, theirs in results)
    # Equal results of drawn values say something only if all branches of both expressions were taken.
    is_equal = has_same_effects and (are_all or evaluator.has_taken_all_branches)
    return 0.0 if is_equal else 1 / MAX_VALUE_SETS


def _differing_nodes(one: ast.AST, other: ast.AST) -> tuple[tuple[ast.AST, ast.AST] | None, bool]:
    """Return the outermost nodes around all differences, and whether they are conditions."""
    if ast.dump(one) == ast.dump(other):
        return None, False
    is_condition = False
    while type(one) is type(other) and not isinstance(one, EVALUATED_NODES):
        below = list(_unequal_children(one, other))
        if len(below) != 1 or below[0] is None:
            break
        name, deeper, across = below[0]
        is_condition = isinstance(one, CONDITIONAL_NODES) and name == "test"
        one, other = deeper, across
    return (one, other), is_condition


def _inner_differences(left: ast.AST, right: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what differs inside nodes that are not evaluated, such as arguments; outermost first."""
    while type(left) is type(right):
        below = list(_unequal_children(left, right))
        if len(below) != 1 or below[0] is None:
            return
        is_evaluated = isinstance(left, EVALUATED_NODES)
        _, left, right = below[0]
        if not is_evaluated and isinstance(left, ast.expr) and isinstance(right, ast.expr):
            yield left, right


def _unequal_children(one: ast.AST, other: ast.AST) -> Iterator[tuple[str, ast.AST, ast.AST] | None]:
    """Yield the children that differ, in pairs; `None` for a difference without a counterpart."""
    for name, value in ast.iter_fields(one):
        counterpart = getattr(other, name, None)
        ours, theirs = (v if isinstance(v, list) else [v] for v in (value, counterpart))
        if len(ours) != len(theirs):
            yield None
            continue
        for left, right in zip(ours, theirs, strict=True):
            if isinstance(left, ast.AST) and isinstance(right, ast.AST):
                if ast.dump(left) != ast.dump(right):
                    yield name, left, right
            elif left != right:
                yield None


def _value_sets(evaluator: SymbolicEvaluator, *nodes: ast.expr) -> tuple[list[dict[str, Any]], bool]:
    """Return values for the parts, and whether these are all combinations."""
    parts, values = evaluator.parts, _possible_values(constants_outside_parts(node) for node in nodes)
    options = [(*values, FAILS) if part in evaluator.may_fail else values for part in parts]
    count = 1
    for own in options:
        count *= len(own)
    if count <= MAX_VALUE_SETS:
        return [dict(zip(parts, chosen, strict=True)) for chosen in product(*options)], True
    compared: dict[str, list[Any]] = {}
    for node in nodes:
        for leaf in _leaves(node):
            constants = [one for one in constants_outside_parts(leaf) if not is_too_large(one)]
            for part in evaluator.parts_in(leaf):
                compared.setdefault(part, []).extend(constants)
    near = {part: _possible_values([constants]) for part, constants in compared.items()}
    random_source = random.Random(0)
    drawn = [_draw(evaluator, values, compared, near, random_source) for _ in range(MAX_VALUE_SETS)]
    return drawn, False


def _draw(
    evaluator: SymbolicEvaluator,
    values: Sequence[Any],
    compared: Mapping[str, Sequence[Any]],
    near: Mapping[str, Sequence[Any]],
    random_source: random.Random,
) -> dict[str, Any]:
    """Draw a value for each part: what it is compared with, a neighbour of that, or a shared value."""
    shared = [random_source.choice(values) for _ in range(VALUES_PER_SET)]
    drawn: dict[str, Any] = {}
    for part in evaluator.parts:
        chance, own = random_source.random(), compared.get(part)
        if part in evaluator.may_fail and chance < FAILURE_RATE:
            drawn[part] = FAILS
        elif own and chance < COMPARED_VALUE_RATE:
            drawn[part] = random_source.choice(own)
        else:
            drawn[part] = random_source.choice(
                near[part] if own and chance < 2 * COMPARED_VALUE_RATE else shared
            )
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
    small = [value for some in constants for value in some if not is_too_large(value)]
    near = [value + step for value in small if isinstance(value, (int, float)) for step in STEPS]
    plain = [value for value in (*small, *near) if isinstance(value, (int, float, str, bytes))]
    return tuple({repr(value): value for value in (*BASIC_VALUES, *plain)}.values())
