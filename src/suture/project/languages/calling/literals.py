"""Literals as tree-sitter sees them, in any language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from suture.project.languages.calling.call_driver import Plus

if TYPE_CHECKING:
    from tree_sitter import Node


class NoLiteral(Exception):
    """It is no literal that we read."""


def text_of(node: Node) -> str:
    """What stands there."""
    return (node.text or b"").decode("utf-8", "surrogatepass")


def values_of(nodes: Iterable[Node], value_of: Callable[[Node], Plus]) -> tuple[Plus, ...] | None:
    """The values of literals, comments left out; `None` where one is none."""
    try:
        return tuple(value_of(node) for node in nodes if node.type != "comment")
    except (NoLiteral, ValueError, SyntaxError, OverflowError, RecursionError):
        return None
