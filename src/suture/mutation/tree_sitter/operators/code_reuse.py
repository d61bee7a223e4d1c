"""Reuse of other code of the file: the same target, the same function, the function's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.node_kinds import CALLS, FUNCTIONS, STRINGS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node, walk
from suture.mutation.tuning import MAX_REUSED, MAX_REUSED_CHARS, MAX_TREE_REUSED_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

NULL_NODES = ("null", "nil", "undefined")
ASSIGNMENT_NODES = ("assignment_expression", "assignment_statement", "variable_declarator", "pair")


def _reuse_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Assign another value that the file assigns to this target, or a variable instead of an empty value."""
    target, value = _assignment_parts(node)
    if target is None or value is None:
        return
    own, name = tree.text(value), _last_part(tree.text(target))
    for text in tree.cached("assigned", _assigned_texts).get(name, [])[:MAX_REUSED]:
        if text != own:
            yield tree.replace_with(value, text, 0.8)
    if _is_empty_value(value, tree):
        for other in tree.scope_names(value)[:MAX_TREE_REUSED_NAMES]:
            if other != name:
                yield tree.replace_with(value, other, 0.7)
                yield tree.replace_with(value, f"{other}.{name}", 0.4)


def _reuse_argument(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Pass arguments that other calls of the same function pass."""
    called, given = _call_parts(node)
    if called is None or given is None:
        return
    calls = [one for one in _calls_of(tree.text(called), tree) if not is_same_node(one, given)]
    others, own = [_arguments_of(one) for one in calls], _arguments_of(given)
    for at, argument in enumerate(own):
        if _is_empty_value(argument, tree):
            mined = [tree.text(one[at]) for one in others if len(one) > at]
            for text in _short_texts(mined):
                yield tree.replace_with(argument, text, 0.8)
            for name in tree.scope_names(argument)[:MAX_TREE_REUSED_NAMES]:
                yield tree.replace_with(argument, name, 0.7)
    longer = [tree.text(one[len(own)]) for one in others if len(one) > len(own)]
    for text in _short_texts(longer):
        # After the last argument: a trailing comma or a comment may follow.
        end = own[-1].end_byte if own else given.end_byte - 1
        edit = Edit(start=end, end=end, text=f", {text}" if own else text)
        yield Change(edits=(edit,), note=f"{shorten(text)} is also passed", weight=0.8)


def _order_arguments(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Order arguments that are named like the parameters as the parameters are."""
    called, given = _call_parts(node)
    if called is None or given is None:
        return
    parameters = tree.cached("parameters", _parameters_by_name).get(_last_part(tree.text(called)), [])
    arguments = _arguments_of(given)
    texts = [tree.text(argument) for argument in arguments]
    uncovered = parameters[: len(texts)]
    if len(texts) < 2 or sorted(texts) != sorted(uncovered) or texts == uncovered:
        return
    edits = tuple(
        Edit(start=argument.start_byte, end=argument.end_byte, text=name)
        for argument, name in zip(arguments, uncovered, strict=True)
        if tree.text(argument) != name
    )
    yield Change(edits=edits, note="arguments in the order of the parameters", weight=1.0)


def _add_concatenation(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Concatenate another sequence, before or after one."""
    above = node.parent
    places = ("return_statement", "variable_declarator", "assignment_expression", "arrow_function")
    if above is None or above.type not in (*places, "expression_list", "arguments", "argument_list"):
        return
    kinds, own = tree.kinds(node), tree.text(node)
    if not tree.is_read(node) or not (node.type == "array" or kinds.get(own) == "sequence"):
        return
    for other in tree.scope_names(node)[:MAX_TREE_REUSED_NAMES]:
        if other != own and kinds.get(other, "unknown") in ("sequence", "unknown"):
            weight = 1.0 if kinds.get(other) == "sequence" else 0.6
            for form in tree.syntax.concatenations:
                yield tree.replace_with(node, form.format(other, own), weight)
                yield tree.replace_with(node, form.format(own, other), weight)


def _is_empty_value(node: Node, tree: SyntaxTree) -> bool:
    """Return whether a value is null or an empty text."""
    return node.type in NULL_NODES or (node.type in STRINGS and len(tree.text(node)) == 2)


def _last_part(text: str) -> str:
    """Return the last name of a dotted path."""
    return text.rpartition(".")[2]


def _assignment_parts(node: Node) -> tuple[Node | None, Node | None]:
    """Return the target and the value of an assignment."""
    if node.type not in ASSIGNMENT_NODES:
        return None, None
    return get_field(node, "left", "name", "key"), get_field(node, "right", "value")


def _call_parts(node: Node) -> tuple[Node | None, Node | None]:
    if node.type not in CALLS:
        return None, None
    return get_field(node, "function", "constructor"), get_field(node, "arguments")


def _arguments_of(given: Node) -> list[Node]:
    """Return the arguments of a call, without comments."""
    return [one for one in given.named_children if one.type != "comment"]


def _calls_of(called: str, tree: SyntaxTree) -> list[Node]:
    return tree.cached("calls", _calls_by_name).get(_last_part(called), [])


def _short_texts(texts: list[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if len(text) <= MAX_REUSED_CHARS][:MAX_REUSED]


def _assigned_texts(tree: SyntaxTree) -> dict[str, list[str]]:
    """Return last part of a target -> the short texts assigned to it, each once."""
    found: dict[str, list[str]] = {}
    for node in walk(tree.root):
        target, value = _assignment_parts(node)
        if target is not None and value is not None and len(text := tree.text(value)) <= MAX_REUSED_CHARS:
            texts = found.setdefault(_last_part(tree.text(target)), [])
            texts += [text] if text not in texts else []
    return found


def _calls_by_name(tree: SyntaxTree) -> dict[str, list[Node]]:
    """Return last part of a called name -> the argument lists of a few calls."""
    found: dict[str, list[Node]] = {}
    for node in walk(tree.root):
        called, given = _call_parts(node)
        if called is not None and given is not None:
            calls = found.setdefault(_last_part(tree.text(called)), [])
            calls += [given] if len(calls) <= MAX_REUSED else []
    return found


def _parameters_by_name(tree: SyntaxTree) -> dict[str, list[str]]:
    """Return name of a function of the file -> the names of its parameters."""
    found: dict[str, list[str]] = {}
    for node in walk(tree.root):
        taken, above = get_field(node, "parameters"), node.parent
        name = get_field(node, "name")
        if name is None and above is not None and above.type == "variable_declarator":
            name = get_field(above, "name")
        if node.type in FUNCTIONS and taken is not None and name is not None:
            own = [part for one in taken.named_children for part in walk(one) if part.type == "identifier"]
            found[tree.text(name)] = [tree.text(one) for one in own]
    return found


OPERATORS: TreeOperators = {
    "reused_value": _reuse_value,
    "reused_argument": _reuse_argument,
    "parameter_order": _order_arguments,
    "missing_concatenation": _add_concatenation,
}
