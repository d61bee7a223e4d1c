"""Generates all small changes of a file in a language that tree-sitter parses, in the order of its lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.changes import ValueDifference
from suture.mutation.edits import Mutant, OperatorName
from suture.mutation.mutant_generation import MutableSource, OperatorChanges, generate_from
from suture.mutation.tree_sitter.operators import TREE_OPERATORS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

ASSIGNMENTS = ("variable_declarator", "assignment_expression")
"""Nodes that assign a value to a variable."""


def generate_tree_mutants(
    text: str,
    path: str,
    language: Language,
    lines: Collection[int] | None = None,
    operators: Collection[OperatorName] | None = None,
    differences: Sequence[ValueDifference] = (),
) -> Iterator[Mutant]:
    """Yield every mutant of a file.

    Args:
        path: Its path, whose extension may select a dialect.
        lines: As for `generate_from`.
        operators: The operators to use; `None` for all.
        differences: How the actual values of failing tests differ from the expected ones.
    """
    tree = SyntaxTree(text, path, language)
    tree.differences = differences
    enabled = {
        name: TREE_OPERATORS[name] for name in TREE_OPERATORS if operators is None or name in operators
    }

    def list_operators(node: Node) -> Iterator[OperatorChanges]:
        for name, change in enabled.items():
            yield name, partial(change, node, tree)

    def find_function(node: Node) -> int | None:
        function = tree.enclosing_function(node)
        return None if function is None else function.id

    source = MutableSource(
        raw=tree.raw,
        nodes=[(node.start_point.row + 1, node) for node in walk(tree.root) if node.is_named],
        list_operators=list_operators,
        find_function=find_function,
        lies_in_body=lambda node, change: tree.enclosing_function(node) is not None,
        find_variable=partial(_assigned_variable, tree=tree),
        weigh_unread=tree.weigh_unread,
    )
    return generate_from(source, lines)


def _assigned_variable(node: Node, tree: SyntaxTree) -> str:
    """Return the variable to which a value is assigned; empty if there is none."""
    above = node.parent
    target = get_field(above, "name", "left") if above is not None and above.type in ASSIGNMENTS else None
    return tree.text(target) if target is not None and not is_same_node(target, node) else ""
