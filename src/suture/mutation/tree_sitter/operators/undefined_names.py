"""Names that nothing defines, and members that are probably misspelt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.edits import Edit
from suture.mutation.name_similarity import find_similar_names
from suture.mutation.tree_sitter.node_kinds import DECLARES, MEMBERS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node, walk
from suture.mutation.tuning import MAX_TREE_UNDEFINED_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

DEFINING_NODES = frozenset((
    "class_declaration", "class", "function_declaration", "function_expression", "catch_clause",
    "generator_function_declaration", "generator_function", "import_specifier", "import_clause",
    "namespace_import", "object_pattern", "pair_pattern", "enum_declaration", "internal_module",
    "import_require_clause", "abstract_class_declaration", "function_signature", "module",
))  # fmt: skip
"""Nodes that define the name they hold, beside those in `DECLARES`."""
DEFINED_NODES = ("identifier", "type_identifier", "shorthand_property_identifier_pattern")


def _replace_undefined_name(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a name that neither the file nor the language defines."""
    if node.type != "identifier" or not (tree.is_read(node) or _is_called_name(node)):
        return
    names = tree.cached("known names", _known_names)
    name = tree.text(node)
    if name in names or name in tree.syntax.global_names or not tree.syntax.global_names:
        return
    near = tree.scope_names(node)
    for other, share in find_similar_names(name, (*near, *names, *tree.syntax.global_names)):
        yield tree.replace_with(node, other, share * (1.0 if other in near else 0.8))
    for other in near[:MAX_TREE_UNDEFINED_NAMES]:
        yield tree.replace_with(node, other, 0.4)


def _replace_unknown_member(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a member that the file has once and that is similar to a common one."""
    read = get_field(node, "property", "field")
    if node.type not in MEMBERS or read is None:
        return
    counts, name = tree.cached("members", _count_members), tree.text(read)
    if counts[name] > 1 or name in tree.syntax.builtin_members:
        return
    others = (*tree.syntax.builtin_members, *(other for other, count in counts.items() if count > 1))
    for other, share in find_similar_names(name, others):
        edit = Edit(start=read.start_byte, end=read.end_byte, text=other)
        yield Change(edits=(edit,), note=f".{name} becomes .{other}", weight=share**2)


def _is_called_name(node: Node) -> bool:
    above = node.parent
    return above is not None and is_same_node(get_field(above, "function", "constructor"), node)


def _known_names(tree: SyntaxTree) -> frozenset[str]:
    """Return every name that something in a file defines."""
    return frozenset(
        tree.text(node) for node in walk(tree.root) if node.type in DEFINED_NODES and _defines(node)
    )


def _defines(node: Node) -> bool:
    above = node.parent
    if above is None or node.type == "shorthand_property_identifier_pattern":
        return above is not None
    if above.type in ("assignment_expression", "augmented_assignment_expression"):
        return is_same_node(get_field(above, "left"), node)  # an assignment without a declaration defines too
    if above.type == "arrow_function":
        return is_same_node(get_field(above, "parameter"), node)
    if above.type in DECLARES:
        return not is_same_node(get_field(above, "value", "right"), node)
    return above.type in DEFINING_NODES


def _count_members(tree: SyntaxTree) -> Counter[str]:
    """Return name of a member -> how often the file defines or reads it."""
    kinds = ("property_identifier", "field_identifier", "shorthand_property_identifier")
    return Counter(tree.text(node) for node in walk(tree.root) if node.type in kinds)


OPERATORS: TreeOperators = {
    "undefined_name": _replace_undefined_name,
    "unknown_attribute": _replace_unknown_member,
}
