"""Finds out whether code of JavaScript, TypeScript and Go that catches a failure shows it to anybody.

Code that catches only some failures, such as those of its own class, loses just these. A test whose callback runs into
one ends there, and passes without the assertion that follows.
"""

from __future__ import annotations

import errno
import re
from collections import Counter
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Literal

from suture.mutation.tree_sitter.syntax_tree import (
    MENTIONS,
    enclosing_loop,
    get_field,
    get_text,
    is_same_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import ARGUMENTS, BLOCKS, EXITS, FUNCTIONS, LOOPS, NULLS

if TYPE_CHECKING:
    from tree_sitter import Node

LEAVING = EXITS - {"throw_statement"}
COMPARISONS = ("instanceof", "in", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "typeof", "!")
"""Operators that test which failure it is, and do not show it."""
NAMING_FIELDS = (("name", "value"), ("left", "right"), ("alias", "value"))
"""Fields of the nodes that give a value a name: of the name, and of the value."""
NAMING = ("variable_declarator", "short_var_declaration", "type_switch_statement")
CONDITION_PARTS = ("binary_expression", "parenthesized_expression", "if_statement")
RECOVER = "recover()"

SYSTEM_CODES = frozenset((*errno.errorcode.values(), "EAI_AGAIN", "ENOTFOUND"))
"""Codes of failures of the operating system, such as `ENOENT`. A failure of an assertion has another one."""
ERROR_CODE = re.compile(r"(?:\w+\??\.)?code")
NAMED_TWICE = 2
"""Occurrences of the name of a list that is only declared and added to."""

_FailureUse = Literal["shown", "classified", "neither"]
"""What an expression does with a failure: show it to somebody, or test which failure it is."""


def ignores_failure(handler: Node, names: Counter[str]) -> bool:
    """Return whether a `catch`, or a function that gets a failure, may lose it.

    Args:
        handler: A `catch_clause`, or a function.
        names: How often each name is in the file.
    """
    body, parameter = handler.child_by_field_name("body"), get_field(handler, "parameter", "parameters")
    if body is None:
        return True
    words = {get_text(part) for part in walk(parameter)} if parameter is not None else set[str]()
    throws = any(part.type == "throw_statement" for part in walk(body))
    if throws and (_always_throws(body) or _is_retried(body)):
        return False
    return _may_lose_failure(set(_find_uses(body, words, names)), throws=throws)


def loses_panic(deferred: Node, names: Counter[str]) -> bool:
    """Return whether a deferred statement of Go that calls `recover` may lose a panic."""
    throws = any(get_text(part.child_by_field_name("function")) == "panic" for part in walk(deferred))
    return _may_lose_failure(set(_find_uses(deferred, set(), names)), throws=throws)


def leaves_handler(statement: Node) -> bool:
    """Return whether a statement of a `catch` or `finally` leaves it without an exception."""
    pending = [(statement, False)]
    while pending:  # not recursive: each term of a sum is one level deeper than the one before
        node, in_loop = pending.pop()
        if node.type in LEAVING and (node.type == "return_statement" or not in_loop):
            return True
        if node.type not in (*LEAVING, *FUNCTIONS):
            is_loop = in_loop or node.type in (*LOOPS, "switch_statement")
            pending += [(part, is_loop) for part in node.named_children]
    return False


def _may_lose_failure(uses: Set[_FailureUse], *, throws: bool) -> bool:
    """Return whether a handler may end normally, although it shows the failure to nobody."""
    return "shown" not in uses and (not throws or "classified" in uses)


def _always_throws(body: Node) -> bool:
    *others, last = body.named_children or [body]
    if last.type == "if_statement":
        ways = [last.child_by_field_name("consequence"), last.child_by_field_name("alternative")]
        throws = all(way is not None and _always_throws(way) for way in ways)
    else:
        throws = last.type == "throw_statement" or (last.type in BLOCKS and _always_throws(last))
    return (throws or body.type == "throw_statement") and not any(map(leaves_handler, others))


def _is_retried(body: Node) -> bool:
    """Return whether a `try` is one of several attempts, the last of which shows its failure."""
    statement = body.parent.parent if body.parent is not None else None
    attempt = statement.child_by_field_name("body") if statement is not None else None
    if statement is None or attempt is None or enclosing_loop(statement) is None:
        return False
    return any(map(leaves_handler, attempt.named_children))


def _find_uses(body: Node, words: set[str], names: Counter[str]) -> Iterator[_FailureUse]:
    """Yield how code uses the failure that has one of some names, or that `recover()` returns."""
    parts = [part for part in walk(body) if part.type in MENTIONS or _calls_recover(part)]
    known: set[str] | None = None
    while known != words:
        known = set(words)
        for part in parts:
            if get_text(part) in known or part.type == "call_expression":
                use, new_names = _classify(part, body, names)
                words |= new_names
                yield use


def _calls_recover(node: Node) -> bool:
    return node.type == "call_expression" and get_text(node) == RECOVER


def _classify(part: Node, body: Node, names: Counter[str]) -> tuple[_FailureUse, set[str]]:
    """Return how one expression is used, and the names that its value gets there."""
    node = part
    if part.parent is not None and part.parent.type == "expression_statement":
        return "neither", set()
    while node.parent is not None and not is_same_node(node, body):
        above = node.parent
        sign = get_text(above.child_by_field_name("operator"))
        if above.type == "throw_statement" or get_text(above.child_by_field_name("function")) == "panic":
            return "neither", set()
        if sign in COMPARISONS and _asks_for_system_code(above):
            return "neither", set()
        if sign in COMPARISONS:
            sides = (above.child_by_field_name("left"), above.child_by_field_name("right"))
            is_empty = any(get_text(side) in NULLS for side in sides)
            return "neither" if is_empty else "classified", set()
        if is_same_node(above.child_by_field_name("condition"), node):
            is_truth = part.parent is not None and part.parent.type in CONDITION_PARTS
            return "neither" if is_truth else "classified", set()
        if above.type in NAMING or above.type == "assignment_statement":
            return _classify_naming(above, node)
        if above.type == "switch_statement" or sign == "void" or _is_only_collected(node, names):
            return ("classified" if above.type == "switch_statement" else "neither"), set()
        node = above
    return "shown", set()


def _asks_for_system_code(comparison: Node) -> bool:
    """Return whether a comparison asks for a failure of the operating system: `error.code === "ENOENT"`.

    The file must not give this code to failures of its own.
    """
    sides = [get_text(comparison.child_by_field_name(side)) for side in ("left", "right")]
    codes = SYSTEM_CODES.intersection(side[1:-1] for side in sides)
    if not codes or not any(ERROR_CODE.fullmatch(side) for side in sides):
        return False
    root = comparison
    while root.parent is not None:
        root = root.parent
    given = rf"\bcode['\"\]]*\s*(?::|=(?!=))\s*['\"`](?:{'|'.join(codes)})\b"
    return re.search(given, get_text(root)) is None


def _classify_naming(holder: Node, node: Node) -> tuple[_FailureUse, set[str]]:
    """Return how a declaration or assignment uses the failure that is below `node`."""
    for name_field, value_field in NAMING_FIELDS:
        name, value = holder.child_by_field_name(name_field), holder.child_by_field_name(value_field)
        if is_same_node(name, node):
            return "neither", set()
        if name is not None and value is not None and is_same_node(value, node):
            new_names = {get_text(part) for part in walk(name) if "identifier" in part.type} - {"_"}
            if holder.type == "assignment_statement":
                return ("shown" if new_names else "neither"), set()
            is_classified = "type_" in holder.type or any(
                part.type == "type_assertion_expression" for part in walk(value)
            )
            return ("classified" if is_classified else "neither"), new_names
    return "classified", set()


def _is_only_collected(node: Node, names: Counter[str]) -> bool:
    """Return whether a value is given to a list that nobody reads: `lost.push(error)`."""
    call = node.parent.parent if node.parent is not None and node.parent.type in ARGUMENTS else None
    function = get_field(call, "function") if call is not None else None
    if function is None:
        return False
    is_added = get_text(get_field(function, "property")) in ("push", "add", "unshift")
    return is_added and names[get_text(get_field(function, "object"))] == NAMED_TWICE
