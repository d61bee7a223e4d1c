"""Locates edits in a syntax tree: the statement or statement head that holds them, and its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.edits import Edit, apply_edits
from suture.mutation.python.edit_locations import EditLocation
from suture.mutation.tree_sitter.node_kinds import BLOCKS, EXITS, LOOPS, NUMBERS, STRINGS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

BLOCK_NODES = ("statement_block", "block", "switch_body", "expression_switch_statement", "class_body")
"""Nodes at which the head of a statement ends."""
BLOCK_FIELDS = ("consequence", "alternative", "body")
GUARDING_STATEMENTS = ("if_statement", *LOOPS)


def find_tree_location(
    language: Language, path: str, text: str, edits: Sequence[Edit]
) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several.

    Args:
        language: The language of the file.
        path: Its path, whose extension may select a dialect.
        text: The file.
        edits: The change.
    """
    holding = [place for place in _locations(text, path, language) if place.contains(edits)]
    return min(holding, key=lambda place: place.end - place.start, default=None)


def literals_near_edit(language: Language, path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """Return the literals, as written, of the statement that a change is in, before and after the change."""
    place = find_tree_location(language, path, text, edits)
    if place is None:
        return []
    grown = sum(len(edit.text.encode("utf-8", "surrogatepass")) - (edit.end - edit.start) for edit in edits)
    found: dict[str, None] = {}
    for source, end in ((text, place.end), (apply_edits(text, edits), place.end + grown)):
        tree = SyntaxTree(source, path, language)
        for node in walk(tree.root):
            if node.type in (*NUMBERS, *STRINGS) and place.start <= node.start_byte and node.end_byte <= end:
                found[tree.text(node)] = None
    return list(found)


def find_tree_block_stops(language: Language, path: str, text: str, start: int) -> list[tuple[Edit, ...]]:
    """Return, for each block of the statement that begins at an offset, edits that stop whoever runs it.

    After an `if` that leaves its block, the following statement counts as a block of it too.

    Args:
        language: The language of the file.
        path: Its path, whose extension may select a dialect.
        text: The file.
        start: The `EditLocation.start` of the statement.
    """
    tree = SyntaxTree(text, path, language)
    stop = f"{tree.syntax.raise_statement} "
    found: list[tuple[Edit, ...]] = []
    for node in walk(tree.root):
        if node.start_byte != start or node.type not in GUARDING_STATEMENTS:
            continue
        parts = [get_field(node, name) for name in BLOCK_FIELDS]
        blocks = [part.named_children[-1] if part.type == "else_clause" else part for part in parts if part]
        found += [_stop_edits(block, stop) for block in blocks if block.type != "if_statement"]
        behind = node.next_named_sibling
        if parts[0] is not None and parts[1] is None and behind is not None and _exits(parts[0]):
            found.append((Edit(start=behind.start_byte, end=behind.start_byte, text=stop),))
    return found


def _stop_edits(block: Node, stop: str) -> tuple[Edit, ...]:
    if block.type in BLOCK_NODES:
        return (Edit(start=block.start_byte + 1, end=block.start_byte + 1, text=f" {stop}"),)
    opening, closing = ((at, text) for at, text in ((block.start_byte, f"{{ {stop}"), (block.end_byte, " }")))
    return tuple(Edit(start=at, end=at, text=text) for at, text in (opening, closing))


def _exits(block: Node) -> bool:
    """Return whether a block, or a statement without braces, ends with an exit."""
    last = block
    while last.type in BLOCKS | {"block"} and last.named_child_count:
        last = last.named_children[-1]
    return last.type in EXITS


@lru_cache(maxsize=16)
def _locations(text: str, path: str, language: Language) -> tuple[EditLocation, ...]:
    tree = SyntaxTree(text, path, language)
    heads = [
        node
        for node in walk(tree.root)
        if tree.is_statement(node) or node.type == "if_statement" or _is_unbraced_body(node)
    ]
    return tuple(_location_of(node, tree) for node in heads)


def _is_unbraced_body(node: Node) -> bool:
    """Return whether a node is the body of an `if` or a loop without braces."""
    above = node.parent
    if above is None or node.type in BLOCK_NODES or node.type == "else_clause":
        return False
    guards = above.type in GUARDING_STATEMENTS and any(
        is_same_node(get_field(above, name), node) for name in BLOCK_FIELDS
    )
    return guards or (above.type == "else_clause" and node.is_named)


def _location_of(node: Node, tree: SyntaxTree) -> EditLocation:
    below = (
        part
        for part in walk(node)
        if part.id != node.id and (part.type in BLOCK_NODES or _is_unbraced_body(part))
    )
    inner = (part.start_byte for part in below)
    return EditLocation(
        start=node.start_byte,
        end=next(inner, node.end_byte),
        statement_end=node.end_byte,
        in_function=tree.enclosing_function(node) is not None,
        is_handler=False,
    )
