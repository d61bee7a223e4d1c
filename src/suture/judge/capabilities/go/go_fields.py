"""Find structures of a Go file whose values a change lets look alike to `reflect.DeepEqual` and `==`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import walk

if TYPE_CHECKING:
    from tree_sitter import Node

BLANK_NAME = "_"
OUTER_STATE = re.compile(r"map\[(?:\*(\w+)|uintptr|unsafe\.Pointer|any|interface\{\})\]|sync\.Map")
"""The type of a variable of the package that can hold the fields of other objects."""


def find_lost_fields(before: Node, after: Node) -> Iterator[Use]:
    """Yield each structure of both versions that lost all its fields, or some to a map of its objects."""
    old, new = _list_structures(before), _list_structures(after)
    holders = _list_holders(after) - _list_holders(before)
    for name, (fields, line) in new.items():
        lost = old[name][0] - fields if name in old else set[str]()
        if lost and (not fields or holders & {name, ""}):
            shown = f"{name} without {min(lost)}"
            yield Use(code="loosens_comparison", name=shown, line=line, key=shown)


def _list_structures(root: Node) -> dict[str, tuple[set[str], int]]:
    """Return the name of each structure -> (its fields and embedded types, its line)."""
    found: dict[str, tuple[set[str], int]] = {}
    for node in walk(root):
        kind = node.child_by_field_name("type") if node.type == "type_spec" else None
        if kind is not None and kind.type == "struct_type":
            fields = {
                _text(name)
                for part in walk(kind)
                if part.type == "field_declaration"
                for name in part.children_by_field_name("name") or [part]
            }
            found[_text(node.child_by_field_name("name"))] = (fields - {BLANK_NAME}, node.start_point[0] + 1)
    return found


def _list_holders(root: Node) -> set[str]:
    """Return the types whose objects a map of the package has as keys; an empty name if it may be any."""
    texts = [_text(node) for node in root.named_children if node.type == "var_declaration"]
    return {match[1] or "" for text in texts for match in OUTER_STATE.finditer(text)}


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""
