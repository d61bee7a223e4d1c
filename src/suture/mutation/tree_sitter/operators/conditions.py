"""Conditions: negated, too weak or too strong; `else` branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.node_kinds import CALLS, MEMBERS, PARTS
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    returned_values,
    walk,
)
from suture.mutation.tuning import MAX_TREE_CONDITION_NAMES, MAX_TREE_CONDITIONS

if TYPE_CHECKING:
    from tree_sitter import Node

LOGICAL_OPERATORS = {"&&": ("||",), "||": ("&&", "??"), "??": ("||",)}
CONDITIONAL_NODES = (
    "if_statement",
    "ternary_expression",
    "while_statement",
    "for_statement",
    "for_clause",
    "do_statement",
)
ASSIGNMENT_NODES = ("variable_declarator", "assignment_expression", "pair")


def _change_boolean_operator(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Switch `&&` and `||`, drop an operand, or switch all operators of a chain."""
    sign = node.child_by_field_name("operator")
    left, right = get_field(node, "left"), get_field(node, "right")
    if sign is None or left is None or right is None or tree.text(sign) not in LOGICAL_OPERATORS:
        return
    for new in LOGICAL_OPERATORS[tree.text(sign)]:
        yield tree.replace_with(sign, new, 0.9)
    yield tree.replace_with(node, tree.text(left), 0.8)
    yield tree.replace_with(node, tree.text(right), 0.8)
    signs = _chain_operators(node, tree)
    if len(signs) > 1 and _is_whole_chain(node, tree):
        for new in LOGICAL_OPERATORS[tree.text(sign)]:
            edits = tuple(Edit(start=one.start_byte, end=one.end_byte, text=new) for one in signs)
            yield Change(edits=edits, note=f"each {tree.text(sign)} becomes {new}", weight=0.9)


def _chain_operators(node: Node, tree: SyntaxTree) -> list[Node]:
    """Return the operators of `a && b && c`, which are nested in the tree."""
    found: list[Node] = []
    inner: Node | None = node
    while inner is not None and inner.type == "binary_expression":
        sign = inner.child_by_field_name("operator")
        if sign is None or (found and tree.text(sign) != tree.text(found[-1])):
            break
        found.append(sign)
        inner = inner.child_by_field_name("left")
    return found[::-1]


def _is_whole_chain(node: Node, tree: SyntaxTree) -> bool:
    above = node.parent
    own, outer = (one.child_by_field_name("operator") for one in (node, above or node))
    nested = above is not None and above.type == "binary_expression" and outer is not None
    return not (nested and own is not None and outer is not None and tree.text(own) == tree.text(outer))


