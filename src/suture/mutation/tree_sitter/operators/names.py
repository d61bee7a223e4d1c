"""Wrong names: a variable, a function or method, an attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.tree_sitter.grammars import CALLS, DECLARES, MEMBERS
from suture.mutation.tree_sitter.value_kinds import kind_fit
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_NAMES = 14


def _variable(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A name taken for another of the same function, also where it is set."""
    above = node.parent
    if node.type != "identifier" or above is None or above.type in DECLARES - {"variable_declarator"}:
        return
    if is_same_node(above.child_by_field_name("function"), node) or is_same_node(above.child_by_field_name("name"), node):
        return
    if not view.is_declared(node):
        return
    own, known = view.text(node), view.scope_names(node)
    kinds, usual = view.kinds(node), 1.0 if view.is_read(node) else 0.5
    for place, other in enumerate([name for name in known if name != own][:MOST_NAMES]):
        likeness = kind_fit(kinds.get(own, "unknown"), kinds.get(other, "unknown"))
        yield view.replace_with(node, other, usual * likeness * 0.99**place)


def _called(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Another function or method of the same family, or of the same file and arity."""
    if node.type not in CALLS:
        return
    called = get_field(node, "function", "constructor")
    name = get_field(called, "property", "field") if called is not None and called.type in MEMBERS else called
    if name is None or name.type not in ("identifier", "property_identifier", "field_identifier"):
        return
    old = view.text(name)
    family = [o for group in view.grammar.families if old in group for o in group]
    arity = view.functions.get(old)
    alike = [other for other, count in view.functions.items() if arity is not None and count == arity]
    for other in dict.fromkeys((*family, *alike)):
        if other != old:
            yield view.replace_with(name, other, 1.0 if other in family else 0.7)


def _attribute(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Another of the attributes that the file reads."""
    of, name = get_field(node, "object", "operand"), get_field(node, "property", "field")
    above = node.parent
    if node.type not in MEMBERS or of is None or name is None or above is None:
        return
    if is_same_node(above.child_by_field_name("function"), node):
        return
    old, known = view.text(name), view.properties.get(view.text(of), [])
    for other in list(dict.fromkeys((*known, *view.properties[""])))[:MOST_NAMES]:
        if other != old:
            yield view.replace_with(name, other, 1.0 if other in known else 0.6)


def _attribute_for_name(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`node` where `node.value` is meant, and the reverse."""
    if not view.is_read(node):
        return
    of, above = get_field(node, "object", "operand"), node.parent
    if node.type in MEMBERS and of is not None and of.type == "identifier":
        yield view.replace_with(node, view.text(of), 0.6)
    elif node.type == "identifier" and above is not None and above.type not in MEMBERS:
        for other in view.properties.get(view.text(node), [])[:6]:
            yield view.replace_with(node, f"{view.text(node)}.{other}", 0.5)


def _iterated(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`in` where `of` is meant; index and value of Go's `range` the wrong way round."""
    if node.type == "for_in_statement":
        sign = get_field(node, "operator")
        if sign is not None and view.text(sign) in ("in", "of"):
            yield view.replace_with(sign, "of" if view.text(sign) == "in" else "in", 1.0)
    left = get_field(node, "left")
    if node.type == "range_clause" and left is not None:
        names = [view.text(name) for name in left.named_children]
        if len(names) == 1:
            yield view.replace_with(left, f"_, {names[0]}", 1.0)
        elif names[0] == "_":
            yield view.replace_with(left, names[1], 0.8)
        else:
            yield view.replace_with(left, f"{names[1]}, {names[0]}", 0.7)


FAMILIES = {
    "variable": _variable,
    "called name": _called,
    "attribute": _attribute,
    "attribute or name": _attribute_for_name,
    "iterated": _iterated,
}
