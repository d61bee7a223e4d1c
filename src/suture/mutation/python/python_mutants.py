"""Generates all small changes of a Python source, lazily and in the order of its lines."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from suture.mutation.changes import REPEATABLE, Change, FaultReporter, build_mutant, repeat_in_function
from suture.mutation.edits import Edit, Mutant
from suture.mutation.operator_names import OperatorName
from suture.mutation.python.operators import OPERATORS, PythonOperator
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, parse_python_tree
from suture.mutation.tuning import ANNOTATION_FACTOR, CROWDING_EXPONENT, MAX_CHANGES_PER_NODE

UNEDITABLE = (ast.JoinedStr, ast.FormattedValue, ast.pattern)
"""Nodes inside which Python does not report reliable positions, or takes no other expression."""
RepeatKey = tuple[int, str, bytes, str]
"""`(id of the function, operator, text before, text after)` of a change that may be needed at several places."""


def generate_mutants(
    source: str,
    lines: Collection[int] | None = None,
    *,
    operators: Collection[OperatorName] | None = None,
    on_fault: FaultReporter | None = None,
) -> Iterator[Mutant]:
    """Yield every mutant of a source. The result is deterministic.

    An edit that two operators make is yielded again when the second operator considers it likelier.

    Args:
        source: Python source; a source that does not parse has no mutants.
        lines: Only changes that begin on one of these lines (from 1), or that guard a function whose first
            line is among them; `None` for all. If it is a mapping to scores, lines with the highest scores
            come first.
        operators: The operators to use; `None` for all.
        on_fault: Called if an operator raises an exception. The operator then makes no more changes of that
            node. Without `on_fault`, the exception propagates.
    """
    tree = parse_python_tree(source)
    if tree is not None:
        yield from _Generator(tree, on_fault).mutants(lines, operators)


class _Generator:
    """Generates the mutants of one source, and remembers which edits it has made."""

    def __init__(self, tree: PythonTree, on_fault: FaultReporter | None) -> None:
        self._tree, self._on_fault = tree, on_fault
        self._priors: dict[tuple[Edit, ...], float] = {}
        self._repeatable: dict[RepeatKey, list[tuple[Edit, Mutant]]] = {}

    def mutants(
        self, lines: Collection[int] | None, operators: Collection[OperatorName] | None
    ) -> Iterator[Mutant]:
        """Yield the mutants of all nodes, and then those that repeat a change in its function."""
        enabled = [operator for operator in OPERATORS if operators is None or operator.name in operators]
        for line, node in _nodes_on(self._tree.module, lines):
            for operator in enabled:
                if isinstance(node, operator.nodes):
                    yield from self._mutants_of(node, line, operator)
        for group in self._repeatable.values():
            if len(group) > 1:
                yield repeat_in_function(group)

    def _mutants_of(self, node: ast.AST, line: int, operator: PythonOperator) -> Iterator[Mutant]:
        """Yield the new mutants of a node, the likeliest first.

        Their priors decrease with their rank: of an operator that offers many changes, each is less likely.
        """
        changes = []
        for change in self._changes(node, line, operator):
            edits = change.trimmed_edits(self._tree.raw)
            if all(edit.start < edit.end or edit.text for edit in edits):  # else nothing is left to change
                changes.append((change, edits))
        changes.sort(key=lambda pair: -pair[0].weight)
        rank = 1
        for change, edits in changes:
            mutant = self._build(node, change, edits, operator.name, rank**-CROWDING_EXPONENT)
            if mutant.prior <= self._priors.get(edits, -1.0):
                continue
            rank += 1
            self._priors[edits] = mutant.prior
            yield mutant
            self._add_repeatable(node, change, mutant)

    def _changes(self, node: ast.AST, line: int, operator: PythonOperator) -> Iterator[Change]:
        try:
            yield from islice(operator.changes(node, self._tree), MAX_CHANGES_PER_NODE)
        except Exception as fault:  # a fault in an operator must not end the user's run
            if self._on_fault is None:
                raise
            self._on_fault(operator.name, line, fault)

    def _build(
        self, node: ast.AST, change: Change, edits: tuple[Edit, ...], operator: OperatorName, factor: float
    ) -> Mutant:
        """Return the mutant of a change of a node, with a further factor on its prior."""
        tree = self._tree
        # Guards and final returns are inserted at the function, but lie in its body.
        is_guard = isinstance(node, FUNCTIONS) and all(edit.start == edit.end for edit in edits)
        in_function_body = is_guard or tree.enclosing_function(node) is not None
        line = tree.line_at(edits[0].start)
        factor *= ANNOTATION_FACTOR if node in tree.annotations else 1.0
        return build_mutant(change, edits, operator, line, factor, in_function_body=in_function_body)

    def _add_repeatable(self, node: ast.AST, change: Change, mutant: Mutant) -> None:
        """Remember a mutant whose change may be needed at several places of its function."""
        untrimmed, function = change.edits[0], self._tree.enclosing_function(node)
        is_replacement = len(mutant.edits) == 1 and untrimmed.start < untrimmed.end
        if mutant.operator in REPEATABLE and is_replacement and function is not None:
            old_text = self._tree.raw[untrimmed.start : untrimmed.end]
            key = (id(function), mutant.operator, old_text, untrimmed.text)
            self._repeatable.setdefault(key, []).append((mutant.edits[0], mutant))


def _nodes_on(tree: ast.AST, lines: Collection[int] | None) -> list[tuple[int, ast.AST]]:
    """Return `(line, node)` for the nodes on some lines."""
    nodes = []
    for node in _editable_nodes(tree):
        # In the tree, a `for` inside an expression has no position. Nodes such as operators have none either.
        line = node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)
        if lines is None or line in lines:
            nodes.append((line, node))
    if isinstance(lines, Mapping):
        nodes.sort(key=lambda pair: -lines[pair[0]])
    return nodes


def _editable_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree in the order of the text, without those that cannot be edited in place."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, UNEDITABLE):
            continue
        yield child
        yield from _editable_nodes(child)
