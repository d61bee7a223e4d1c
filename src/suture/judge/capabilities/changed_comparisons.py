"""Find methods of JavaScript, TypeScript and Go by which values compare themselves, and that compare less than before.

A test that compares by such a method then accepts values that differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import MEMBERS, NULLS, SUBSCRIPTS

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
VALUE_METHODS = ("valueOf", "[Symbol.toPrimitive]")
"""Methods that give what an object is compared by."""
GO_METHOD = "method_declaration"
METHODS = ("method_definition", GO_METHOD)
COMPARISONS = ("==", "===", "!=", "!==", "<", "<=", ">", ">=")
COMPARING_CALL = re.compile(
    r"(?:.*\.)?(?:is|eq|cmp|\w*equals?(?:fold)?|\w*compare)", re.IGNORECASE | re.DOTALL
)
"""A function that compares, such as `Object.is`, `localeCompare` or `reflect.DeepEqual`."""
ROUNDING_CALL = re.compile(
    r"(?:.*\.)?(?:toFixed|toPrecision|round|floor|ceil|trunc|truncate|parseInt)", re.IGNORECASE | re.DOTALL
)
ROUNDING_SIGNS = ("%", ">>", "|")


def find_weakened_comparisons(before: Node, after: Node) -> Iterator[Use]:
    """Yield each comparison of both versions that no longer compares something, or demands less of it."""
    old = _get_methods(before)
    for (kind, name), method in _get_methods(after).items():
        earlier = old.get((kind, name))
        if earlier is None or earlier.text == method.text:
            continue
        passed_on = _list_members_read_by_callees(method, after)
        reads_less = _list_own_members(method) | passed_on < _list_own_members(earlier) | passed_on
        is_coarser = _count_roundings(method) > _count_roundings(earlier)
        demands_less = name in EQUALITY_METHODS and (
            len(_list_compared(method)) < len(_list_compared(earlier))
            or (
                _count_operators(method, "||") > _count_operators(earlier, "||")
                and _count_operators(method, "&&") < _count_operators(earlier, "&&")
            )
        )
        if reads_less or is_coarser or demands_less:
            shown = f"{kind}.{name} compares less"
            yield Use(code="loosens_comparison", name=shown, line=method.start_point[0] + 1, key=shown)


def _get_methods(root: Node) -> dict[tuple[str, str], Node]:
    """Return (class, name) -> method for each method that compares, and whose class is the only one of that name."""
    found = [
        ((_get_class(node), get_text(node.child_by_field_name("name"))), node)
        for node in walk(root)
        if node.type in METHODS
        and get_text(node.child_by_field_name("name")) in (*EQUALITY_METHODS, *VALUE_METHODS)
    ]
    counts = Counter(key for key, _ in found)
    return {key: node for key, node in found if counts[key] == 1}


def _get_class(method: Node) -> str:
    """Return the name of the type or class of a method; of a class without a name, the first name in it."""
    receiver = method.child_by_field_name("receiver")
    holder = receiver or (method.parent.parent if method.parent is not None else None)
    names = ("type_identifier",) if receiver is not None else ("type_identifier", "identifier")
    parts = walk(holder) if holder is not None else ()
    return next((get_text(part) for part in parts if part.type in names), "")


def _list_compared(method: Node) -> set[frozenset[str]]:
    """Return the pairs of expressions that a method compares with each other, and the calls that compare."""
    compared: set[frozenset[str]] = set()
    for node in walk(method):
        sides = [get_field(node, side) for side in ("left", "right")]
        is_comparison = get_text(node.child_by_field_name("operator")) in COMPARISONS
        # That something exists at all is often asked in another way, as by `instanceof`.
        if is_comparison and not any(side is not None and side.type in NULLS for side in sides):
            compared.add(frozenset(map(get_text, sides)))
        elif COMPARING_CALL.fullmatch(get_text(node.child_by_field_name("function"))):
            compared.add(frozenset((get_text(node),)))
    return compared


def _list_members_read_by_callees(method: Node, root: Node) -> set[str]:
    """Return the members that functions of the file read to which a method passes its receiver as a whole."""
    owners = _list_owners(method)
    called = {
        get_text(node.child_by_field_name("function"))
        for node in walk(method)
        if node.type == "call_expression"
        for given in getattr(node.child_by_field_name("arguments"), "named_children", ())
        if get_text(given) in owners
    }
    return {
        get_text(get_field(part, "property", "field"))
        for node in root.named_children
        if node.type == "function_declaration" and get_text(node.child_by_field_name("name")) in called
        for part in walk(node)
        if part.type in MEMBERS
    }


def _list_owners(method: Node) -> set[str]:
    """Return the names of the receiver of a method."""
    receiver = method.child_by_field_name("receiver")
    parts = walk(receiver) if receiver is not None else ()
    return {"this"} | {get_text(part) for part in parts if part.type == "identifier"}


def _list_own_members(method: Node) -> set[str]:
    """Return the members of the receiver that a method reads, or of the receiver's items."""
    owners = _list_owners(method)
    return {
        get_text(get_field(node, "property", "field"))
        for node in walk(method)
        if node.type in MEMBERS and get_text(_get_owner(node)) in owners
    }


def _get_owner(member: Node) -> Node | None:
    """Return the object of a member, without subscripts: `rows` of `rows[i].name`."""
    owner = get_field(member, "object", "operand")
    while owner is not None and owner.type in SUBSCRIPTS:
        owner = get_field(owner, "object", "operand")
    return owner


def _count_roundings(method: Node) -> int:
    """Return how often a method makes values coarser. A division does so in Go only."""
    signs = (*ROUNDING_SIGNS, "/") if method.type == GO_METHOD else ROUNDING_SIGNS
    calls = (get_text(node.child_by_field_name("function")) for node in walk(method))
    return sum(_count_operators(method, sign) for sign in signs) + sum(
        ROUNDING_CALL.fullmatch(call) is not None for call in calls
    )


def _count_operators(method: Node, sign: str) -> int:
    nodes = (node for node in walk(method) if node.type == "binary_expression")
    return sum(get_text(node.child_by_field_name("operator")) == sign for node in nodes)
