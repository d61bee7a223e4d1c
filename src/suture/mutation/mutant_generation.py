"""Turns the changes that operators propose into mutants, in any language: their priors, order and repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from suture.mutation.changes import REPEATABLE, Change, FaultReporter, build_mutant, repeat_in_function
from suture.mutation.edits import Edit, Mutant
from suture.mutation.operator_names import OperatorName
from suture.mutation.tuning import CROWDING_EXPONENT, MAX_CHANGES_PER_NODE, MAX_NODES_PER_LINE

Node = Any
"""A node of a syntax tree, of Python or of tree-sitter."""
OperatorChanges = tuple[OperatorName, Callable[[], Iterator[Change]]]
"""An operator, and a function that yields its changes of one node."""
RepeatKey = tuple[Hashable, OperatorName, str, bytes, str]
"""`(function, operator, assigned variable, text before, text after)` of a change that may be needed at several places.

The variable is empty where the key stands for all places of the function, whatever they assign to.
"""


@dataclass(frozen=True, kw_only=True)
class MutableSource:
    """A parsed source with what the generation of mutants needs.

    Attributes:
        raw: The UTF-8 bytes of the source.
        nodes: `(line, node)` of the nodes that may be changed, in the order of the text.
        list_operators: Returns the operators for a node.
        find_function: Returns what identifies the function that holds a node; `None` outside of functions.
        lies_in_body: Returns whether a change of a node lies in the body of a function.
        node_factor: Returns a factor on the priors of a node's changes.
        find_variable: Returns the variable to which a node's value is assigned; empty if there is none. Where the
            same variable is assigned again, the same mistake may have been made again.
    """

    raw: bytes
    nodes: Sequence[tuple[int, Node]]
    list_operators: Callable[[Node], Iterable[OperatorChanges]]
    find_function: Callable[[Node], Hashable | None]
    lies_in_body: Callable[[Node, Change], bool]
    node_factor: Callable[[Node], float] = lambda node: 1.0
    find_variable: Callable[[Node], str] = lambda node: ""


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
    for group in generator.repeatable.values():
        if len(group) > 1:
            yield repeat_in_function(group)


def _select_nodes(nodes: Sequence[tuple[int, Node]], lines: Collection[int] | None) -> list[tuple[int, Node]]:
    nodes_per_line = Counter(line for line, _ in nodes)
    chosen = [
        (line, node)
        for line, node in nodes
        if (lines is None or line in lines) and nodes_per_line[line] <= MAX_NODES_PER_LINE
    ]
    if isinstance(lines, Mapping):
        chosen.sort(key=lambda pair: -lines[pair[0]])
    return chosen


class _Generator:
    """Generates the mutants of one source, and remembers which edits it has made."""

    def __init__(self, source: MutableSource, on_fault: FaultReporter | None) -> None:
        self._source, self._on_fault = source, on_fault
        self._priors: dict[tuple[Edit, ...], float] = {}
        self.repeatable: dict[RepeatKey, list[tuple[Edit, Mutant]]] = {}

    def mutants_of(
        self, node: Node, line: int, operator: OperatorName, generate: Callable[[], Iterator[Change]]
    ) -> Iterator[Mutant]:
        """Yield the new mutants that an operator makes of a node, the likeliest first.

        Their priors decrease with their rank: of an operator that offers many changes, each is less likely.
        """
        source, changes = self._source, []
        for change in self._changes(line, operator, generate):
            edits = change.trimmed_edits(source.raw)
            if all(edit.start < edit.end or edit.text for edit in edits):  # else nothing is left to change
                changes.append((change, edits))
        changes.sort(key=lambda pair: -pair[0].weight)
        rank, node_factor = 1, source.node_factor(node) if changes else 1.0
        for change, edits in changes:
            mutant = build_mutant(
                change,
                edits,
                operator,
                source.raw.count(b"\n", 0, edits[0].start) + 1,
                rank**-CROWDING_EXPONENT * node_factor,
                in_function_body=source.lies_in_body(node, change),
            )
            if mutant.prior <= self._priors.get(edits, -1.0):
                continue
            rank += 1
            self._priors[edits] = mutant.prior
            yield mutant
            self._add_repeatable(node, change, mutant)

    def _changes(
        self, line: int, operator: OperatorName, generate: Callable[[], Iterator[Change]]
    ) -> Iterator[Change]:
        try:
            yield from islice(generate(), MAX_CHANGES_PER_NODE)
        except Exception as fault:  # a fault in an operator must not end the user's run
            if self._on_fault is None:
                raise
            self._on_fault(operator, line, fault)

    def _add_repeatable(self, node: Node, change: Change, mutant: Mutant) -> None:
        """Remember a mutant whose change may be needed at several places of its function."""
        untrimmed, function = change.edits[0], self._source.find_function(node)
        is_replacement = len(mutant.edits) == 1 and untrimmed.start < untrimmed.end
        if mutant.operator not in REPEATABLE or not is_replacement or function is None:
            return
        old_text = self._source.raw[untrimmed.start : untrimmed.end]
        for variable in dict.fromkeys(("", self._source.find_variable(node))):
            key = (function, mutant.operator, variable, old_text, untrimmed.text)
            group = self.repeatable.setdefault(key, [])
            if all(edit != mutant.edits[0] for edit, _ in group):
                group.append((mutant.edits[0], mutant))
