"""What expressions and variables seem to hold, and how usual a sign is between such: guesses for an order.

The shares are those of Python's habits: people compare and calculate alike in these languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.sign_frequencies import AUGMENTED, BINARY, COMPARED, frequency_ratio
from suture.mutation.python.scope_names import ValueKind
from suture.mutation.tree_sitter.grammars import CALLS, MEMBERS, NUMBERS, PARTS, STRINGS

if TYPE_CHECKING:
    from tree_sitter import Node

NOTHING = ("null", "nil", "undefined")
COUNTING = (
    *("len", "int", "Number", "parseInt", "parseFloat", "abs", "floor", "ceil", "round"),
    *("sqrt", "indexOf"),
)
OF_SEQUENCES = (
    *("push", "pop", "shift", "unshift", "sort", "reverse", "map", "filter", "forEach", "join", "reduce"),
    *("every", "some", "splice", "concat"),
)
OF_TEXTS = ("split", "toLowerCase", "toUpperCase", "charCodeAt", "charAt", "trim", "startsWith", "endsWith")
OF_MAPPINGS = ("set", "has", "entries")
NUMERIC = ("-", "*", "/", "%", "**", "-=", "*=", "/=", "%=")
PLAIN = {"===": "==", "!==": "!="}
IDENTITY = {"==": "is", "!=": "is not"}
KINDS: dict[str, ValueKind] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys((*STRINGS, "template_string"), "text"),
    **dict.fromkeys(("update_expression", "inc_statement", "dec_statement"), "number"),
    **dict.fromkeys(("array", "slice_expression"), "sequence"),
    **dict.fromkeys(("object", "new_expression"), "mapping"),
}


def guess_node_kind(node: Node) -> ValueKind:
    """What an expression seems to hold."""
    kind = KINDS.get(node.type, "unknown")
    if node.type in (*CALLS, *MEMBERS) and _last_name(node) in (*COUNTING, "length"):
        return "number"
    sign = node.child_by_field_name("operator")
    if node.type in ("binary_expression", "unary_expression") and sign is not None:
        return "number" if sign.type in NUMERIC else "unknown"
    return kind


def find_kind_evidence(node: Node) -> Iterator[tuple[Node, ValueKind]]:
    """Names, and what a node says that they hold."""
    above = node.parent
    if node.type in ("variable_declarator", "assignment_expression", "augmented_assignment_expression"):
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and value is not None and (kind := guess_node_kind(value)) != "unknown":
            yield target, kind
    elif node.type in ("binary_expression", "update_expression", "inc_statement", "dec_statement"):
        sign = node.child_by_field_name("operator")
        if node.type != "binary_expression" or (sign is not None and sign.type in NUMERIC):
            yield from ((side, "number") for side in node.named_children)
    elif node.type in PARTS and node.named_child_count > 1:
        if node.named_children[1].type in NUMBERS:
            yield node.named_children[0], "sequence"
    elif node.type in MEMBERS and above is not None and above.type in CALLS:
        called = _last_name(node)
        for names, kind in KINDS_OF_CALLS:
            if called in names:
                yield node.named_children[0], kind


KINDS_OF_CALLS: tuple[tuple[tuple[str, ...], ValueKind], ...] = (
    (OF_SEQUENCES, "sequence"),
    (OF_TEXTS, "text"),
    (OF_MAPPINGS, "mapping"),
)


def kind_fit(one: ValueKind, other: ValueKind) -> float:
    """How likely a variable of one kind stands where one of another does."""
    return 0.8 if "unknown" in (one, other) else 1.0 if one == other else 0.25


def sign_ratio(left: Node, before: str, after: str, right: Node) -> float:
    """How much likelier a sign between two is for being more usual there; 1 where nothing is known."""
    old, new = PLAIN.get(before, before), PLAIN.get(after, after)
    kinds = (_habit(left), _habit(right))
    if old in COMPARED["other"] and new in COMPARED["other"]:
        kind = kinds[1]
        if kind == "other" and kinds[0] in ("text", "number"):
            kind = f"{kinds[0]} first"
        if kind in ("none", "bool"):
            old, new = IDENTITY.get(old, old), IDENTITY.get(new, new)
        return frequency_ratio(COMPARED[kind].get(old, 0), COMPARED[kind].get(new, 0))
    if old in BINARY["other"] and new in BINARY["other"] and not {"text", "display"} & {*kinds}:
        kind = "number" if kinds[1] == "number" else "number first" if kinds[0] == "number" else "other"
        return frequency_ratio(_share(BINARY[kind], old), _share(BINARY[kind], new))
    return 1.0


def assignment_ratio(before: str, after: str, value: Node) -> float:
    """As `likelier_sign`, of assignments such as `+=`."""
    old, new = before.removesuffix("="), after.removesuffix("=")
    shares = AUGMENTED["number" if _habit(value) == "number" else "other"]
    return frequency_ratio(_share(shares, old), _share(shares, new)) if old and new else 1.0


def _share(shares: dict[str, int], sign: str) -> int:
    """Here one sign stands for both of Python's divisions."""
    return shares.get(sign, 0) + (shares.get("//", 0) if sign == "/" else 0)


def _habit(node: Node) -> str:
    """What an operand is, as Python's habits have it."""
    if node.type in NOTHING:
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
