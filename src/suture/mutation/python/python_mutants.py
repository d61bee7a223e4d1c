"""All small changes of a source, lazily and in the order of its lines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

from suture.mutation.edits import Edit, Mutant, trim_edit
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, parse_python_tree
from suture.mutation.python.operators import OPERATORS, Change, Operator

MOST_OF_ONE = 150
"""Changes that one operator may make of one node: in a very long function there is no end to them."""
CROWDED = 0.5
"""A change of a node weighs less by its place among the operator's others there, to this power."""
REPEATED = ("comparison", "arithmetic sign", "variable", "attribute", "called name", "constant", "key")
"""Operators whose change may be needed at several places of one function."""
EVERYWHERE = 0.4
"""What such a change weighs beside the likeliest of its parts."""
Alike = tuple[int, str, bytes, str]
PLACE = attrgetter("start", "end")
ANNOTATED = 0.1
"""What a change of an annotation weighs: next to nothing reads those at run time."""
SCALE = 0.4
"""Room below 1 for weights above the ordinary."""
NO_PLACE = (ast.JoinedStr, ast.FormattedValue, ast.pattern)
"""Nodes within which Python does not tell reliably where something stands, or takes no other expression."""


@dataclass(frozen=True, kw_only=True)
class OperatorFault:
    """An operator of ours that broke on somebody's code.

    Attributes:
        operator: Its name.
        line: The line of the node that it looked at.
        fault: Type and message.
    """

    operator: str
    line: int
    fault: str


def generate_mutants(
    source: str,
    lines: Collection[int] | None = None,
    *,
    operators: Collection[str] | None = None,
    on_fault: Callable[[OperatorFault], None] | None = None,
) -> Iterator[Mutant]:
    """Every mutant of a source; no chance is involved.

    An edit that two operators make comes again where the second thinks it likelier: what an expression is
    replaced by may be no more than another number in it.

    Args:
        source: Python; of a source that cannot be parsed there are no mutants.
        lines: Only changes that begin on one of these lines (from 1), or that guard a function whose first
            line is among them; `None` for all. Where each has a score, those of the highest come first.
        operators: Names of the operators to use; `None` for all.
        on_fault: Told of an operator that breaks, which then makes no more of that node; without it what the
            operator raised is raised.
    """
    view = parse_python_tree(source)
    if view is None:
        return
    seen: dict[tuple[Edit, ...], float] = {}
    alike: dict[Alike, list[tuple[Edit, Mutant]]] = {}
    chosen = [operator for operator in OPERATORS if operators is None or operator.name in operators]
    for line, node in _in_order(view.tree, lines):
        for operator in chosen:
            if isinstance(node, operator.nodes):
                changes = _told(node, line, operator, view, on_fault)
                yield from _of(changes, node, operator, view, seen, alike)
    for group in alike.values():
        if len(group) > 1:
            yield repeat_in_function(group)


def _in_order(tree: ast.AST, lines: Collection[int] | None) -> list[tuple[int, ast.AST]]:
    """The nodes on some lines, each with its line."""
    found = []
    for node in _nodes(tree):
        line = node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)
        if lines is None or line in lines:
            found.append((line, node))
    if isinstance(lines, Mapping):
        found.sort(key=lambda pair: -lines[pair[0]])
    return found


def _told(
    node: ast.AST,
    line: int,
    operator: Operator,
    view: PythonTree,
    on_fault: Callable[[OperatorFault], None] | None,
) -> Iterator[Change]:
    """What an operator makes of a node, as far as it comes."""
    try:
        yield from islice(operator.changes(node, view), MOST_OF_ONE)
    except Exception as fault:  # any fault of ours costs these changes, never the user's run
        if on_fault is None:
            raise
        on_fault(OperatorFault(operator=operator.name, line=line, fault=f"{type(fault).__name__}: {fault}"))


def _of(
    changes: Iterator[Change],
    node: ast.AST,
    operator: Operator,
    view: PythonTree,
    seen: dict[tuple[Edit, ...], float],
    alike: dict[Alike, list[tuple[Edit, Mutant]]],
) -> Iterator[Mutant]:
    """The new ones among an operator's changes of a node: the second likeliest waits behind other places."""
    made = []
    for change in changes:
        edits = tuple(trim_edit(e, view.raw) for e in sorted(change.edits, key=PLACE))
        if not any(e.start == e.end and not e.text for e in edits):
            made.append((change, edits))
    made.sort(key=lambda pair: -pair[0].weight)
    place = 1
    for change, edits in made:
        mutant = _mutant(node, change, edits, operator, view, place**-CROWDED)
        if mutant.prior <= seen.get(edits, -1.0):
            continue
        place += 1
        seen[edits] = mutant.prior
        yield mutant
        whole = change.edits[0]
        if len(edits) == 1 and operator.name in REPEATED and whole.start < whole.end:
            function = view.enclosing_function(node)
            if function is not None:
                key = (id(function), operator.name, view.raw[whole.start : whole.end], whole.text)
                alike.setdefault(key, []).append((edits[0], mutant))


def repeat_in_function(group: list[tuple[Edit, Mutant]]) -> Mutant:
    """The same change at each place of a function: a mistake is often made twice.

    Args:
        group: The edit of each place, and its mutant.
    """
    likeliest = max((mutant for _, mutant in group), key=lambda mutant: mutant.prior)
    return Mutant(
        edits=tuple(sorted((edit for edit, _ in group), key=lambda edit: edit.start)),
        operator=likeliest.operator,
        line=likeliest.line,
        prior=EVERYWHERE * likeliest.prior,
        label=f"{likeliest.label}, and so at {len(group) - 1} more place(s) of the function",
        in_function_body=all(mutant.in_function_body for _, mutant in group),
    )


def _mutant(
    node: ast.AST, change: Change, edits: tuple[Edit, ...], operator: Operator, view: PythonTree, share: float
) -> Mutant:
    line = view.line_at(edits[0].start)
    guards = isinstance(node, FUNCTIONS) and all(e.start == e.end for e in edits)
    share *= ANNOTATED if node in view.annotations else 1.0
    return Mutant(
        edits=edits,
        operator=operator.name,
        line=line,
        prior=min(1.0, SCALE * operator.prior * change.weight * share),
        label=f"line {line}: {change.note}",
        in_function_body=guards or view.enclosing_function(node) is not None,
    )


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree in the order of the text, but for what cannot be edited in place."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, NO_PLACE):
            continue
        yield child
        yield from _nodes(child)
