"""Small changes of a program by its syntax tree: the families of the Python search, by the same names.

A family that stands in `suture.mutation.python.operators` too is as likely here as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.mutation.python.operators import OPERATORS
from suture.mutation.python.operators.change import Change
from suture.mutation.trees.operators import (
    conditions,
    elsewhere,
    expressions,
    names,
    signs,
    slips,
    statements,
    unknown,
    values,
)
from suture.mutation.trees.tree_view import TreeView

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["FAMILIES", "PRIORS"]

PRIORS: Mapping[str, float] = {operator.name: operator.prior for operator in OPERATORS}
FAMILIES: Mapping[str, Callable[[Node, TreeView], Iterator[Change]]] = {
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
