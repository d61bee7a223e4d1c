"""Generates all small changes of a Python source, lazily and in the order of its lines."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from suture.mutation.changes import Change, FaultReporter
from suture.mutation.edits import Mutant
from suture.mutation.expected_values import ValueDifference
from suture.mutation.mutant_generation import MutableSource, OperatorChanges, generate_from
from suture.mutation.operator_names import OperatorName
from suture.mutation.python.operators import OPERATORS
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, parse_python_tree
from suture.mutation.tuning import ANNOTATION_FACTOR

UNEDITABLE = (ast.FormattedValue, ast.pattern)
"""Nodes that take no other expression in their place."""


def generate_mutants(
    source: str,
    lines: Collection[int] | None = None,
    *,
    operators: Collection[OperatorName] | None = None,
    on_fault: FaultReporter | None = None,
    differences: Sequence[ValueDifference] = (),
) -> Iterator[Mutant]:
    """Yield every mutant of a source.

    Args:
        source: Python source; a source that does not parse has no mutants.
        lines: Only changes that begin on one of these lines, or that guard a function whose first line is among them;
            more in `generate_from`.
        operators: The operators to use; `None` for all.
        on_fault: As for `generate_from`.
        differences: How the actual values of failing tests differ from the expected ones.
    """
    tree = parse_python_tree(source)
    if tree is not None:
        tree.differences = differences
        yield from generate_from(_make_mutable(tree, operators), lines, on_fault)


def _make_mutable(tree: PythonTree, operators: Collection[OperatorName] | None) -> MutableSource:
    enabled = [operator for operator in OPERATORS if operators is None or operator.name in operators]

    def list_operators(node: ast.AST) -> Iterator[OperatorChanges]:
        for operator in enabled:
            if isinstance(node, operator.nodes):
                yield operator.name, partial(operator.changes, node, tree)

    def lies_in_body(node: ast.AST, change: Change) -> bool:
        # Guards and final returns are inserted at the function, but lie in its body.
        is_guard = isinstance(node, FUNCTIONS) and all(edit.start == edit.end for edit in change.edits)
        return is_guard or tree.enclosing_function(node) is not None

    return MutableSource(
        raw=tree.raw,
        nodes=[(_line(node), node) for node in _editable_nodes(tree.module)],
        list_operators=list_operators,
        find_function=tree.enclosing_function,
        repeats_in_file=True,
        lies_in_body=lies_in_body,
        node_factor=lambda node: ANNOTATION_FACTOR if node in tree.annotations else 1.0,
    )


def _line(node: ast.AST) -> int:
    # In the tree, a `for` inside an expression has no position. Nodes such as operators have none either.
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def _editable_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree in the order of the text, without those that cannot be edited in place."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, UNEDITABLE):
            continue
        yield child
        if not isinstance(child, ast.JoinedStr):  # Python reports no reliable positions inside
            yield from _editable_nodes(child)
