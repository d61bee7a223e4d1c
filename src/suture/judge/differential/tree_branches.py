"""List the new branches and tables of a JavaScript, TypeScript or Go file, each with the source without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.extraction.literal_calls import read_plain_literals
from suture.judge.signs import is_specific
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.operators.conditions import get_condition
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    function_name,
    get_field,
    replace_node,
    returned_values,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import LISTS, NULLS, NUMBERS, STRINGS
from suture.project.languages import LANGUAGES

if TYPE_CHECKING:
    from tree_sitter import Node

LITERALS = frozenset((*NUMBERS, *STRINGS))
CASES = ("switch_case", "expression_case")
BRANCHES = ("if_statement", "ternary_expression")
TABLES = frozenset((*LISTS, "object"))
PARTS = frozenset((*BRANCHES, *CASES, *TABLES))
TABLE_PARTS = frozenset((
    *LITERALS, *TABLES, *NULLS, "pair", "keyed_element", "literal_element", "property_identifier", "true", "false",
    "unary_expression", "string_fragment", "interpreted_string_literal_content", "escape_sequence", "comment",
))  # fmt: skip
"""Nodes of which the literal of a table consists."""


def list_tree_branches(path: str, before: str, after: str, language: Language) -> list[SpecialBranch]:
    """Return the new branches on rare literals that answer with a literal, and the new tables of a file."""
    tree, old = SyntaxTree(after, path, language), SyntaxTree(before, path, language)
    if tree.root.has_error:
        return []
    known = {old.text(node) for node in walk(old.root) if node.type in PARTS}
    found = []
    for node, edit, literals, is_table in _iter_parts(tree, language):
        if tree.text(node) in known or not any(map(_is_rare, literals)):
            continue
        name = _find_owner_name(tree, node)
        found.append(
            SpecialBranch(
                path=path,
                function=name,
                line=node.start_point[0] + 1,
                source=after,
                edit=edit,
                literals=tuple(literals),
                is_table=is_table,
            )
        )
    return found


def _find_owner_name(tree: SyntaxTree, node: Node) -> str:
    """Return the name of the function around a node, or of the variable that holds it outside of functions."""
    owner = tree.enclosing_function(node)
    above: Node | None = node
    while owner is None and above is not None and get_field(above, "name") is None:
        above = above.parent
    name = (
        function_name(owner) if owner is not None else get_field(above, "name") if above is not None else None
    )
    return tree.text(name) if name is not None else ""


def _iter_parts(tree: SyntaxTree, language: Language) -> Iterator[tuple[Node, Edit, list[object], bool]]:
    """Yield each branch and table, the edit that switches it off, its literals, and whether it is a table."""
    table_end = 0
    for node in walk(tree.root):
        condition = get_condition(node)
        if node.type in BRANCHES and condition is not None:
            if _answers_literal(get_field(node, "consequence")):
                # The condition stays, so that no variable is unused.
                edit = replace_node(condition, f"false && ({tree.text(condition)})")
                yield node, edit, _read_literals(tree, condition, language), False
        elif node.type in CASES:
            value = get_field(node, "value")
            if value is not None and _answers_literal(node):
                yield node, replace_node(node, ""), _read_literals(tree, value, language), False
        elif (
            node.type in TABLES
            and node.start_byte >= table_end
            and all(part.type in TABLE_PARTS for part in walk(node) if part.is_named)
        ):
            table_end = node.end_byte
            empty = "{}" if tree.text(node).startswith("{") else "[]"
            yield node, replace_node(node, empty), _read_literals(tree, node, language), True


def _answers_literal(node: Node | None) -> bool:
    """Return whether the last statement of a branch, or the expression that it is, returns a literal."""
    if node is None:
        return False
    while node.type in ("statement_block", "block", "statement_list", *CASES) and node.named_children:
        node = node.named_children[-1]
    values = returned_values(node) or [node]
    return all(value.type in (*LITERALS, *TABLES, "true", "false") for value in values)


def _read_literals(tree: SyntaxTree, node: Node, language: Language) -> list[object]:
    driver = LANGUAGES[language].calls
    assert driver is not None
    parts = (part for part in walk(node) if part.type in LITERALS)
    return [value for part in parts for value in read_plain_literals(tree.text(part), driver) or ()]


def _is_rare(value: object) -> bool:
    return is_specific(value) and not (isinstance(value, str) and len(value) == 1)
