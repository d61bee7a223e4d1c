"""Where a change stands in a syntax tree: the statement, or the head of one, that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.records import Language
from suture.repair.editing.edits import Edit, mutated
from suture.repair.editing.places import Place
from suture.repair.other_languages.grammars import NUMBERS, STRINGS
from suture.repair.other_languages.tree_view import TreeView, walked

if TYPE_CHECKING:
    from tree_sitter import Node

INNER = ("statement_block", "block", "switch_body", "expression_switch_statement", "class_body")
"""What a head ends at."""


def tree_place(text: str, path: str, language: Language, edits: Sequence[Edit]) -> Place | None:
    """The smallest place that holds a change; `None` where it spans several.

    Args:
        text: The file.
        path: For its ending.
        language: What it is written in.
        edits: The change.
    """
    holding = [place for place in _places(text, path, language) if place.holds(edits)]
    return min(holding, key=lambda place: place.end - place.start, default=None)


def literals_at(text: str, path: str, language: Language, edits: Sequence[Edit]) -> list[str]:
    """Numbers and texts that are named where a change stands, before it and with it, as they are written."""
    place = tree_place(text, path, language, edits)
    if place is None:
        return []
    grown = sum(len(edit.text.encode("utf-8", "surrogatepass")) - (edit.end - edit.start) for edit in edits)
    found: dict[str, None] = {}
    for source, end in ((text, place.end), (mutated(text, edits), place.end + grown)):
        view = TreeView(source, path, language)
        for node in walked(view.root):
            if node.type in (*NUMBERS, *STRINGS) and place.start <= node.start_byte and node.end_byte <= end:
                found[view.text(node)] = None
    return list(found)


@lru_cache(maxsize=16)
def _places(text: str, path: str, language: Language) -> tuple[Place, ...]:
    view = TreeView(text, path, language)
    heads = [node for node in walked(view.root) if view.is_statement(node) or node.type == "if_statement"]
    return tuple(_place(node, view) for node in heads)


def _place(node: Node, view: TreeView) -> Place:
    inner = (below.start_byte for below in walked(node) if below.type in INNER and below.id != node.id)
    return Place(
        start=node.start_byte,
        end=next(inner, node.end_byte),
        last=node.end_byte,
        in_function=view.function_of(node) is not None,
        is_handler=False,
    )
