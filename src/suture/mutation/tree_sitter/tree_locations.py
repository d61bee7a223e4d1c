"""Where a change stands in a syntax tree: the statement, or the head of one, that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.edits import Edit, apply_edits
from suture.mutation.python.edit_locations import EditLocation
from suture.mutation.tree_sitter.grammars import BLOCKS, EXITS, LOOPS, NUMBERS, STRINGS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

INNER = ("statement_block", "block", "switch_body", "expression_switch_statement", "class_body")
"""What a head ends at."""
PARTS = ("consequence", "alternative", "body")
GUARDING = ("if_statement", *LOOPS)


def find_tree_location(language: Language, path: str, text: str, edits: Sequence[Edit]) -> EditLocation | None:
    """The smallest place that holds a change; `None` where it spans several.

    Args:
        language: What the file is written in.
        path: For its ending.
        text: The file.
        edits: The change.
    """
    holding = [place for place in _places(text, path, language) if place.contains(edits)]
    return min(holding, key=lambda place: place.end - place.start, default=None)


def literals_near_edit(language: Language, path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """Numbers and texts that are named where a change stands, before it and with it, as they are written."""
    place = find_tree_location(language, path, text, edits)
    if place is None:
        return []
    grown = sum(len(edit.text.encode("utf-8", "surrogatepass")) - (edit.end - edit.start) for edit in edits)
    found: dict[str, None] = {}
    for source, end in ((text, place.end), (apply_edits(text, edits), place.end + grown)):
        view = SyntaxTree(source, path, language)
        for node in walk(view.root):
            if node.type in (*NUMBERS, *STRINGS) and place.start <= node.start_byte and node.end_byte <= end:
                found[view.text(node)] = None
    return list(found)


def find_tree_block_stops(language: Language, path: str, text: str, start: int) -> list[tuple[Edit, ...]]:
    """For each block of the statement that begins at an offset: what stops whatever runs it.

    Behind an `if` that does not go on, what comes next is a block of it too.

    Args:
        language: What the file is written in.
        path: For its ending.
        text: The file.
        start: The `Place.start` of the statement.
    """
    view = SyntaxTree(text, path, language)
    stop = f"{view.grammar.stop} "
    found: list[tuple[Edit, ...]] = []
    for node in walk(view.root):
        if node.start_byte != start or node.type not in GUARDING:
            continue
        parts = [get_field(node, name) for name in PARTS]
        blocks = [part.named_children[-1] if part.type == "else_clause" else part for part in parts if part]
        found += [_stopping(block, stop) for block in blocks if block.type != "if_statement"]
        behind = node.next_named_sibling
        if parts[0] is not None and parts[1] is None and behind is not None and _leaves(parts[0]):
            found.append((Edit(start=behind.start_byte, end=behind.start_byte, text=stop),))
    return found


def _stopping(block: Node, stop: str) -> tuple[Edit, ...]:
    if block.type in INNER:
        return (Edit(start=block.start_byte + 1, end=block.start_byte + 1, text=f" {stop}"),)
    opening, closing = ((at, text) for at, text in ((block.start_byte, f"{{ {stop}"), (block.end_byte, " }")))
    return tuple(Edit(start=at, end=at, text=text) for at, text in (opening, closing))


def _leaves(block: Node) -> bool:
    """Whether what runs a block, or a statement without braces, does not come to what stands behind it."""
    last = block
    while last.type in BLOCKS | {"block"} and last.named_child_count:
        last = last.named_children[-1]
    return last.type in EXITS


@lru_cache(maxsize=16)
def _places(text: str, path: str, language: Language) -> tuple[EditLocation, ...]:
    view = SyntaxTree(text, path, language)
    heads = [
        node
        for node in walk(view.root)
        if view.is_statement(node) or node.type == "if_statement" or _is_bare(node)
    ]
    return tuple(_place(node, view) for node in heads)


def _is_bare(node: Node) -> bool:
    """Whether it is the body of an `if` or a loop, without braces."""
    above = node.parent
    if above is None or node.type in INNER or node.type == "else_clause":
        return False
    guards = above.type in GUARDING and any(is_same_node(get_field(above, name), node) for name in PARTS)
    return guards or (above.type == "else_clause" and node.is_named)


def _place(node: Node, view: SyntaxTree) -> EditLocation:
    below = (part for part in walk(node) if part.id != node.id and (part.type in INNER or _is_bare(part)))
    inner = (part.start_byte for part in below)
    return EditLocation(
        start=node.start_byte,
        end=next(inner, node.end_byte),
        statement_end=node.end_byte,
        in_function=view.enclosing_function(node) is not None,
        is_handler=False,
    )
