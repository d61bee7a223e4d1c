"""Conditions: turned round, too weak or too strong, `else` where none is or the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.edits import Edit
from suture.mutation.changes import Change
from suture.mutation.tree_sitter.grammars import CALLS, MEMBERS, PARTS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, returned_values, is_same_node, walk

if TYPE_CHECKING:
    from tree_sitter import Node

LOGIC = {"&&": ("||",), "||": ("&&", "??"), "??": ("||",)}
TESTED = (
    *("if_statement", "ternary_expression", "while_statement", "for_statement", "for_clause"),
    *("do_statement",),
)
KEEPING = ("variable_declarator", "assignment_expression", "pair")
MOST_ATOMS = 30
MOST_NAMES = 5


def _boolean(node: Node, view: SyntaxTree) -> Iterator[Change]:
    sign = node.child_by_field_name("operator")
    left, right = get_field(node, "left"), get_field(node, "right")
    if sign is None or left is None or right is None or view.text(sign) not in LOGIC:
        return
    for new in LOGIC[view.text(sign)]:
        yield view.replace_with(sign, new, 0.9)
    yield view.replace_with(node, view.text(left), 0.8)
    yield view.replace_with(node, view.text(right), 0.8)
    signs = _signs_of_chain(node, view)
    if len(signs) > 1 and _is_whole_chain(node, view):
        for new in LOGIC[view.text(sign)]:
            edits = tuple(Edit(start=one.start_byte, end=one.end_byte, text=new) for one in signs)
            yield Change(edits=edits, note=f"each {view.text(sign)} becomes {new}", weight=0.9)


def _signs_of_chain(node: Node, view: SyntaxTree) -> list[Node]:
    """The signs of `a && b && c`, which the tree has nested."""
    found: list[Node] = []
    inner: Node | None = node
    while inner is not None and inner.type == "binary_expression":
        sign = inner.child_by_field_name("operator")
        if sign is None or (found and view.text(sign) != view.text(found[-1])):
            break
        found.append(sign)
        inner = inner.child_by_field_name("left")
    return found[::-1]


def _is_whole_chain(node: Node, view: SyntaxTree) -> bool:
    above = node.parent
    own, outer = (one.child_by_field_name("operator") for one in (node, above or node))
    nested = above is not None and above.type == "binary_expression" and outer is not None
    return not (nested and own is not None and outer is not None and view.text(own) == view.text(outer))


def _negation(node: Node, view: SyntaxTree) -> Iterator[Change]:
    if node.type == "unary_expression":
        sign, part = node.children[0], get_field(node, "argument", "operand")
        if part is not None and sign.type == "!":
            yield view.replace_with(node, view.text(part), 1.0)
    test = tested(node)
    if test is not None and test.type not in ("unary_expression", "binary_expression"):
        yield view.replace_with(test, f"!{view.parenthesised(test)}", 0.8)
    elif test is not None and test.type == "binary_expression":
        yield view.replace_with(test, f"!({view.text(test)})", 0.5)
    if _is_logic(node, view):
        for part in (get_field(node, "left"), get_field(node, "right")):
            if part is not None and part.type not in ("unary_expression", "binary_expression"):
                yield view.replace_with(part, f"!{view.parenthesised(part)}", 0.5)
    value = _returned(node)
    if value is not None and (value.type in CALLS or value.type == "identifier" or _is_logic(value, view)):
        yield view.replace_with(value, f"!{view.parenthesised(value)}", 0.3)
    kept = get_field(node, "value", "right") if node.type in KEEPING else None
    if kept is not None and kept.type in ("identifier", *CALLS, *MEMBERS, *PARTS):
        yield view.replace_with(kept, f"!{view.text(kept)}", 0.25)


def _strengthening(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """A condition that lacks a part; a choice whose two values are the wrong way round."""
    yes, no = get_field(node, "consequence"), get_field(node, "alternative")
    if node.type == "ternary_expression" and yes is not None and no is not None:
        exchanged = (
            Edit(start=yes.start_byte, end=yes.end_byte, text=view.text(no)),
            Edit(start=no.start_byte, end=no.end_byte, text=view.text(yes)),
        )
        yield Change(edits=exchanged, note="the two values are exchanged", weight=1.0)
    test = tested(node)
    if test is not None:
        yield from _joined(test, view)
    for value in returned_values(node):
        if _is_truth(value, view):
            yield from _joined(value, view)


def _joined(test: Node, view: SyntaxTree) -> Iterator[Change]:
    if test.type in ("true", "false"):  # no condition yet
        yield from (view.replace_with(test, atom, weight) for atom, weight in atoms(test, view))
        return
    own = f"({view.text(test)})" if _is_logic(test, view) else view.text(test)
    for atom, weight in atoms(test, view):
        if atom != view.text(test):
            yield view.replace_with(test, f"{own} && {atom}", weight)
            yield view.replace_with(test, f"{own} || {atom}", 0.9 * weight)


def _elif(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`if` behind `if` that should be `else if`, and the reverse; an `else` that is always to be done."""
    if node.type != "if_statement":
        return
    before = node.prev_named_sibling
    is_second = before is not None and before.type == "if_statement" and view.is_statement(before)
    if before is not None and is_second and get_field(before, "alternative") is None:
        edit = Edit(start=before.end_byte, end=node.start_byte, text=" else ")
        yield Change(edits=(edit,), note="if becomes else if", weight=1.0)
    other = get_field(node, "alternative")
    yes = get_field(node, "consequence")
    if other is not None and yes is not None:
        inner = other.named_children[0] if other.type == "else_clause" and other.named_children else other
        if inner.type == "if_statement":
            edit = Edit(start=yes.end_byte, end=inner.start_byte, text=f"\n{view.indent(node)}")
            yield Change(edits=(edit,), note="else if becomes if", weight=0.8)
        edit = Edit(start=yes.end_byte, end=other.end_byte, text="")
        yield Change(edits=(edit,), note="without its else", weight=0.5)
        if view.grammar.end:
            swapped = (
                Edit(start=yes.start_byte, end=yes.end_byte, text=view.text(inner)),
                Edit(start=inner.start_byte, end=inner.end_byte, text=view.text(yes)),
            )
            yield Change(edits=swapped, note="if and else are exchanged", weight=0.4)


