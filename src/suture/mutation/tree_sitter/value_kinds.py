"""Guesses the kind of value of expressions and variables, and how frequent an operator is between them.

The frequencies are those of Python: people compare and calculate alike in these languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.python.scope_names import ValueKind
from suture.mutation.sign_frequencies import AUGMENTED, BINARY, COMPARED, frequency_ratio
from suture.mutation.tree_sitter.node_kinds import CALLS, MEMBERS, NUMBERS, PARTS, STRINGS

if TYPE_CHECKING:
    from tree_sitter import Node

NULL_NODES = ("null", "nil", "undefined")
NUMERIC_CALLS = (
    "len", "int", "Number", "parseInt", "parseFloat", "abs", "floor", "ceil", "round", "sqrt",
    "indexOf",
)  # fmt: skip
SEQUENCE_METHODS = (
    "push", "pop", "shift", "unshift", "sort", "reverse", "map", "filter", "forEach", "join", "reduce",
    "every", "some", "splice", "concat",
)  # fmt: skip
TEXT_METHODS = (
    "split",
    "toLowerCase",
    "toUpperCase",
    "charCodeAt",
    "charAt",
    "trim",
    "startsWith",
    "endsWith",
)
MAPPING_METHODS = ("set", "has", "entries")
NUMERIC_OPERATORS = ("-", "*", "/", "%", "**", "-=", "*=", "/=", "%=")
LOOSE_EQUALITY = {"===": "==", "!==": "!="}
IDENTITY_OPERATORS = {"==": "is", "!=": "is not"}
KIND_BY_NODE: dict[str, ValueKind] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys((*STRINGS, "template_string"), "text"),
    **dict.fromkeys(("update_expression", "inc_statement", "dec_statement"), "number"),
    **dict.fromkeys(("array", "slice_expression"), "sequence"),
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
    """Yield names in a node, each with the kind of value that the node suggests."""
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
    elif node.type in PARTS and node.named_child_count > 1:
        if node.named_children[1].type in NUMBERS:
            yield node.named_children[0], "sequence"
    elif node.type in MEMBERS and above is not None and above.type in CALLS:
        called = _last_name(node)
        for names, kind in KIND_BY_METHODS:
            if called in names:
                yield node.named_children[0], kind


KIND_BY_METHODS: tuple[tuple[tuple[str, ...], ValueKind], ...] = (
    (SEQUENCE_METHODS, "sequence"),
    (TEXT_METHODS, "text"),
    (MAPPING_METHODS, "mapping"),
)


def kind_fit(one: ValueKind, other: ValueKind) -> float:
    """Return how well a variable of one kind can replace one of another, in (0, 1]."""
    return 0.8 if "unknown" in (one, other) else 1.0 if one == other else 0.25


def sign_ratio(left: Node, before: str, after: str, right: Node) -> float:
    """Return the factor for replacing an operator, by both frequencies; 1 where nothing is known."""
    old, new = LOOSE_EQUALITY.get(before, before), LOOSE_EQUALITY.get(after, after)
    kinds = (_operand_kind(left), _operand_kind(right))
    if old in COMPARED["other"] and new in COMPARED["other"]:
        kind = kinds[1]
        if kind == "other" and kinds[0] in ("text", "number"):
            kind = f"{kinds[0]} first"
        if kind in ("none", "bool"):
            old, new = IDENTITY_OPERATORS.get(old, old), IDENTITY_OPERATORS.get(new, new)
        return frequency_ratio(COMPARED[kind].get(old, 0), COMPARED[kind].get(new, 0))
    if old in BINARY["other"] and new in BINARY["other"] and not {"text", "display"} & {*kinds}:
        kind = "number" if kinds[1] == "number" else "number first" if kinds[0] == "number" else "other"
        return frequency_ratio(_operator_frequency(BINARY[kind], old), _operator_frequency(BINARY[kind], new))
    return 1.0


def assignment_ratio(before: str, after: str, value: Node) -> float:
    """Return the same factor for assignments such as `+=`."""
    old, new = before.removesuffix("="), after.removesuffix("=")
    shares = AUGMENTED["number" if _operand_kind(value) == "number" else "other"]
    return (
        frequency_ratio(_operator_frequency(shares, old), _operator_frequency(shares, new))
        if old and new
        else 1.0
    )


def _operator_frequency(shares: dict[str, int], sign: str) -> int:
    """Return the frequency of an operator; `/` includes both divisions of Python."""
    return shares.get(sign, 0) + (shares.get("//", 0) if sign == "/" else 0)


def _operand_kind(node: Node) -> str:
    """Return the kind of an operand as the tables of `sign_frequencies` name it."""
    if node.type in NULL_NODES:
        return "none"
    if node.type in ("true", "false"):
        return "bool"
    literal = node.type in (*NUMBERS, *STRINGS, "template_string", *CALLS, *MEMBERS, "unary_expression")
    kind = guess_node_kind(node) if literal else "other"
    return "display" if node.type in ("array", "object") else kind if kind in ("number", "text") else "other"


def _last_name(node: Node) -> str:
    called = node.child_by_field_name("function") or node
    name = called.child_by_field_name("property") or called.child_by_field_name("field") or called
    return (name.text or b"").decode("utf-8", "replace")
