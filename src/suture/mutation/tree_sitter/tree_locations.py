"""Finds the statement, or head of a statement, that holds an edit, and the blocks of a statement.

The head of a statement is what precedes its block: `if (a < b)` or `for (;;)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.mutation.edits import Edit, EditLocation, apply_edits, encode_source, select_smallest
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    get_field,
    insert_at,
    is_same_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import BLOCKS, EXITS, LOOPS, NUMBERS, STRINGS

if TYPE_CHECKING:
    from tree_sitter import Node

BLOCK_NODES = ("statement_block", "block", "switch_body", "expression_switch_statement", "class_body")
"""Nodes at which the head of a statement ends."""
BLOCK_FIELDS = ("consequence", "alternative", "body")
"""Fields of statements that hold a block, or a single statement without braces."""
GUARDING_STATEMENTS = ("if_statement", *LOOPS)
"""Statements that decide whether the code inside runs."""


def find_tree_location(
    language: Language, path: str, text: str, edits: Sequence[Edit]
) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several."""
    return select_smallest(_locations(text, path, language), edits)


def literals_near_edit(language: Language, path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """Return the literals, as written, of the statement that a change is in, before and after the change."""
    location = find_tree_location(language, path, text, edits)
    if location is None:
        return []
    added_bytes = sum(len(encode_source(edit.text)) - (edit.end - edit.start) for edit in edits)
    literals: dict[str, None] = {}
    for source, end in ((text, location.end), (apply_edits(text, edits), location.end + added_bytes)):
        tree = SyntaxTree(source, path, language)
        for node in walk(tree.root):
            is_inside = location.start <= node.start_byte and node.end_byte <= end
            if is_inside and node.type in (*NUMBERS, *STRINGS):
                literals[tree.text(node)] = None
    return list(literals)


def find_tree_block_stops(language: Language, path: str, text: str, start: int) -> list[tuple[Edit, ...]]:
    """Return, for each block of the statement that begins at an offset, edits that raise an error in the block.

    A test that fails with these edits runs the block. After an `if` that leaves its block, as in
    `if (!a) return; b();`, the following statement counts as a block of the `if` too.

    Args:
        start: The `EditLocation.start` of the statement.
    """
    tree = SyntaxTree(text, path, language)
    raise_statement = f"{tree.syntax.raise_statement} "
    stops: list[tuple[Edit, ...]] = []
    for node in walk(tree.root):
        if node.start_byte != start or node.type not in GUARDING_STATEMENTS:
            continue
        consequence, alternative, body = (get_field(node, name) for name in BLOCK_FIELDS)
        fields = [field for field in (consequence, alternative, body) if field is not None]
        blocks = [field.named_children[-1] if field.type == "else_clause" else field for field in fields]
        # The blocks of an `else if` belong to that statement.
        stops += [_stop_edits(block, raise_statement) for block in blocks if block.type != "if_statement"]
        following = node.next_named_sibling
        if consequence is not None and alternative is None and following is not None and _exits(consequence):
            stops.append((insert_at(following.start_byte, raise_statement),))
    return stops


def _stop_edits(block: Node, raise_statement: str) -> tuple[Edit, ...]:
    """Return edits that raise an error at the start of a block; they add braces where it has none."""
    if block.type in BLOCK_NODES:
        return (insert_at(block.start_byte + 1, f" {raise_statement}"),)
    return insert_at(block.start_byte, f"{{ {raise_statement}"), insert_at(block.end_byte, " }")


def _exits(block: Node) -> bool:
    """Return whether a block, or a statement without braces, ends with an exit."""
    statement = block
    while statement.type in BLOCKS | {"block"} and statement.named_child_count:
        statement = statement.named_children[-1]
    return statement.type in EXITS


@lru_cache(maxsize=16)
def _locations(text: str, path: str, language: Language) -> tuple[EditLocation, ...]:
    tree = SyntaxTree(text, path, language)
    return tuple(
        _build_location(node, tree)
        for node in walk(tree.root)
        if tree.is_statement(node) or node.type == "if_statement" or _is_unbraced_body(node)
    )


def _is_unbraced_body(node: Node) -> bool:
    """Return whether a node is the body of an `if` or a loop without braces."""
    above = node.parent
    if above is None or node.type in BLOCK_NODES or node.type == "else_clause":
        return False
    if above.type == "else_clause":
        return node.is_named
    is_block_field = any(is_same_node(get_field(above, name), node) for name in BLOCK_FIELDS)
    return above.type in GUARDING_STATEMENTS and is_block_field


def _build_location(node: Node, tree: SyntaxTree) -> EditLocation:
    """Return the location of a statement, which ends where its first block begins."""
    block_starts = (
        inner.start_byte
        for inner in walk(node)
        if inner.id != node.id and (inner.type in BLOCK_NODES or _is_unbraced_body(inner))
    )
    return EditLocation(
        start=node.start_byte,
        end=next(block_starts, node.end_byte),
        statement_end=node.end_byte,
        in_function=tree.enclosing_function(node) is not None,
        is_handler=False,
    )
