"""Turns the changes that operators propose into mutants, in any language: their priors, order and repetitions."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from suture.mutation import tuning
from suture.mutation.changes import (
    REPEATABLE,
    Change,
    FaultReporter,
    ValueDifference,
    build_mutant,
    repeat_change,
)
from suture.mutation.edits import Edit, Mutant, OperatorName
from suture.mutation.python.operators import OPERATORS
from suture.mutation.python.python_tree import PythonTree, parse_python_tree
from suture.mutation.python.scope_names import ObservedKinds
from suture.mutation.tuning import ANNOTATION_FACTOR
from suture.project.python_source.scopes import FUNCTIONS

Node = Any
"""A node of a syntax tree, of Python or of tree-sitter."""
OperatorChanges = tuple[OperatorName, Callable[[], Iterator[Change]]]
"""An operator, and a function that yields its changes of one node."""
WORD = re.compile(r"[^\W\d]\w*")
RepeatKey = tuple[Hashable | None, OperatorName, str, bytes, str]
"""`(function, operator, assigned variable, code before, code after)` of a change that may be needed at several places.

The function is `None` where the key stands for all places of the file. The variable is empty where the places may
assign to any. An insertion has no code before: its note stands for what it belongs to, such as calls of `open`.
"""


@dataclass(frozen=True, kw_only=True)
class MutableSource:
    """A parsed source with what the generation of mutants needs.

    Attributes:
        raw: The UTF-8 bytes of the source.
        nodes: `(line, node)` of the nodes that may be changed, in source order.
        list_operators: Returns the operators for a node.
        find_function: Returns what identifies the function that holds a node; `None` outside of functions.
        lies_in_body: Returns whether a change of a node is in the body of a function.
        node_factor: Returns a factor on the priors of a node's changes.
        repeats_in_file: Whether a change may be made in several functions at once.
        find_variable: Returns the variable to which a node's value is assigned; empty if there is none. Where the
            same variable is assigned again, the same mistake may have been made again.
        weigh_unread: Returns the variables of the function around a node that the function binds and never reads, and
            how much likelier a change is that reads each.
    """

    raw: bytes
    nodes: Sequence[tuple[int, Node]]
    list_operators: Callable[[Node], Iterable[OperatorChanges]]
    find_function: Callable[[Node], Hashable | None]
    lies_in_body: Callable[[Node, Change], bool]
    node_factor: Callable[[Node], float] = lambda node: 1.0
    repeats_in_file: bool = False
    find_variable: Callable[[Node], str] = lambda node: ""
    weigh_unread: Callable[[Node], Mapping[str, float]] = lambda node: {}


def generate_from(
    source: MutableSource, lines: Collection[int] | None, on_fault: FaultReporter | None = None
) -> Iterator[Mutant]:
    """Yield the mutants of a source, then those that repeat a change in its function. The result is deterministic.

    An edit that two operators make is yielded again when the second operator considers it likelier.

    Args:
        lines: Only nodes on these lines, from 1, are changed; `None` for all. If it is a mapping to scores, lines with
            the highest scores come first.
        on_fault: Called if an operator raises an exception. The operator then makes no more changes of that node.
            Without it, the exception propagates.
    """
    generator = _Generator(source, on_fault)
    for line, node in _select_nodes(source.nodes, lines):
        for operator, changes in source.list_operators(node):
            yield from generator.mutants_of(node, line, operator, changes)
    yield from generator.repeated_changes()


def _select_nodes(nodes: Sequence[tuple[int, Node]], lines: Collection[int] | None) -> list[tuple[int, Node]]:
    nodes_per_line = Counter(line for line, _ in nodes)
    chosen = [
        (line, node)
        for line, node in nodes
        if (lines is None or line in lines) and nodes_per_line[line] <= tuning.MAX_NODES_PER_LINE
    ]
    if isinstance(lines, Mapping):
        chosen.sort(key=lambda pair: -lines[pair[0]])
    return chosen


class _Generator:
    """Generates the mutants of one source, and remembers which edits it has made."""

    def __init__(self, source: MutableSource, on_fault: FaultReporter | None) -> None:
        self._source, self._on_fault = source, on_fault
        self._line_starts = [0, *(match.end() for match in re.finditer(rb"\n", source.raw))]
        self._priors: dict[tuple[Edit, ...], float] = {}
        self.repeatable: dict[RepeatKey, list[tuple[Edit, Mutant]]] = {}

    def mutants_of(
        self, node: Node, line: int, operator: OperatorName, generate: Callable[[], Iterator[Change]]
    ) -> Iterator[Mutant]:
        """Yield the new mutants that an operator makes of a node, the likeliest first.

        Their priors decrease with their rank: if an operator offers many changes, each of them is less likely.
        """
        source, changes = self._source, []
        for change in self._changes(line, operator, generate):
            edits = change.trimmed_edits(source.raw)
            if all(edit.start < edit.end or edit.text for edit in edits):  # else nothing is left to change
                changes.append((change, edits))
        if changes and (unread := source.weigh_unread(node)):
            changes = [(_favour_reads(unread, change), edits) for change, edits in changes]
        changes.sort(key=lambda pair: -pair[0].weight)
        rank, node_factor = 1, source.node_factor(node) if changes else 1.0
        for change, edits in changes:
            mutant = build_mutant(
                change,
                edits,
                operator,
                bisect_right(self._line_starts, edits[0].start),
                rank**-tuning.CROWDING_EXPONENT * node_factor,
                in_function_body=source.lies_in_body(node, change),
            )
            if mutant.prior <= self._priors.get(edits, -1.0):
                continue
            rank += 1
            self._priors[edits] = mutant.prior
            yield mutant
            self._add_repeatable(node, change, mutant)

    def repeated_changes(self) -> Iterator[Mutant]:
        """Yield the mutants that make one change at all places of a function, or of the file."""
        made: set[tuple[Edit, ...]] = set()
        for (function, *_), group in self.repeatable.items():
            if 1 < len(group) <= tuning.MAX_REPEATED_PLACES:
                mutant = repeat_change(group, in_one_function=function is not None)
                if mutant.edits not in made:
                    made.add(mutant.edits)
                    yield mutant

    def _changes(
        self, line: int, operator: OperatorName, generate: Callable[[], Iterator[Change]]
    ) -> Iterator[Change]:
        try:
            yield from islice(generate(), tuning.MAX_CHANGES_PER_NODE)
        except Exception as fault:  # a fault in an operator must not end the user's run
            if self._on_fault is None:
                raise
            self._on_fault(operator, line, fault)

    def _add_repeatable(self, node: Node, change: Change, mutant: Mutant) -> None:
        """Remember a mutant whose change may be needed at several places of its function."""
        untrimmed, function = change.edits[0], self._source.find_function(node)
        if mutant.operator not in REPEATABLE or len(mutant.edits) > 1 or function is None:
            return
        is_insertion = untrimmed.start == untrimmed.end
        old_text = change.note.encode() if is_insertion else self._source.raw[untrimmed.start : untrimmed.end]
        scopes = [(function, ""), (function, self._source.find_variable(node))]
        if self._source.repeats_in_file:
            scopes.append((None, ""))
        for scope, variable in dict.fromkeys(scopes):
            key = (scope, mutant.operator, variable, old_text, untrimmed.text)
            group = self.repeatable.setdefault(key, [])
            if all(edit != mutant.edits[0] for edit, _ in group):
                group.append((mutant.edits[0], mutant))


def _favour_reads(unread: Mapping[str, float], change: Change) -> Change:
    """Return the change, with more weight if it inserts a variable that nothing reads."""
    words = {word for edit in change.edits for word in WORD.findall(edit.text)}
    factor = max((unread[word] for word in words & unread.keys()), default=1.0)
    return change if factor == 1.0 else replace(change, weight=change.weight * factor)


UNEDITABLE = (ast.FormattedValue, ast.pattern)
"""Nodes that take no other expression in their place."""


def generate_mutants(
    source: str,
    lines: Collection[int] | None = None,
    *,
    operators: Collection[OperatorName] | None = None,
    on_fault: FaultReporter | None = None,
    differences: Sequence[ValueDifference] = (),
    kinds: ObservedKinds = MappingProxyType({}),
) -> Iterator[Mutant]:
    """Yield every mutant of a source.

    Args:
        source: Python source; a source that does not parse has no mutants.
        lines: Only changes that begin on one of these lines, or that guard a function whose first line is among them;
            more in `generate_from`.
        operators: The operators to use; `None` for all.
        on_fault: As for `generate_from`.
        differences: How the actual values of failing tests differ from the expected ones.
        kinds: The kinds of values that variables hold in the runs of the tests.
    """
    tree = parse_python_tree(source)
    if tree is not None:
        tree.differences, tree.observed_kinds = differences, kinds
        yield from generate_from(_make_mutable(tree, operators), lines, on_fault)


def _make_mutable(tree: PythonTree, operators: Collection[OperatorName] | None) -> MutableSource:
    enabled = [operator for operator in OPERATORS if operators is None or operator.name in operators]

    def list_operators(node: ast.AST) -> Iterator[OperatorChanges]:
        for operator in enabled:
            if isinstance(node, operator.nodes):
                yield operator.name, partial(operator.changes, node, tree)

    def lies_in_body(node: ast.AST, change: Change) -> bool:
        # Guards and final returns are inserted at the function, but are part of its body.
        is_guard = isinstance(node, FUNCTIONS) and all(edit.start == edit.end for edit in change.edits)
        return is_guard or tree.enclosing_function(node) is not None

    return MutableSource(
        raw=tree.raw,
        nodes=[(_line(node), node) for node in _editable_nodes(tree.module)],
        list_operators=list_operators,
        find_function=tree.enclosing_function,
        weigh_unread=tree.weigh_unread,
        repeats_in_file=True,
        lies_in_body=lies_in_body,
        node_factor=lambda node: ANNOTATION_FACTOR if node in tree.annotations else 1.0,
    )


def _line(node: ast.AST) -> int:
    # In the tree, a `for` inside an expression has no position. Nodes such as operators have no position either.
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def _editable_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree in source order, without those that cannot be edited in place."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, UNEDITABLE):
            continue
        yield child
        if not isinstance(child, ast.JoinedStr):  # Python reports no reliable positions inside
            yield from _editable_nodes(child)
