"""Small changes of a program by its syntax tree: the families of the Python search, by the same names.

A family that stands in `suture.mutation.python.operators` too is as likely here as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.mutation.python.operators import OPERATORS
from suture.mutation.changes import Change
from suture.mutation.tree_sitter.operators import conditions, expressions, names, signs, statements, values
from suture.mutation.tree_sitter.operators import code_reuse as elsewhere
from suture.mutation.tree_sitter.operators import beginner_mistakes as slips
from suture.mutation.tree_sitter.operators import undefined_names as unknown
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["FAMILIES", "PRIORS"]

PRIORS: Mapping[str, float] = {operator.name: operator.prior for operator in OPERATORS}
FAMILIES: Mapping[str, Callable[[Node, SyntaxTree], Iterator[Change]]] = {
    **signs.FAMILIES,
    **conditions.FAMILIES,
    **values.FAMILIES,
    **names.FAMILIES,
    **expressions.FAMILIES,
    **statements.FAMILIES,
    **slips.FAMILIES,
    **elsewhere.FAMILIES,
    **unknown.FAMILIES,
}
"""Name of an operator -> the ways in which it changes a node, the likeliest of weight 1."""
