"""Reuses values and arguments that the same file assigns to the same target or passes to the same function.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, insert_text, last_part, shorten
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import CALLS, NULLS, STRINGS
from suture.mutation.tuning import MAX_REUSED, MAX_REUSED_CHARS, MAX_TREE_REUSED_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

SEQUENCE_PARENTS = (
    "return_statement", "variable_declarator", "assignment_expression", "arrow_function", "expression_list",
    "arguments", "argument_list",
)  # fmt: skip
"""Nodes that may hold a concatenation in place of one sequence."""
ASSIGNMENT_NODES = ("assignment_expression", "assignment_statement", "variable_declarator", "pair")
"""Nodes that give a value to a name; a `pair` is `key: value` in an object."""


def _reuse_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Assign a value that the file assigns to the same target elsewhere, or a variable instead of `null`."""
    target, value = _assignment_parts(node)
    if target is None or value is None:
        return
    name = last_part(tree.text(target))
    for text in tree.cached("assigned values", _assigned_values_by_target).get(name, [])[:MAX_REUSED]:
        if text != tree.text(value):
            yield tree.replace_with(value, text, 0.8)
    if _is_empty_value(value, tree):
        for other in tree.scope_names(value)[:MAX_TREE_REUSED_NAMES]:
            if other != name:
                yield tree.replace_with(value, other, 0.7)
                yield tree.replace_with(value, f"{other}.{name}", 0.4)


def _reuse_argument(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Pass arguments that other calls of the same function pass, or variables instead of an empty value."""
    callee, argument_list = _call_parts(node)
    if callee is None or argument_list is None:
        return
    calls = tree.cached("calls", _argument_lists_by_name).get(last_part(tree.text(callee)), [])
    other_calls = [_get_arguments(other) for other in calls if not is_same_node(other, argument_list)]
    arguments = _get_arguments(argument_list)
    for index, argument in enumerate(arguments):
        if _is_empty_value(argument, tree):
            same_position = [tree.text(others[index]) for others in other_calls if len(others) > index]
            for text in _select_short(same_position):
                yield tree.replace_with(argument, text, 0.8)
            for name in tree.scope_names(argument)[:MAX_TREE_REUSED_NAMES]:
                yield tree.replace_with(argument, name, 0.7)
    count = len(arguments)
    next_arguments = [tree.text(others[count]) for others in other_calls if len(others) > count]
    for text in _select_short(next_arguments):
        # Directly after the last argument, because a trailing comma or a comment may follow it.
        end = arguments[-1].end_byte if arguments else argument_list.end_byte - 1
        yield insert_text(end, f", {text}" if arguments else text, f"{shorten(text)} is also passed", 0.8)


def _add_concatenation(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Concatenate another sequence, before or after one."""
    if node.parent is None or node.parent.type not in SEQUENCE_PARENTS:
        return
    kinds, text = tree.kinds(node), tree.text(node)
    if not tree.is_read(node) or not (node.type == "array" or kinds.get(text) == "sequence"):
        return
    for other in tree.scope_names(node)[:MAX_TREE_REUSED_NAMES]:
        if other != text and kinds.get(other, "unknown") in ("sequence", "unknown"):
            weight = 1.0 if kinds.get(other) == "sequence" else 0.6
            yield tree.replace_with(node, tree.syntax.concatenation.format(other, text), weight)
            yield tree.replace_with(node, tree.syntax.concatenation.format(text, other), weight)


def _is_empty_value(node: Node, tree: SyntaxTree) -> bool:
    """Return whether a value is null or an empty string."""
    return node.type in NULLS or (node.type in STRINGS and len(tree.text(node)) == 2)


def _assignment_parts(node: Node) -> tuple[Node | None, Node | None]:
    """Return `(target, value)` of an assignment; `(None, None)` for other nodes."""
    if node.type not in ASSIGNMENT_NODES:
        return None, None
    return get_field(node, "left", "name", "key"), get_field(node, "right", "value")


def _call_parts(node: Node) -> tuple[Node | None, Node | None]:
    """Return `(called function, argument list)` of a call; `(None, None)` for other nodes."""
    if node.type not in CALLS:
        return None, None
    return get_field(node, "function", "constructor"), get_field(node, "arguments")


def _get_arguments(argument_list: Node) -> list[Node]:
    """Return the arguments of a call, without comments."""
    return [argument for argument in argument_list.named_children if argument.type != "comment"]


def _select_short(texts: list[str]) -> list[str]:
    """Return a few expressions that are short enough to be reused, each once."""
    return [text for text in dict.fromkeys(texts) if len(text) <= MAX_REUSED_CHARS][:MAX_REUSED]


def _assigned_values_by_target(tree: SyntaxTree) -> dict[str, list[str]]:
    """Return last name of a target -> the short values assigned to it, as written and each once."""
    values: dict[str, list[str]] = {}
    for node in walk(tree.root):
        target, value = _assignment_parts(node)
        if target is not None and value is not None and len(text := tree.text(value)) <= MAX_REUSED_CHARS:
            texts = values.setdefault(last_part(tree.text(target)), [])
            if text not in texts:
                texts.append(text)
    return values


def _argument_lists_by_name(tree: SyntaxTree) -> dict[str, list[Node]]:
    """Return last name of a called function -> the argument lists of a few of its calls."""
    argument_lists: dict[str, list[Node]] = {}
    for node in walk(tree.root):
        callee, argument_list = _call_parts(node)
        if callee is not None and argument_list is not None:
            calls = argument_lists.setdefault(last_part(tree.text(callee)), [])
            if len(calls) <= MAX_REUSED:  # one more than are used, because a call does not reuse itself
                calls.append(argument_list)
    return argument_lists


OPERATORS: TreeOperators = {
    "reused_value": _reuse_value,
    "reused_argument": _reuse_argument,
    "missing_concatenation": _add_concatenation,
}
