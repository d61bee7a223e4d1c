"""Replaces names that nothing defines, and members that are probably misspelt.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, find_similar_names
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    replace_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import DECLARING_NODES, MEMBERS
from suture.mutation.tuning import MAX_TREE_UNDEFINED_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

DEFINING_NODES = frozenset((
    "class_declaration", "class", "function_declaration", "function_expression", "catch_clause",
    "generator_function_declaration", "generator_function", "import_specifier", "import_clause",
    "namespace_import", "object_pattern", "pair_pattern", "enum_declaration", "internal_module",
    "import_require_clause", "abstract_class_declaration", "function_signature", "module",
))  # fmt: skip
"""Nodes that define the name they contain, in addition to those in `DECLARING_NODES`."""
DEFINED_NODES = ("identifier", "type_identifier", "shorthand_property_identifier_pattern")
"""Nodes of names that a file can define. The last one is `a` in `const {a} = b`."""


def _replace_undefined_name(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a name that neither the file nor the language defines.

    Nothing is undefined for certain in a language whose `global_names` are empty, such as Go: another file
    of the folder may define the name.
    """
    if node.type != "identifier" or not (tree.is_read(node) or _is_called_name(node)):
        return
    defined_names = tree.cached("defined names", _find_defined_names)
    name = tree.text(node)
    if name in defined_names or name in tree.syntax.global_names or not tree.syntax.global_names:
        return
    local_names = tree.scope_names(node)
    candidates = (*local_names, *defined_names, *tree.syntax.global_names)
    for other, similarity in find_similar_names(name, candidates):
        yield tree.replace_with(node, other, similarity * (1.0 if other in local_names else 0.8))
    for other in local_names[:MAX_TREE_UNDEFINED_NAMES]:
        yield tree.replace_with(node, other, 0.4)


def _replace_unknown_member(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Replace a member that appears once in the file and is similar to a built-in or repeated one."""
    member = get_field(node, "property", "field")
    if node.type not in MEMBERS or member is None:
        return
    counts, name = tree.cached("members", _count_members), tree.text(member)
    if counts[name] > 1 or name in tree.syntax.builtin_members:
        return
    candidates = (*tree.syntax.builtin_members, *(other for other, count in counts.items() if count > 1))
    for other, similarity in find_similar_names(name, candidates):
        # The square, by judgement: a member that another file defines may be right.
        edit = replace_node(member, other)
        yield Change(edits=(edit,), note=f".{name} becomes .{other}", weight=similarity**2)


def _is_called_name(node: Node) -> bool:
    above = node.parent
    return above is not None and is_same_node(get_field(above, "function", "constructor"), node)


def _find_defined_names(tree: SyntaxTree) -> frozenset[str]:
    """Return every name that something in a file defines."""
    nodes = (node for node in walk(tree.root) if node.type in DEFINED_NODES)
    return frozenset(tree.text(node) for node in nodes if _defines(node))


def _defines(node: Node) -> bool:
    """Return whether a name is at a place that defines it: a declaration, an import or an assignment."""
    above = node.parent
    if above is None or node.type == "shorthand_property_identifier_pattern":
        return above is not None  # such a pattern always defines
    if above.type in ("assignment_expression", "augmented_assignment_expression"):
        return is_same_node(get_field(above, "left"), node)  # an assignment without a declaration defines too
    if above.type == "arrow_function":
        return is_same_node(get_field(above, "parameter"), node)
    if above.type in DECLARING_NODES:
        return not is_same_node(get_field(above, "value", "right"), node)
    return above.type in DEFINING_NODES


def _count_members(tree: SyntaxTree) -> Counter[str]:
    """Return name of a member -> how often the file defines or reads it."""
    node_types = ("property_identifier", "field_identifier", "shorthand_property_identifier")
    return Counter(tree.text(node) for node in walk(tree.root) if node.type in node_types)


OPERATORS: TreeOperators = {
    "undefined_name": _replace_undefined_name,
    "unknown_attribute": _replace_unknown_member,
}