def _change_negation(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add or remove a `!`."""
    if node.type == "unary_expression":
        sign, part = node.children[0], get_field(node, "argument", "operand")
        if part is not None and sign.type == "!":
            yield tree.replace_with(node, tree.text(part), 1.0)
    test = condition_of(node)
    if test is not None and test.type not in ("unary_expression", "binary_expression"):
        yield tree.replace_with(test, f"!{tree.parenthesised(test)}", 0.8)
    elif test is not None and test.type == "binary_expression":
        yield tree.replace_with(test, f"!({tree.text(test)})", 0.5)
    if _is_logical(node, tree):
        for part in (get_field(node, "left"), get_field(node, "right")):
            if part is not None and part.type not in ("unary_expression", "binary_expression"):
                yield tree.replace_with(part, f"!{tree.parenthesised(part)}", 0.5)
    value = _single_returned_value(node)
    if value is not None and (value.type in CALLS or value.type == "identifier" or _is_logical(value, tree)):
        yield tree.replace_with(value, f"!{tree.parenthesised(value)}", 0.3)
    value = get_field(node, "value", "right") if node.type in ASSIGNMENT_NODES else None
    if value is not None and value.type in ("identifier", *CALLS, *MEMBERS, *PARTS):
        yield tree.replace_with(value, f"!{tree.text(value)}", 0.25)


def _extend_condition(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a part to a condition, or swap the two values of a ternary."""
    yes, no = get_field(node, "consequence"), get_field(node, "alternative")
    if node.type == "ternary_expression" and yes is not None and no is not None:
        exchanged = (
            Edit(start=yes.start_byte, end=yes.end_byte, text=tree.text(no)),
            Edit(start=no.start_byte, end=no.end_byte, text=tree.text(yes)),
        )
        yield Change(edits=exchanged, note="the two values are swapped", weight=1.0)
    test = condition_of(node)
    if test is not None:
        yield from _add_condition(test, tree)
    for value in returned_values(node):
        if _is_boolean(value, tree):
            yield from _add_condition(value, tree)


def _add_condition(test: Node, tree: SyntaxTree) -> Iterator[Change]:
    if test.type in ("true", "false"):  # a constant condition
        yield from (
            tree.replace_with(test, atom, weight) for atom, weight in candidate_conditions(test, tree)
        )
        return
    own = f"({tree.text(test)})" if _is_logical(test, tree) else tree.text(test)
    for atom, weight in candidate_conditions(test, tree):
        if atom != tree.text(test):
            yield tree.replace_with(test, f"{own} && {atom}", weight)
            yield tree.replace_with(test, f"{own} || {atom}", 0.9 * weight)


def _switch_elif(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Turn an `if` after an `if` into `else if`, or the reverse; drop an `else`; swap both branches."""
    if node.type != "if_statement":
        return
    before = node.prev_named_sibling
    is_second = before is not None and before.type == "if_statement" and tree.is_statement(before)
    if before is not None and is_second and get_field(before, "alternative") is None:
        edit = Edit(start=before.end_byte, end=node.start_byte, text=" else ")
        yield Change(edits=(edit,), note="if becomes else if", weight=1.0)
    other = get_field(node, "alternative")
    yes = get_field(node, "consequence")
    if other is not None and yes is not None:
        inner = other.named_children[0] if other.type == "else_clause" and other.named_children else other
        if inner.type == "if_statement":
            edit = Edit(start=yes.end_byte, end=inner.start_byte, text=f"\n{tree.indent(node)}")
            yield Change(edits=(edit,), note="else if becomes if", weight=0.8)
        edit = Edit(start=yes.end_byte, end=other.end_byte, text="")
        yield Change(edits=(edit,), note="the else branch is dropped", weight=0.5)
        if tree.syntax.terminator:
            swapped = (
                Edit(start=yes.start_byte, end=yes.end_byte, text=tree.text(inner)),
                Edit(start=inner.start_byte, end=inner.end_byte, text=tree.text(yes)),
            )
            yield Change(edits=swapped, note="the branches of if and else are swapped", weight=0.4)


def _return_condition(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Return a condition where a constant boolean is returned."""
    value = _single_returned_value(node)
    if value is None or value.type not in ("true", "false"):
        return
    yield tree.replace_with(value, "false" if value.type == "true" else "true", 1.0)
    yield from _flip_all_answers(node, tree)
    for atom, weight in candidate_conditions(value, tree):
        yield tree.replace_with(value, atom, 0.7 * weight)


def _flip_all_answers(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Flip all constant answers of a function; made once, at the first of them."""
    function = tree.enclosing_function(node)
    answers = [
        value
        for inner in (walk(function) if function is not None else ())
        if function is not None
        and is_same_node(tree.enclosing_function(inner), function)
        and inner.type == "return_statement"
        for value in returned_values(inner)
        if value.type in ("true", "false")
    ]
    if len(answers) > 1 and node.start_byte < answers[0].start_byte <= node.end_byte:
        turned = {"true": "false", "false": "true"}
        edits = tuple(Edit(start=a.start_byte, end=a.end_byte, text=turned[a.type]) for a in answers)
        yield Change(edits=edits, note="all answers are flipped", weight=1.0)


def candidate_conditions(node: Node, tree: SyntaxTree) -> Iterator[tuple[str, float]]:
    """Yield conditions that could be meant near a node: those of its function, then of its own names."""
    count, (equal, unlike) = 0, tree.syntax.equality
    for text, other in tree.expressions(node):
        if (other.type == "binary_expression" and _is_boolean(other, tree)) or text.startswith("!"):
            count += 1
            if count <= MAX_TREE_CONDITIONS // 2:
                yield text, 1.0
    own = [name for name in tree.scope_names(node) if name in tree.text(node)]
    for name in dict.fromkeys((*own, *tree.scope_names(node)[:MAX_TREE_CONDITION_NAMES])):
        length = tree.syntax.length.format(name)
        forms = (f"{name} > 0", f"{name} {unlike} 0", f"{name} {equal} 0", f"{name} < 0", f"{name} > 1")
        for form in (*forms, f"{length} > 0", f"{name} {unlike} {tree.syntax.null}", name, f"!{name}"):
            count += 1
            if count <= MAX_TREE_CONDITIONS:
                yield form, 0.8 if name in own else 0.5


def condition_of(node: Node) -> Node | None:
    """Return the condition of a statement, without its parentheses."""
    condition = get_field(node, "condition") if node.type in CONDITIONAL_NODES else None
    while condition is not None and condition.type == "parenthesized_expression":
        condition = condition.named_children[0] if condition.named_children else None
    if condition is not None and condition.type == "expression_statement":  # in the `for` of JavaScript
        condition = condition.named_children[0]
    return condition


def _single_returned_value(node: Node) -> Node | None:
    """Return the value of a `return` that has exactly one."""
    values = returned_values(node)
    return values[0] if len(values) == 1 else None


def _is_logical(node: Node, tree: SyntaxTree) -> bool:
    sign = node.child_by_field_name("operator")
    return node.type == "binary_expression" and sign is not None and tree.text(sign) in LOGICAL_OPERATORS


def _is_boolean(node: Node, tree: SyntaxTree) -> bool:
    sign = node.child_by_field_name("operator")
    signs = ("<", ">", "<=", ">=", "==", "!=", "===", "!==", *LOGICAL_OPERATORS)
    return node.type == "binary_expression" and sign is not None and tree.text(sign) in signs


OPERATORS: TreeOperators = {
    "boolean_operator": _change_boolean_operator,
    "negation": _change_negation,
    "condition": _extend_condition,
    "elif": _switch_elif,
    "returned_condition": _return_condition,
}
