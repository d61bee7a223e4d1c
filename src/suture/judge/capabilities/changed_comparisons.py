"""Find methods of JavaScript, TypeScript and Go by which values compare themselves, and that compare less than before.

A test that compares by such a method then accepts values that differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.node_kinds import MEMBERS
from suture.mutation.tree_sitter.syntax_tree import get_field, walk

if TYPE_CHECKING:
    from tree_sitter import Node

EQUALITY_METHODS = (
    "equals",
    "isEqual",
    "equal",
    "eq",
    "compareTo",
    "Equal",
    "Equals",
    "Compare",
    "Cmp",
    "Less",
)
VALUE_METHODS = ("valueOf", "toJSON", "[Symbol.toPrimitive]")
"""Methods that give what an object is compared by."""
METHODS = ("method_definition", "method_declaration")
COMPARISONS = ("==", "===", "!=", "!==", "<", "<=", ">", ">=")


def find_weakened_comparisons(before: Node, after: Node) -> Iterator[Use]:
    """Yield each comparison of both versions that no longer compares something, or demands less of it."""
    old = dict(_list_methods(before))
    for key, method in _list_methods(after):
        earlier = old.get(key)
        if earlier is None or earlier.text == method.text:
            continue
        kind, name = key
        reads = _list_members(earlier) - _list_members(method)
        compares_less = bool(_list_sides(earlier) - _list_sides(method)) or (
            _count_operators(method, "||") > _count_operators(earlier, "||")
            and _count_operators(method, "&&") < _count_operators(earlier, "&&")
        )
        # An object that newly computes what it is compared by, as by rounding, may do so from the same fields.
        is_coarser = name != "toJSON" and _count_operators(method, "") > _count_operators(earlier, "")
        if compares_less if name in EQUALITY_METHODS else (reads or is_coarser):
            shown = f"{kind}.{name} compares less"
            yield Use(code="loosens_comparison", name=shown, line=method.start_point[0] + 1, key=shown)


def _list_methods(root: Node) -> Iterator[tuple[tuple[str, str], Node]]:
    """Yield ((class, name), method) for each method that compares."""
    for node in walk(root):
        name = _text(node.child_by_field_name("name")) if node.type in METHODS else ""
        if name not in (*EQUALITY_METHODS, *VALUE_METHODS):
            continue
        holder = node.child_by_field_name("receiver") or (
            node.parent.parent if node.parent is not None else None
        )
        kinds = (
            (part for part in walk(holder) if part.type in ("type_identifier", "identifier"))
            if holder
            else ()
        )
        owners = [_text(part) for part in kinds]
        yield (
            (owners[-1] if node.type == "method_declaration" and owners else next(iter(owners), ""), name),
            node,
        )


def _list_sides(method: Node) -> set[frozenset[str]]:
    """Return the pairs of expressions that a method compares with each other."""
    return {
        frozenset(_text(get_field(node, side)) for side in ("left", "right"))
        for node in walk(method)
        if node.type == "binary_expression" and _text(node.child_by_field_name("operator")) in COMPARISONS
    }


def _list_members(method: Node) -> set[str]:
    return {_text(get_field(node, "property", "field")) for node in walk(method) if node.type in MEMBERS}


def _count_operators(method: Node, sign: str) -> int:
    """Return how often a method uses an operator, or how often it uses operators and calls if the sign is empty."""
    counted = ("binary_expression", "call_expression") if not sign else ("binary_expression",)
    nodes = [node for node in walk(method) if node.type in counted]
    return sum(not sign or _text(node.child_by_field_name("operator")) == sign for node in nodes)


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""
