"""The mutation operators for languages that tree-sitter parses, by the same names as those for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.edits import OperatorName
from suture.mutation.tree_sitter.operators import (
    beginner_mistakes,
    code_reuse,
    conditions,
    expressions,
    names,
    signs,
    statements,
    undefined_names,
    values,
)
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["TREE_OPERATORS"]

TREE_OPERATORS: Mapping[OperatorName, Callable[[Node, SyntaxTree], Iterator[Change]]] = {
    **signs.OPERATORS,
    **conditions.OPERATORS,
    **values.OPERATORS,
    **names.OPERATORS,
    **expressions.OPERATORS,
    **statements.OPERATORS,
    **beginner_mistakes.OPERATORS,
    **code_reuse.OPERATORS,
    **undefined_names.OPERATORS,
}
"""Name of an operator -> the function that yields its changes of a node.

Where two operators make the same edit with the same prior, the earlier one keeps it.
"""
