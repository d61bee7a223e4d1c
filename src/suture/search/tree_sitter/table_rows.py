"""Calls in a loop over a table of structs, as Go's tests have them: `f(c.in)` with what each row holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_ROWS = 60


def arguments_by_row(view: SyntaxTree, given: Node) -> list[str]:
    """The arguments of a call as text, once for each row of a table that has all the fields it names.

    Args:
        view: A file of tests.
        given: The call's arguments.
    """
    parts = given.named_children
    wanted = {view.text(name) for part in parts if (name := _named(part)) is not None}
    if not wanted:
        return []
    test = outer = view.enclosing_function(given)
    while outer is not None:
        test, outer = outer, view.enclosing_function(outer)
    for place in (test, view.root):  # a test's own table comes before another's with the same fields
        known = view.cached(f"rows {place.id}", partial(_rows, place)) if place is not None else []
        rows = [row for row in known if wanted <= row.keys()]
        if rows:
            return [", ".join(_part(view, part, row) for part in parts) for row in rows[:MOST_ROWS]]
    return []


def _named(part: Node) -> Node | None:
    """The field that an argument is of a variable; `None` where it is something else."""
    of = get_field(part, "operand")
    plain = part.type == "selector_expression" and of is not None and of.type == "identifier"
    return get_field(part, "field") if plain else None


def _part(view: SyntaxTree, part: Node, row: Mapping[str, str]) -> str:
    name = _named(part)
    return row[view.text(name)] if name is not None else view.text(part)


def _rows(place: Node, view: SyntaxTree) -> list[dict[str, str]]:
    """Field -> text of its value, for each struct in the tables of a place."""
    found = []
    for node in walk(place):
        kind, body = get_field(node, "type"), get_field(node, "body")
        if node.type != "composite_literal" or kind is None or body is None:
            continue
        names = _fields(view, get_field(kind, "element", "value"))
        for element in body.named_children if names else ():
            row = element.named_children[-1] if element.type == "keyed_element" else element
            while row.type == "literal_element" and row.named_child_count == 1:
                row = row.named_children[0]
            if row.type == "literal_value":
                found.append(_row(view, row, names))
    return found


def _row(view: SyntaxTree, row: Node, names: list[str]) -> dict[str, str]:
    parts = [part for part in row.named_children if part.type != "comment"]
    if all(part.type == "keyed_element" for part in parts):
        return {view.text(part.named_children[0]): view.text(part.named_children[-1]) for part in parts}
    return dict(zip(names, map(view.text, parts), strict=False))


def _fields(view: SyntaxTree, kind: Node | None) -> list[str]:
    """Names of a struct's fields, in their order; of one with a name too, where the file declares it."""
    if kind is not None and kind.type == "type_identifier":
        specs = (node for node in walk(view.root) if node.type == "type_spec")
        named = (spec for spec in specs if view.text(spec.named_children[0]) == view.text(kind))
        kind = get_field(spec, "type") if (spec := next(named, None)) is not None else None
    if kind is None or kind.type != "struct_type":
        return []
    declared = (node for node in walk(kind) if node.type == "field_declaration")
    return [view.text(name) for node in declared for name in node.children_by_field_name("name")]
