"""Changes conditions and `else` branches: negates, strengthens or weakens a condition.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, replace_span
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    get_field,
    is_same_node,
    replace_node,
    returned_values,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import CALLS, MEMBERS, SUBSCRIPTS
from suture.mutation.tuning import MAX_TREE_CONDITION_NAMES, MAX_TREE_CONDITIONS

if TYPE_CHECKING:
    from tree_sitter import Node

LOGICAL_OPERATORS = {"&&": ("||",), "||": ("&&", "??"), "??": ("||",)}
"""Sign -> the signs that may be meant instead. Go has no `??`, so that such a change does not parse there."""
CONDITIONAL_NODES = (
    "if_statement", "ternary_expression", "while_statement", "for_statement", "for_clause", "do_statement",
)  # fmt: skip
"""Nodes with a field `condition`."""
ASSIGNMENT_NODES = ("variable_declarator", "assignment_expression", "pair")
"""Nodes that give a value to a name; a `pair` is `key: value` in an object."""
OPPOSITE_BOOLEANS = {"true": "false", "false": "true"}


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
            edits = tuple(replace_node(chain_sign, new) for chain_sign in signs)
            yield Change(edits=edits, note=f"each {tree.text(sign)} becomes {new}", weight=0.9)


def _chain_operators(node: Node, tree: SyntaxTree) -> list[Node]:
    """Return the operators of a chain such as `a && b && c`, whose tree is nested as `(a && b) && c`."""
    signs: list[Node] = []
    inner: Node | None = node
    while inner is not None and inner.type == "binary_expression":
        sign = inner.child_by_field_name("operator")
        if sign is None or (signs and tree.text(sign) != tree.text(signs[-1])):
            break
        signs.append(sign)
        inner = inner.child_by_field_name("left")
    return signs[::-1]


def _is_whole_chain(node: Node, tree: SyntaxTree) -> bool:
    """Return whether an expression is not itself the left or right side of the same operator."""
    above = node.parent
    if above is None or above.type != "binary_expression":
        return True
    sign, outer_sign = node.child_by_field_name("operator"), above.child_by_field_name("operator")
    return sign is None or outer_sign is None or tree.text(sign) != tree.text(outer_sign)


def _change_negation(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add or remove a `!`."""
    if node.type == "unary_expression":
        sign, operand = node.children[0], get_field(node, "argument", "operand")  # JavaScript, Go
        if operand is not None and sign.type == "!":
            yield tree.replace_with(node, tree.text(operand), 1.0)
    condition = get_condition(node)
    if condition is not None and condition.type not in ("unary_expression", "binary_expression"):
        yield tree.replace_with(condition, f"!{tree.parenthesised(condition)}", 0.8)
    elif condition is not None and condition.type == "binary_expression":  # mostly has an opposite sign
        yield tree.replace_with(condition, f"!({tree.text(condition)})", 0.5)
    if _is_logical(node, tree):
        for side in (get_field(node, "left"), get_field(node, "right")):
            if side is not None and side.type not in ("unary_expression", "binary_expression"):
                yield tree.replace_with(side, f"!{tree.parenthesised(side)}", 0.5)
    value = _single_returned_value(node)
    if value is not None and (value.type in CALLS or value.type == "identifier" or _is_logical(value, tree)):
        yield tree.replace_with(value, f"!{tree.parenthesised(value)}", 0.3)
    value = get_field(node, "value", "right") if node.type in ASSIGNMENT_NODES else None
    if value is not None and value.type in ("identifier", *CALLS, *MEMBERS, *SUBSCRIPTS):
        yield tree.replace_with(value, f"!{tree.text(value)}", 0.25)