def _settled(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """`return true` where the answer depends on something."""
    value = _returned(node)
    if value is None or value.type not in ("true", "false"):
        return
    yield view.replace_with(value, "false" if value.type == "true" else "true", 1.0)
    yield from _all_turned(node, view)
    for atom, weight in atoms(value, view):
        yield view.replace_with(value, atom, 0.7 * weight)


def _all_turned(node: Node, view: SyntaxTree) -> Iterator[Change]:
    """Each answer of a function the other way round, from the first of them on."""
    function = view.enclosing_function(node)
    answers = [
        value
        for inner in (walk(function) if function is not None else ())
        if function is not None
        and is_same_node(view.enclosing_function(inner), function)
        and inner.type == "return_statement"
        for value in returned_values(inner)
        if value.type in ("true", "false")
    ]
    if len(answers) > 1 and node.start_byte < answers[0].start_byte <= node.end_byte:
        turned = {"true": "false", "false": "true"}
        edits = tuple(Edit(start=a.start_byte, end=a.end_byte, text=turned[a.type]) for a in answers)
        yield Change(edits=edits, note="each answer is turned round", weight=1.0)


def atoms(node: Node, view: SyntaxTree) -> Iterator[tuple[str, float]]:
    """Conditions that could be meant near a node: those of its function, then of its own names."""
    count, (equal, unlike) = 0, view.grammar.equal
    for text, other in view.expressions(node):
        if (other.type == "binary_expression" and _is_truth(other, view)) or text.startswith("!"):
            count += 1
            if count <= MOST_ATOMS // 2:
                yield text, 1.0
    own = [name for name in view.scope_names(node) if name in view.text(node)]
    for name in dict.fromkeys((*own, *view.scope_names(node)[:MOST_NAMES])):
        length = view.grammar.length.format(name)
        forms = (f"{name} > 0", f"{name} {unlike} 0", f"{name} {equal} 0", f"{name} < 0", f"{name} > 1")
        for form in (*forms, f"{length} > 0", f"{name} {unlike} {view.grammar.nothing}", name, f"!{name}"):
            count += 1
            if count <= MOST_ATOMS:
                yield form, 0.8 if name in own else 0.5


def tested(node: Node) -> Node | None:
    """What a statement asks for, without its brackets."""
    condition = get_field(node, "condition") if node.type in TESTED else None
    while condition is not None and condition.type == "parenthesized_expression":
        condition = condition.named_children[0] if condition.named_children else None
    if condition is not None and condition.type == "expression_statement":  # of JavaScript's `for`
        condition = condition.named_children[0]
    return condition


def _returned(node: Node) -> Node | None:
    """The one value that is given back."""
    values = returned_values(node)
    return values[0] if len(values) == 1 else None


def _is_logic(node: Node, view: SyntaxTree) -> bool:
    sign = node.child_by_field_name("operator")
    return node.type == "binary_expression" and sign is not None and view.text(sign) in LOGIC


def _is_truth(node: Node, view: SyntaxTree) -> bool:
    sign = node.child_by_field_name("operator")
    signs = ("<", ">", "<=", ">=", "==", "!=", "===", "!==", *LOGIC)
    return node.type == "binary_expression" and sign is not None and view.text(sign) in signs


FAMILIES = {
    "boolean": _boolean,
    "negation": _negation,
    "condition": _strengthening,
    "elif": _elif,
    "returned condition": _settled,
}
