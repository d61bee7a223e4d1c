"""Replaces names of variables, called functions and attributes, and changes what a loop iterates over.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node
from suture.mutation.tree_sitter.value_kinds import CALLS, DECLARING_NODES, MEMBERS, kind_fit
from suture.mutation.tuning import MAX_TREE_VARIABLES

if TYPE_CHECKING:
    from tree_sitter import Node


def _change_variable(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use another variable of the function, also where one is assigned."""
    above = node.parent
    if node.type != "identifier" or above is None or above.type in DECLARING_NODES - {"variable_declarator"}:
        return
    is_declaration = any(is_same_node(get_field(above, name), node) for name in ("function", "name"))
    if is_declaration or not tree.is_declared(node):
        return
    old, kinds = tree.text(node), tree.kinds(node)
    weight = 1.0 if tree.is_read(node) else 0.5
    others = [name for name in tree.scope_names(node) if name != old]
    for rank, other in enumerate(others[:MAX_TREE_VARIABLES]):
        fit = kind_fit(kinds.get(old, "unknown"), kinds.get(other, "unknown"))
        yield tree.replace_with(node, other, weight * fit * 0.99**rank)


def _change_called_name(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Call a function with a confusable name, such as `floor` for `ceil`, or one of the same file and arity."""
    if node.type not in CALLS:
        return
    callee = get_field(node, "function", "constructor")
    name = get_field(callee, "property", "field") if callee is not None and callee.type in MEMBERS else callee
    if name is None or name.type not in ("identifier", "property_identifier", "field_identifier"):
        return
    old = tree.text(name)
    confusable = [other for group in tree.syntax.confusable_names if old in group for other in group]
    arity = tree.functions.get(old)
    same_arity = [other for other, count in tree.functions.items() if arity is not None and count == arity]
    for other in dict.fromkeys((*confusable, *same_arity)):
        if other != old:
            yield tree.replace_with(name, other, 1.0 if other in confusable else 0.7)


def _change_attribute(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Read another attribute that the file reads."""
    owner, name = get_field(node, "object", "operand"), get_field(node, "property", "field")
    above = node.parent
    if node.type not in MEMBERS or owner is None or name is None or above is None:
        return
    if is_same_node(above.child_by_field_name("function"), node):
        return  # a called method is left to `called_name`
    owner_attributes = tree.properties.get(tree.text(owner), [])
    for other in list(dict.fromkeys((*owner_attributes, *tree.properties[""])))[:MAX_TREE_VARIABLES]:
        if other != tree.text(name):
            yield tree.replace_with(name, other, 1.0 if other in owner_attributes else 0.6)


def _switch_attribute_and_name(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Use `a` in place of `a.b`, or the reverse with an attribute that the file reads of `a`."""
    if not tree.is_read(node):
        return
    owner, above = get_field(node, "object", "operand"), node.parent
    if node.type in MEMBERS and owner is not None and owner.type == "identifier":
        yield tree.replace_with(node, tree.text(owner), 0.6)
    elif node.type == "identifier" and above is not None and above.type not in MEMBERS:
        for member in tree.properties.get(tree.text(node), [])[:6]:  # six is chosen by judgement
            yield tree.replace_with(node, f"{tree.text(node)}.{member}", 0.5)


def _change_iteration(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Switch `in` and `of`, or the index and the value of a Go `range`."""
    if node.type == "for_in_statement":
        sign = get_field(node, "operator")
        if sign is not None and tree.text(sign) in ("in", "of"):
            yield tree.replace_with(sign, "of" if tree.text(sign) == "in" else "in", 1.0)
    left = get_field(node, "left")
    if node.type == "range_clause" and left is not None:
        names = [tree.text(name) for name in left.named_children]
        if len(names) == 1:  # one name is the index
            yield tree.replace_with(left, f"_, {names[0]}", 1.0)
        elif names[0] == "_":
            yield tree.replace_with(left, names[1], 0.8)
        else:
            yield tree.replace_with(left, f"{names[1]}, {names[0]}", 0.7)


OPERATORS: TreeOperators = {
    "variable": _change_variable,
    "called_name": _change_called_name,
    "attribute": _change_attribute,
    "attribute_or_name": _switch_attribute_and_name,
    "iteration": _change_iteration,
}