def _extend_condition(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a part to a condition, or swap the two values of a ternary expression."""
    consequence, alternative = get_field(node, "consequence"), get_field(node, "alternative")
    if node.type == "ternary_expression" and consequence is not None and alternative is not None:
        swapped = tree.swap(consequence, alternative)
        yield Change(edits=swapped, note="the two values are swapped", weight=1.0)
    condition = get_condition(node)
    if condition is not None:
        yield from _add_condition(condition, tree)
    for value in returned_values(node):
        if _is_boolean(value, tree):
            yield from _add_condition(value, tree)


def _add_condition(condition: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Combine a condition with another by `&&` or `||`; replace a condition that is only `true` or `false`."""
    text = tree.text(condition)
    operand = f"({text})" if _is_logical(condition, tree) else text
    for other, weight in candidate_conditions(condition, tree):
        if condition.type in OPPOSITE_BOOLEANS:
            yield tree.replace_with(condition, other, weight)
        elif other != text:
            yield tree.replace_with(condition, f"{operand} && {other}", weight)
            yield tree.replace_with(condition, f"{operand} || {other}", 0.9 * weight)


def _switch_elif(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Turn an `if` after an `if` into `else if`, or the reverse; drop an `else`; swap both branches."""
    if node.type != "if_statement":
        return
    previous = node.prev_named_sibling
    follows_if = previous is not None and previous.type == "if_statement" and tree.is_statement(previous)
    if previous is not None and follows_if and get_field(previous, "alternative") is None:
        yield replace_span(previous.end_byte, node.start_byte, " else ", "if becomes else if")
    consequence, alternative = get_field(node, "consequence"), get_field(node, "alternative")
    if consequence is None or alternative is None:
        return
    # In JavaScript, an `else_clause` holds the keyword and the branch.
    is_clause = alternative.type == "else_clause" and alternative.named_children
    branch = alternative.named_children[0] if is_clause else alternative
    if branch.type == "if_statement":
        text = f"\n{tree.indent(node)}"
        yield replace_span(consequence.end_byte, branch.start_byte, text, "else if becomes if", 0.8)
    yield replace_span(consequence.end_byte, alternative.end_byte, "", "the else branch is dropped", 0.5)
    if tree.is_javascript:  # not in Go, where an `if` cannot take the place of a block
        swapped = tree.swap(consequence, branch)
        yield Change(edits=swapped, note="the branches of if and else are swapped", weight=0.4)


def _return_condition(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Return a condition where a constant boolean is returned."""
    value = _single_returned_value(node)
    if value is None or value.type not in OPPOSITE_BOOLEANS:
        return
    yield tree.replace_with(value, OPPOSITE_BOOLEANS[value.type], 1.0)
    yield from _flip_returned_booleans(node, tree)
    for condition, weight in candidate_conditions(value, tree):
        yield tree.replace_with(value, condition, 0.7 * weight)


def _flip_returned_booleans(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Flip all booleans that a function returns. The change is only made at the first `return` of one."""
    function = tree.enclosing_function(node)
    if function is None:
        return
    booleans = [
        value
        for inner in walk(function)
        if inner.type == "return_statement" and is_same_node(tree.enclosing_function(inner), function)
        for value in returned_values(inner)
        if value.type in OPPOSITE_BOOLEANS
    ]
    if len(booleans) > 1 and node.start_byte < booleans[0].start_byte <= node.end_byte:
        edits = tuple(replace_node(value, OPPOSITE_BOOLEANS[value.type]) for value in booleans)
        yield Change(edits=edits, note="all answers are flipped", weight=1.0)


def candidate_conditions(node: Node, tree: SyntaxTree) -> Iterator[tuple[str, float]]:
    """Yield `(condition, weight)` for conditions that may be meant in place of a node, or together with it.

    The conditions of the same function come first, then comparisons of variables with usual values.
    """
    count, (equal, unequal) = 0, tree.syntax.equality
    for text, expression in tree.expressions(node):
        if _is_boolean(expression, tree) or text.startswith("!"):
            count += 1
            if count <= MAX_TREE_CONDITIONS // 2:  # leaves room for comparisons with usual values
                yield text, 1.0
    # A substring is enough: a name that the node lacks only gets a higher weight.
    names_in_node = [name for name in tree.scope_names(node) if name in tree.text(node)]
    for name in dict.fromkeys((*names_in_node, *tree.scope_names(node)[:MAX_TREE_CONDITION_NAMES])):
        length = tree.syntax.length.format(name)
        conditions = (
            f"{name} > 0", f"{name} {unequal} 0", f"{name} {equal} 0", f"{name} < 0", f"{name} > 1",
            f"{length} > 0", f"{name} {unequal} {tree.syntax.null}", name, f"!{name}",
        )  # fmt: skip
        for condition in conditions:
            count += 1
            if count <= MAX_TREE_CONDITIONS:
                yield condition, 0.8 if name in names_in_node else 0.5


def get_condition(node: Node) -> Node | None:
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
    """Return whether an expression is `a && b`, `a || b` or `a ?? b`."""
    sign = node.child_by_field_name("operator")
    return node.type == "binary_expression" and sign is not None and tree.text(sign) in LOGICAL_OPERATORS


def _is_boolean(node: Node, tree: SyntaxTree) -> bool:
    """Return whether an expression is a comparison or a logical operation."""
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
