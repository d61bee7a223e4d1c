"""As the file does it elsewhere: the same target, the same callee, the callee's own parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.changes import Change, shorten
from suture.mutation.tree_sitter.grammars import CALLS, FUNCTIONS, STRINGS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_ELSEWHERE = 8
MOST_NAMES = 10
LONGEST = 60
NOTHING = ("null", "nil", "undefined")
SETTING = ("assignment_expression", "assignment_statement", "variable_declarator", "pair")


def _value(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """What the file sets the same target to elsewhere, and names in place of a value that says nothing."""
    target, value = _set_in(node)
    if target is None or value is None:
        return
    own, name = view.text(value), last_part(view.text(target))
    for text in view.cached("assigned", _assigned).get(name, [])[:MOST_ELSEWHERE]:
        if text != own:
            yield view.replace_with(value, text, 0.8)
    if is_empty(value, view):
        for other in view.scope_names(value)[:MOST_NAMES]:
            if other != name:
                yield view.replace_with(value, other, 0.7)
                yield view.replace_with(value, f"{other}.{name}", 0.4)


def _argument(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Arguments as other calls of the same function have them."""
    called, given = _call(node)
    if called is None or given is None:
        return
    calls = [one for one in _calls_of(view.text(called), view) if not is_same_node(one, given)]
    others, own = [_arguments(one) for one in calls], _arguments(given)
    for at, argument in enumerate(own):
        if is_empty(argument, view):
            mined = [view.text(one[at]) for one in others if len(one) > at]
            for text in _short(mined):
                yield view.replace_with(argument, text, 0.8)
            for name in view.scope_names(argument)[:MOST_NAMES]:
                yield view.replace_with(argument, name, 0.7)
    longer = [view.text(one[len(own)]) for one in others if len(one) > len(own)]
    for text in _short(longer):
        # Behind the last argument: a comma may stand behind it already, or a remark.
        end = own[-1].end_byte if own else given.end_byte - 1
        edit = Edit(start=end, end=end, text=f", {text}" if own else text)
        yield Change(edits=(edit,), note=f"{shorten(text)} is given too", weight=0.8)


def _order(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Arguments that have the names of the callee's parameters, in the parameters' order."""
    called, given = _call(node)
    if called is None or given is None:
        return
    parameters = view.cached("parameters", _parameters).get(last_part(view.text(called)), [])
    arguments = _arguments(given)
    texts = [view.text(argument) for argument in arguments]
    wanted = parameters[: len(texts)]
    if len(texts) < 2 or sorted(texts) != sorted(wanted) or texts == wanted:
        return
    edits = tuple(
        Edit(start=argument.start_byte, end=argument.end_byte, text=name)
        for argument, name in zip(arguments, wanted, strict=True)
        if view.text(argument) != name
    )
    yield Change(edits=edits, note="arguments in the order of the parameters", weight=1.0)


def _joined(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A sequence that lacks another one in front of it or behind it."""
    above = node.parent
    places = ("return_statement", "variable_declarator", "assignment_expression", "arrow_function")
    if above is None or above.type not in (*places, "expression_list", "arguments", "argument_list"):
        return
    kinds, own = view.kinds(node), view.text(node)
    if not view.is_read(node) or not (node.type == "array" or kinds.get(own) == "sequence"):
        return
    for other in view.scope_names(node)[:MOST_NAMES]:
        if other != own and kinds.get(other, "unknown") in ("sequence", "unknown"):
            weight = 1.0 if kinds.get(other) == "sequence" else 0.6
            for form in view.grammar.joined:
                yield view.replace_with(node, form.format(other, own), weight)
                yield view.replace_with(node, form.format(own, other), weight)


def is_empty(node: Node, view: SyntaxTree) -> bool:
    """Whether a value says nothing: none at all, or an empty text."""
    return node.type in NOTHING or (node.type in STRINGS and len(view.text(node)) == 2)


def last_part(text: str) -> str:
    """The last name of a path of names."""
    return text.rpartition(".")[2]


def _set_in(node: Node) -> tuple[Node | None, Node | None]:
    """A target, and what it is set to."""
    if node.type not in SETTING:
        return None, None
    return get_field(node, "left", "name", "key"), get_field(node, "right", "value")


def _call(node: Node) -> tuple[Node | None, Node | None]:
    if node.type not in CALLS:
        return None, None
    return get_field(node, "function", "constructor"), get_field(node, "arguments")


def _arguments(given: Node) -> list[Node]:
    """What a call is given; a remark between is none."""
    return [one for one in given.named_children if one.type != "comment"]


def _calls_of(called: str, view: SyntaxTree) -> list[Node]:
    return view.cached("calls", _calls).get(last_part(called), [])


def _short(texts: list[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if len(text) <= LONGEST][:MOST_ELSEWHERE]


def _assigned(view: SyntaxTree) -> dict[str, list[str]]:
    """Last part of a target -> texts that it is set to, each once; short ones."""
    found: dict[str, list[str]] = {}
    for node in walk(view.root):
        target, value = _set_in(node)
        if target is not None and value is not None and len(text := view.text(value)) <= LONGEST:
            texts = found.setdefault(last_part(view.text(target)), [])
            texts += [text] if text not in texts else []
    return found


def _calls(view: SyntaxTree) -> dict[str, list[Node]]:
    """Last part of what is called -> the arguments of a few calls of it."""
    found: dict[str, list[Node]] = {}
    for node in walk(view.root):
        called, given = _call(node)
        if called is not None and given is not None:
            calls = found.setdefault(last_part(view.text(called)), [])
            calls += [given] if len(calls) <= MOST_ELSEWHERE else []
    return found


def _parameters(view: SyntaxTree) -> dict[str, list[str]]:
    """Name of a function of the file -> the names of its parameters, where they are plain names."""
    found: dict[str, list[str]] = {}
    for node in walk(view.root):
        taken, above = get_field(node, "parameters"), node.parent
        name = get_field(node, "name")
        if name is None and above is not None and above.type == "variable_declarator":
            name = get_field(above, "name")
        if node.type in FUNCTIONS and taken is not None and name is not None:
            own = [part for one in taken.named_children for part in walk(one) if part.type == "identifier"]
            found[view.text(name)] = [view.text(one) for one in own]
    return found


FAMILIES = {
    "value elsewhere": _value,
    "argument elsewhere": _argument,
    "order of parameters": _order,
    "missing part": _joined,
}
