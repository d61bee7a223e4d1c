"""Guesses the kind of value of expressions and variables.

The lists of names and nodes are chosen by judgement. They were written for JavaScript: in Go, an assignment such as
`x := 1` says nothing about `x`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.node_kinds import CALLS, MEMBERS, NUMBERS, STRINGS, SUBSCRIPTS

if TYPE_CHECKING:
    from tree_sitter import Node

NUMERIC_CALLS = (
    "len", "int", "Number", "parseInt", "parseFloat", "abs", "floor", "ceil", "round", "sqrt",
    "indexOf",
)  # fmt: skip
SEQUENCE_METHODS = (
    "push", "pop", "shift", "unshift", "sort", "reverse", "map", "filter", "forEach", "join", "reduce",
    "every", "some", "splice", "concat",
)  # fmt: skip
TEXT_METHODS = (
    "split", "toLowerCase", "toUpperCase", "charCodeAt", "charAt", "trim", "startsWith", "endsWith",
)  # fmt: skip
MAPPING_METHODS = ("set", "has", "entries")
NUMERIC_OPERATORS = ("-", "*", "/", "%", "**")
KIND_BY_METHOD: dict[str, ValueKind] = {
    **dict.fromkeys(SEQUENCE_METHODS, "sequence"),
    **dict.fromkeys(TEXT_METHODS, "text"),
    **dict.fromkeys(MAPPING_METHODS, "mapping"),
}
KIND_BY_NODE: dict[str, ValueKind] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys((*STRINGS, "template_string"), "text"),
    **dict.fromkeys(("update_expression", "inc_statement", "dec_statement"), "number"),
    **dict.fromkeys(("array", "slice_expression"), "sequence"),
    # By judgement: what `new` creates is most often a `Map` or another object with named parts.
    **dict.fromkeys(("object", "new_expression"), "mapping"),
}


def guess_node_kind(node: Node) -> ValueKind:
    """Return the kind of value that an expression seems to have."""
    kind = KIND_BY_NODE.get(node.type, "unknown")
    if node.type in (*CALLS, *MEMBERS) and _last_name(node) in (*NUMERIC_CALLS, "length"):
        return "number"
    sign = node.child_by_field_name("operator")
    if node.type in ("binary_expression", "unary_expression") and sign is not None:
        return "number" if sign.type in NUMERIC_OPERATORS else "unknown"
    return kind


def find_kind_evidence(node: Node) -> Iterator[tuple[Node, ValueKind]]:
    """Yield `(name, kind)` for names in a node whose kind of value the node shows.

    For example, `i++` shows that `i` is a number.
    """
    above = node.parent
    if node.type in ("variable_declarator", "assignment_expression", "augmented_assignment_expression"):
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and value is not None and (kind := guess_node_kind(value)) != "unknown":
            yield target, kind
    elif node.type in ("binary_expression", "update_expression", "inc_statement", "dec_statement"):
        sign = node.child_by_field_name("operator")
        if node.type != "binary_expression" or (sign is not None and sign.type in NUMERIC_OPERATORS):
            yield from ((side, "number") for side in node.named_children)
    elif node.type in SUBSCRIPTS and node.named_child_count > 1:
        if node.named_children[1].type in NUMBERS:
            yield node.named_children[0], "sequence"
    elif node.type == "argument_list" and above is not None and above.type in CALLS:  # Go
        if _last_name(above) == "append":
            yield from ((argument, "sequence") for argument in node.named_children[:1])
    elif node.type in MEMBERS and above is not None and above.type in CALLS:
        kind = KIND_BY_METHOD.get(_last_name(node), "unknown")
        if kind != "unknown":
            yield node.named_children[0], kind


def kind_fit(kind: ValueKind, replacement_kind: ValueKind) -> float:
    """Return how well a variable of one kind can replace one of another, in (0, 1].

    The numbers are chosen by judgement: a variable of an unknown kind often fits, one of another kind seldom.
    """
    if "unknown" in (kind, replacement_kind):
        return 0.8
    return 1.0 if kind == replacement_kind else 0.25


def _last_name(node: Node) -> str:
    """Return the last name of a called function or member: `c` of `a.b.c`."""
    callee = node.child_by_field_name("function") or node
    name = callee.child_by_field_name("property") or callee.child_by_field_name("field") or callee
    return (name.text or b"").decode("utf-8", "replace")
