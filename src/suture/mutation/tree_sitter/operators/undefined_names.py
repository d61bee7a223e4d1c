"""Names that nothing defines: misspelt ones, and such as nothing ever sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.name_similarity import find_similar_names
from suture.mutation.changes import Change
from suture.mutation.tree_sitter.grammars import DECLARES, MEMBERS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_NAMES = 10
DEFINING = frozenset(
    (
        *("class_declaration", "class", "function_declaration", "function_expression", "catch_clause"),
        *("generator_function_declaration", "generator_function", "import_specifier", "import_clause"),
        *("namespace_import", "object_pattern", "pair_pattern", "enum_declaration", "internal_module"),
        *("import_require_clause", "abstract_class_declaration", "function_signature", "module"),
    )
)
"""What holds a name that it defines, beside what `DECLARES` names."""
DEFINED = ("identifier", "type_identifier", "shorthand_property_identifier_pattern")


def _name(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A name that nothing of the file defines, and that is none of the language's own."""
    if node.type != "identifier" or not (view.is_read(node) or _is_called(node)):
        return
    known = view.cached("known names", _known)
    name = view.text(node)
    if name in known or name in view.grammar.own_names or not view.grammar.own_names:
        return
    near = view.scope_names(node)
    for other, share in find_similar_names(name, (*near, *known, *view.grammar.own_names)):
        yield view.replace_with(node, other, share * (1.0 if other in near else 0.8))
    for other in near[:MOST_NAMES]:
        yield view.replace_with(node, other, 0.4)


def _member(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A member that the file names once, and that is nearly one that is usual or that the file has."""
    read = get_field(node, "property", "field")
    if node.type not in MEMBERS or read is None:
        return
    counts, name = view.cached("members", _members), view.text(read)
    if counts[name] > 1 or name in view.grammar.own_members:
        return
    others = (*view.grammar.own_members, *(other for other, count in counts.items() if count > 1))
    for other, share in find_similar_names(name, others):
        edit = Edit(start=read.start_byte, end=read.end_byte, text=other)
        yield Change(edits=(edit,), note=f".{name} becomes .{other}", weight=share**2)


def _is_called(node: Node) -> bool:
    above = node.parent
    return above is not None and is_same_node(get_field(above, "function", "constructor"), node)


def _known(view: SyntaxTree) -> frozenset[str]:
    """Every name that something in a file defines, wherever."""
    return frozenset(view.text(node) for node in walk(view.root) if node.type in DEFINED and _defines(node))


def _defines(node: Node) -> bool:
    above = node.parent
    if above is None or node.type == "shorthand_property_identifier_pattern":
        return above is not None
    if above.type in ("assignment_expression", "augmented_assignment_expression"):
        return is_same_node(get_field(above, "left"), node)  # without a declaration it defines a name too
    if above.type == "arrow_function":
        return is_same_node(get_field(above, "parameter"), node)
    if above.type in DECLARES:
        return not is_same_node(get_field(above, "value", "right"), node)
    return above.type in DEFINING


def _members(view: SyntaxTree) -> Counter[str]:
    """Names of members -> how often the file has them, defined or read."""
    kinds = ("property_identifier", "field_identifier", "shorthand_property_identifier")
    return Counter(view.text(node) for node in walk(view.root) if node.type in kinds)


FAMILIES = {"undefined name": _name, "unknown attribute": _member}
