"""Slips: kept or begun in a wrong way, an element that is not put in, a value that comes too early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.changes import Change, shorten
from suture.mutation.tree_sitter.grammars import CALLS, FUNCTIONS, LOOPS, MEMBERS, NUMBERS, PARTS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

ENDS = ("return_statement", "throw_statement")
MOST_NAMES = 8


def _accumulated(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`best = x` where the better of both is to be kept; `x =+ 1`."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type not in ("assignment_expression", "assignment_statement") or left is None or right is None:
        return
    if not any(child.type == "=" for child in node.children) or right.type in FUNCTIONS:
        return
    target, value = view.text(left), view.text(right)
    for form in view.grammar.better:
        yield view.replace_with(right, form.format(target, value), 1.0)
    called = get_field(right, "function") if right.type in CALLS else None
    if called is not None and view.text(called).rpartition(".")[2] in ("max", "min"):
        for name in view.scope_names(node)[:MOST_NAMES]:
            if name != target:
                yield view.replace_with(right, f"{view.text(called)}({target}, {name})", 0.9)
    if right.type == "unary_expression" and right.children[0].type in ("+", "-"):
        part = get_field(right, "argument", "operand")
        if part is not None:
            yield view.replace_with(node, f"{target} {right.children[0].type}= {view.text(part)}", 1.0)
    if right.type in ("identifier", *PARTS, *MEMBERS):
        yield view.replace_with(node, f"{value} = {target}", 0.4)


def _one_more(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A sequence that is to take one element: `found += x`, and `found = found.push(x)`."""
    left, right = get_field(node, "left"), get_field(node, "right")
    sign = node.child_by_field_name("operator")
    if left is None or right is None or not view.grammar.end:
        return
    target = view.text(left)
    if node.type == "augmented_assignment_expression" and sign is not None and view.text(sign) == "+=":
        yield view.replace_with(node, view.grammar.put.format(target, view.text(right)).removesuffix(";"), 1.0)
    elif node.type == "assignment_expression" and right.type in CALLS:
        called = get_field(right, "function")
        of = get_field(called, "object") if called is not None else None
        if of is not None and view.text(of) == target:
            yield view.replace_with(node, view.text(right), 1.0)


def _display(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A wrong value to begin with."""
    if node.type == "array" and node.named_child_count == 0:
        near = [f"[{name}]" for name in view.scope_names(node)[:MOST_NAMES]]
        for place, text in enumerate(("[[]]", *near, "[0]", "{}", "''", "null")):
            yield view.replace_with(node, text, 0.9 - 0.03 * place)
    elif node.type == "array":
        yield view.replace_with(node, "[]", 0.7)
        yield view.replace_with(node, f"[{view.text(node)}]", 0.4)
    elif node.type in NUMBERS and _begins(node):
        for place, name in enumerate(view.scope_names(node)[:MOST_NAMES]):
            yield view.replace_with(node, name, 0.5 - 0.02 * place)
    elif node.type in ("null", "nil", "undefined"):
        for place, text in enumerate((*view.grammar.answers, *view.scope_names(node)[:MOST_NAMES])):
            if text != view.text(node):
                yield view.replace_with(node, text, 0.6 - 0.02 * place)


def _begins(node: Node) -> bool:
    """Whether a value is what a variable begins with."""
    above = node.parent
    if above is not None and above.type == "expression_list":
        above = above.parent
    return above is not None and above.type in ("variable_declarator", "short_var_declaration")


def _given_back(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A `return` without a value, in a function that should give one."""
    if node.type != "return_statement" or node.named_child_count:
        return
    for place, value in enumerate((*view.scope_names(node)[:MOST_NAMES], *view.grammar.answers)):
        yield view.replace_with(node, f"return {value}{view.grammar.end}", 0.8 - 0.02 * place)


def _at_the_end(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """What lacks behind a loop that did not find anything: nothing, a sign of that, the length."""
    body, taken = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or not view.text(body).endswith("}"):
        return
    inner = body.named_children[-1] if body.named_children else None
    if inner is not None and inner.type == "statement_list":
        inner = inner.named_children[-1]
    if inner is None or inner.type in ENDS or not _answers(node, view):
        return
    names = [view.text(n) for n in walk(taken) if n.type == "identifier"] if taken is not None else []
    lengths = [view.grammar.length.format(name) for name in reversed(names)]
    for place, value in enumerate((*lengths, *view.grammar.answers)):
        text = f"\n{view.indent(inner)}return {value}{view.grammar.end}"
        edit = Edit(start=inner.end_byte, end=inner.end_byte, text=text)
        yield Change(edits=(edit,), note=f"return {value} at the end", weight=1.0 - 0.05 * place)


def _answers(function: Node, view: SyntaxTree) -> bool:
    inner = (node for node in walk(function) if node.type == "return_statement")
    return any(node.named_child_count and is_same_node(view.enclosing_function(node), function) for node in inner)


def _given_up_early(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`else { return }` within a loop, which ends it at the first element: it goes behind the loop."""
    yes, other, loop = get_field(node, "consequence"), get_field(node, "alternative"), node.parent
    while loop is not None and loop.type not in (*LOOPS, *FUNCTIONS):
        loop = loop.parent
    if node.type != "if_statement" or yes is None or other is None or loop is None or loop.type not in LOOPS:
        return
    ending = [inner for inner in walk(other) if inner.type in ENDS]
    if len(ending) != 1 or view.text(other).count("\n") > MOST_LINES:
        return
    text = f"\n{view.indent(loop)}{view.text(ending[0])}"
    edits = (
        Edit(start=yes.end_byte, end=other.end_byte, text=""),
        Edit(start=loop.end_byte, end=loop.end_byte, text=text),
    )
    yield Change(edits=edits, note=f"{shorten(view.text(ending[0]))} goes behind the loop", weight=1.0)


MOST_LINES = 3
FAMILIES = {
    "accumulation": _accumulated,
    "one more element": _one_more,
    "display": _display,
    "value given back": _given_back,
    "return at the end": _at_the_end,
    "else of a loop": _given_up_early,
}
