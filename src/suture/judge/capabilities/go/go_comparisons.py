"""Find methods of a Go file by which values compare themselves, and that do not compare what they contain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.judge.capabilities.use import Use
from suture.mutation.tree_sitter.syntax_tree import get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node


COMPARING_METHODS = ("Is", "As", "Equal", "Equals", "Compare", "Less")
"""Methods by which package `errors`, sorting and tests have values compare themselves."""
ERROR_METHODS = ("Is", "As", "Unwrap")
KIND_QUESTION = re.compile(r"reflect\.TypeOf\(.*|errors\.As\(.*|fmt\.Sprintf\(.%T.*", re.DOTALL)
"""A call that tells the type of a value, and nothing of what it contains."""
PARTIAL = re.compile(r"strings\.(?:Contains|HasPrefix|HasSuffix|Index)\(")
"""A comparison of strings of which one may be a part of the other."""
MIN_VALUES = 2
"""Errors of one type in variables of the package that make a comparison by type mistake one for another."""


def find_comparison_uses(node: Node, line: int) -> Iterator[Use]:
    """Yield a method that compares its receiver with an argument, but ignores one of them or compares only types."""
    parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
    name, receiver = get_text(node.child_by_field_name("name")), node.child_by_field_name("receiver")
    if receiver is None or parameters is None or body is None:
        return
    kind = next((get_text(part) for part in walk(receiver) if part.type == "type_identifier"), "")
    owner, declared = _list_names(receiver), _list_names(parameters)
    if name == "Unwrap":
        is_loose = _unwraps_other_errors(body, owner, kind)
    elif name in COMPARING_METHODS and parameters.named_children:
        is_loose = _ignores_a_side(name, body, owner, declared) or (
            name in ERROR_METHODS
            and (_asks_only_kind(body, owner, declared, kind) or _accepts_several(body, declared))
        )
    else:
        return
    if is_loose:
        yield Use(code="loosens_comparison", name=f"{kind}.{name}", line=line, key=f"{kind}.{name}")


def _ignores_a_side(name: str, body: Node, owner: set[str], declared: set[str]) -> bool:
    """Return whether a comparison does not look at its argument or at its receiver."""
    uses = [part for part in walk(body) if part.type == "identifier" and get_text(part) in declared]
    results = set(_list_results(body))
    # An error is often compared with a constant, whatever it contains.
    ignores_receiver = name not in ERROR_METHODS and not any(
        part.type == "identifier" and get_text(part) in owner for part in walk(body)
    )
    # An error that is never equal to another is compared by identity.
    is_harmless = name in ERROR_METHODS and results <= {"false"}
    is_fixed = results <= {"true"} or results <= {"0"}
    return not is_harmless and (is_fixed or ignores_receiver or all(map(_is_compared_with_nil, uses)))


def _asks_only_kind(body: Node, owner: set[str], declared: set[str], kind: str) -> bool:
    """Return whether an error equals another of the same type, whatever both contain, and there are several of them."""
    if len(_list_values(body, kind)) < MIN_VALUES:
        return False
    known = _list_others(body, declared)
    compared = (part for part in walk(body) if part.type in ("binary_expression", "call_expression"))
    return not any(_compares_content(part, owner, known) for part in compared)


def _accepts_several(body: Node, declared: set[str]) -> bool:
    """Return whether an error equals several variables of a package, or any whose message contains another one."""
    known = {
        get_text(side)
        for node in walk(body)
        if node.type == "binary_expression" and _list_names(node) & declared
        for side in node.named_children
        if side.type == "identifier" and get_text(side) not in declared
    }
    others = _list_others(body, declared)
    calls = (node for node in walk(body) if node.type == "call_expression" and _list_names(node) & others)
    return len(known) > 1 or any(PARTIAL.match(get_text(call)) for call in calls)


def _list_others(body: Node, declared: set[str]) -> set[str]:
    """Return the names of the other error: the parameters, and the variables that hold one of them."""
    names = {*declared}
    for part in walk(body):  # `other, ok := target.(failure)`, `switch other := target.(type)`
        left = part.child_by_field_name("left") or part.child_by_field_name("alias")
        if left is not None and part.type != "binary_expression" and _list_names(part) & declared:
            names |= _list_names(left)
    return names


def _compares_content(node: Node, owner: set[str], others: set[str]) -> bool:
    """Return whether an expression compares a part of the other error with the receiver, or with an error by name."""
    text, names = get_text(node), _list_names(node)
    if KIND_QUESTION.match(text) or not names & others or re.search(r"\bnil\b", text):
        return False
    sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
    if node.type == "call_expression":
        return bool(names & owner)
    if get_text(node.child_by_field_name("operator")) not in ("==", "!="):
        return False
    own = [side for side in sides if side is not None and not _list_names(side) & others]
    return any(_list_names(side) for side in own) and not any(
        KIND_QUESTION.match(get_text(side)) for side in sides if side is not None
    )


def _unwraps_other_errors(body: Node, owner: set[str], kind: str) -> bool:
    """Return whether several errors of a type wrap another variable of the package, such as `ErrDenied`."""
    root = _get_root(body)
    errors = {
        get_text(name)
        for spec in walk(root)
        if spec.type == "var_spec"
        for name in spec.children_by_field_name("name")
    }
    wrapped = (_list_names(body) - owner) & errors
    return bool(wrapped) and (len(wrapped) > 1 or len(_list_values(body, kind)) >= MIN_VALUES)


def _list_values(body: Node, kind: str) -> list[str]:
    """Return the variables of the package that are declared with a value of a type."""
    made = re.compile(rf"&?{re.escape(kind)}[({{]|new\({re.escape(kind)}\)")
    return [
        get_text(spec.child_by_field_name("name"))
        for spec in walk(_get_root(body))
        if spec.type == "var_spec" and made.match(get_text(spec.child_by_field_name("value")))
    ]


def _list_results(body: Node) -> Iterator[str]:
    for part in walk(body):
        if part.type == "return_statement" and part.named_children:
            yield get_text(part.named_children[0])


def _is_compared_with_nil(node: Node) -> bool:
    """Return whether a name is only compared with `nil`, or assigned to the blank name."""
    above = node.parent
    if above is not None and above.type == "expression_list" and above.parent is not None:
        targets = above.parent.child_by_field_name("left")
        return targets is not None and get_text(targets) == "_"
    if above is None or above.type != "binary_expression":
        return False
    return any(part.type == "nil" for part in above.named_children)


def _list_names(node: Node) -> set[str]:
    return {get_text(part) for part in walk(node) if part.type == "identifier"}


def _get_root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


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
                get_text(name)
                for part in walk(kind)
                if part.type == "field_declaration"
                for name in part.children_by_field_name("name") or [part]
            }
            found[get_text(node.child_by_field_name("name"))] = (
                fields - {BLANK_NAME},
                node.start_point[0] + 1,
            )
    return found


def _list_holders(root: Node) -> set[str]:
    """Return the types whose objects a map of the package has as keys; an empty name if it may be any."""
    texts = [get_text(node) for node in root.named_children if node.type == "var_declaration"]
    return {match[1] or "" for text in texts for match in OUTER_STATE.finditer(text)}
