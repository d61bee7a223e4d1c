"""Two texts of one expression, without running anything of the project: whether they can differ, and how far.

Names, calls and attributes stand for any value, the same wherever one stands twice. Both texts are worked out
for many such values: `n - 2 + 1` and `n - 1` agree on all of them, `not (a or b)` and `not a or b` do not.
That is about the expression alone: a value that no caller ever brings counts as well. And a guard counts:
`node and node.next` is not `node.next and node`, nor is what calls something once what calls it twice.
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

from suture.mutation.edits import Edit, apply_edits
from suture.mutation.python.edit_locations import find_statement_span
from suture.project.python_source.parsing import parsed
from suture.search.ranking.symbolic_eval import FAILS, KNOWN, SymbolicEvaluator, constants_in, is_much

VALUES = (0, 1, 2, -1, 3, True, False, None, "", "a", "ab", (), (1,), 1.5)
"""A few of each plain type, the edges among them."""
STEPS = (-1, -0.5, 0.5, 1)
"""From a number that an expression names to those beside it: `n < 10` is not `n <= 9` where `n` is 9.5."""
DRAWN = 1000
"""Sets of values, where not all can be tried."""
POOL = 3
"""Values of one set, as far as it is drawn from all: parts that are compared must be equal now and then."""
SELDOM = 0.05
"""How often a part ends with an exception, where sets are drawn."""
OFTEN = 0.35
"""How often it is just what it is compared with: of five conditions all must be true now and then."""
MOST_PARTS = 6
ASKED = (ast.If, ast.While, ast.IfExp, ast.Assert)


def measure_distance(text: str, one: Sequence[Edit], other: Sequence[Edit]) -> float:
    """How far two changes of a source differ: the share of values for which the expression in question does.

    Args:
        text: The source.
        one: A change.
        other: Another; empty for the source as it is.

    Returns:
        0 where nothing tells them apart, 1 where they differ by more than one expression that can be read.
        What is not worked out counts as different: that they do the same is not known then.
    """
    start, end = find_statement_span(text, (*one, *other))
    raw = text.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")
    texts = [
        apply_edits(raw, [replace(edit, start=edit.start - start, end=edit.end - start) for edit in edits])
        for edits in (one, other)
    ]
    # Indented as it is: to take that away would change what stands in a string of several lines.
    return _apart(*(f"if True:\n{one}" if one[:1].isspace() else one for one in texts))


def count_redundant_operations(text: str) -> int:
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
        # A number in it may be too long to be written out, and an expression too deep to be gone through.
        with suppress(ValueError, RecursionError):
            return _trees_apart(first, second)
    return float(one != other)


def _trees_apart(first: ast.Module, second: ast.Module) -> float:
    pair, is_asked = _differing(first, second)
    if pair is None:
        return 0.0
    left, right = pair
    if not (isinstance(left, ast.expr) and isinstance(right, ast.expr)):
        return 1.0
    share = _expressions_apart(left, right, is_asked)
    if share and any(_expressions_apart(*inner, is_asked=False) == 0.0 for inner in _within(left, right)):
        return 0.0
    return share


def _expressions_apart(left: ast.expr, right: ast.expr, is_asked: bool) -> float:
    working = SymbolicEvaluator(left, right)
    if len(working.parts) > MOST_PARTS:
        return 1.0
    given, is_all = _given(working, left, right)
    said = [tuple(working.said(node, one, is_asked) for node in (left, right)) for one in given]
    differing = sum(ours.differs(theirs) for ours, theirs in said)
    if differing:
        return differing / len(said)
    does_the_same = all(ours.acted == theirs.acted for ours, theirs in said)
    # Of what was drawn, that it is equal says something only where all of both was come to.
    return 0.0 if does_the_same and (is_all or working.has_gone_all_ways) else 1 / DRAWN


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


def _within(left: ast.AST, right: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What differs within what is not worked out, as the argument of a call; outermost first."""
    while type(left) is type(right):
        below = list(_unequal(left, right))
        if len(below) != 1 or below[0] is None:
            return
        is_known = isinstance(left, KNOWN)
        _, left, right = below[0]
        if not is_known and isinstance(left, ast.expr) and isinstance(right, ast.expr):
            yield left, right


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


def _given(working: SymbolicEvaluator, *nodes: ast.expr) -> tuple[list[dict[str, Any]], bool]:
    """Values for the parts, and whether that is all there are."""
    parts, values = working.parts, _values(constants_in(node) for node in nodes)
    each = [(*values, FAILS) if part in working.may_fail else values for part in parts]
    count = 1
    for own in each:
        count *= len(own)
    if count <= DRAWN:
        return [dict(zip(parts, given, strict=True)) for given in product(*each)], True
    beside: dict[str, list[Any]] = {}
    for node in nodes:
        for leaf in _leaves(node):
            for part in working.keys_in(leaf):
                beside.setdefault(part, []).extend(one for one in constants_in(leaf) if not is_much(one))
    near = {part: _values([own]) for part, own in beside.items()}
    draw = random.Random(0)
    return [_drawn(working, values, beside, near, draw) for _ in range(DRAWN)], False


def _drawn(
    working: SymbolicEvaluator,
    values: Sequence[Any],
    beside: Mapping[str, Sequence[Any]],
    near: Mapping[str, Sequence[Any]],
    draw: random.Random,
) -> dict[str, Any]:
    """One set: what a part is compared with, what is near that, or of a few values that all parts share."""
    pool = [draw.choice(values) for _ in range(POOL)]
    found: dict[str, Any] = {}
    for part in working.parts:
        way, own = draw.random(), beside.get(part)
        if part in working.may_fail and way < SELDOM:
            found[part] = FAILS
        elif own and way < OFTEN:
            found[part] = draw.choice(own)
        else:
            found[part] = draw.choice(near[part] if own and way < 2 * OFTEN else pool)
    return found


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that hold no condition: in each, constants stand beside what they say something of."""
    if isinstance(node, (ast.BoolOp, ast.IfExp)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _leaves(child)
    else:
        yield node


def _values(named: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    """What an unknown part may be: what the expressions name, beside it, and a few of each plain type."""
    small = [value for some in named for value in some if not is_much(value)]
    near = [value + step for value in small if isinstance(value, (int, float)) for step in STEPS]
    plain = [value for value in (*small, *near) if isinstance(value, (int, float, str, bytes))]
    return tuple({repr(value): value for value in (*VALUES, *plain)}.values())
