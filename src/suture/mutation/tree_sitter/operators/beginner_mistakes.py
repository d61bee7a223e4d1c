"""Mistakes of beginners, such as a lost accumulation, a wrong initial value, or a missing `return`.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, insert_text, shorten
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    enclosing_loop,
    get_field,
    insert_at,
    is_same_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import CALLS, FUNCTIONS, MEMBERS, NULLS, NUMBERS, SUBSCRIPTS
from suture.mutation.tuning import MAX_ELSE_LINES, MAX_TREE_INITIAL_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTION_EXITS = ("return_statement", "throw_statement")
"""Statements that end a function."""


def _accumulate(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Combine a value with the previous one, as in `best = max(best, x)`; turn `x =+ 1` into `x += 1`."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type not in ("assignment_expression", "assignment_statement") or left is None or right is None:
        return
    if not any(child.type == "=" for child in node.children) or right.type in FUNCTIONS:
        return  # `+=` accumulates already, and a function is not a value to accumulate
    target, value = tree.text(left), tree.text(right)
    for form in tree.syntax.min_max:
        yield tree.replace_with(right, form.format(target, value), 1.0)
    callee = get_field(right, "function") if right.type in CALLS else None
    if callee is not None and tree.text(callee).rpartition(".")[2] in ("max", "min"):
        for name in tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]:
            if name != target:
                yield tree.replace_with(right, f"{tree.text(callee)}({target}, {name})", 0.9)
    if right.type == "unary_expression" and right.children[0].type in ("+", "-"):
        operand = get_field(right, "argument", "operand")
        if operand is not None:
            yield tree.replace_with(node, f"{target} {right.children[0].type}= {tree.text(operand)}", 1.0)
    if right.type in ("identifier", *SUBSCRIPTS, *MEMBERS):
        yield tree.replace_with(node, f"{value} = {target}", 0.4)


def _append_element(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Append one element instead of `list += x` or `list = list.push(x)` (JavaScript)."""
    left, right = get_field(node, "left"), get_field(node, "right")
    sign = node.child_by_field_name("operator")
    if left is None or right is None or not tree.is_javascript:
        return
    target = tree.text(left)
    if node.type == "augmented_assignment_expression" and sign is not None and tree.text(sign) == "+=":
        statement = tree.syntax.append.format(target, tree.text(right))
        yield tree.replace_with(node, statement.removesuffix(";"), 1.0)  # the node has no semicolon
    elif node.type == "assignment_expression" and right.type in CALLS:
        callee = get_field(right, "function")
        receiver = get_field(callee, "object") if callee is not None else None
        if receiver is not None and tree.text(receiver) == target:
            yield tree.replace_with(node, tree.text(right), 1.0)


def _change_initial_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Start from another value."""
    if node.type == "array" and node.named_child_count == 0:
        one_element = [f"[{name}]" for name in tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]]
        for rank, text in enumerate(("[[]]", *one_element, "[0]", "{}", "''", "null")):
            yield tree.replace_with(node, text, 0.9 - 0.03 * rank)
    elif node.type == "array":
        yield tree.replace_with(node, "[]", 0.7)
        yield tree.replace_with(node, f"[{tree.text(node)}]", 0.4)
    elif node.type in NUMBERS and _is_initial_value(node):
        for rank, name in enumerate(tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]):
            yield tree.replace_with(node, name, 0.5 - 0.02 * rank)
    elif node.type in NULLS:
        names = tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]
        for rank, text in enumerate((*tree.syntax.default_returns, *names)):
            if text != tree.text(node):
                yield tree.replace_with(node, text, 0.6 - 0.02 * rank)


def _is_initial_value(node: Node) -> bool:
    """Return whether a value is the initial value of a variable."""
    above = node.parent
    if above is not None and above.type == "expression_list":
        above = above.parent
    return above is not None and above.type in ("variable_declarator", "short_var_declaration")


def _add_return_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Give a bare `return` a value."""
    if node.type != "return_statement" or node.named_child_count:
        return
    names = tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]
    for rank, value in enumerate((*names, *tree.syntax.default_returns)):
        yield tree.replace_with(node, f"return {value}{tree.syntax.terminator}", 0.8 - 0.02 * rank)


def _add_final_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a `return` at the end of a function, for the case that its loop finds nothing."""
    body, parameters = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or not tree.text(body).endswith("}"):
        return
    last_statement = body.named_children[-1] if body.named_children else None
    if last_statement is not None and last_statement.type == "statement_list":  # the only child of a Go block
        last_statement = last_statement.named_children[-1]
    if last_statement is None or last_statement.type in FUNCTION_EXITS or not _returns_value(node, tree):
        return
    names = [tree.text(n) for n in walk(parameters) if n.type == "identifier"] if parameters else []
    lengths = [tree.syntax.length.format(name) for name in reversed(names)]
    for rank, value in enumerate((*lengths, *tree.syntax.default_returns)):
        text = f"\n{tree.indent(last_statement)}return {value}{tree.syntax.terminator}"
        yield insert_text(last_statement.end_byte, text, f"return {value} at the end", 1.0 - 0.05 * rank)


def _returns_value(function: Node, tree: SyntaxTree) -> bool:
    """Return whether a function, without the functions inside it, returns a value anywhere."""
    returns = (node for node in walk(function) if node.type == "return_statement" and node.named_child_count)
    return any(is_same_node(tree.enclosing_function(node), function) for node in returns)


def _move_early_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move an `else { return x; }` after its loop, because it ends the loop at the first element."""
    consequence, alternative = get_field(node, "consequence"), get_field(node, "alternative")
    loop = enclosing_loop(node) if node.type == "if_statement" else None
    if loop is None or consequence is None or alternative is None:
        return
    # More lines than a `return` and two braces mean that the branch does more than leave.
    exits = [inner for inner in walk(alternative) if inner.type in FUNCTION_EXITS]
    if len(exits) != 1 or tree.text(alternative).count("\n") > MAX_ELSE_LINES:
        return
    edits = (
        Edit(start=consequence.end_byte, end=alternative.end_byte, text=""),
        insert_at(loop.end_byte, f"\n{tree.indent(loop)}{tree.text(exits[0])}"),
    )
    yield Change(edits=edits, note=f"{shorten(tree.text(exits[0]))} moves after the loop", weight=1.0)


OPERATORS: TreeOperators = {
    "accumulation": _accumulate,
    "append_element": _append_element,
    "initial_value": _change_initial_value,
    "bare_return": _add_return_value,
    "final_return": _add_final_return,
    "early_loop_return": _move_early_return,
}
