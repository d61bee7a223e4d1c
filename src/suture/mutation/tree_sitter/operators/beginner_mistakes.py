"""Mistakes of beginners: accumulation, initial values, appending, bare or early `return`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.node_kinds import CALLS, FUNCTIONS, LOOPS, MEMBERS, NUMBERS, PARTS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node, walk
from suture.mutation.tuning import MAX_ELSE_LINES, MAX_TREE_INITIAL_NAMES

if TYPE_CHECKING:
    from tree_sitter import Node

EXIT_STATEMENTS = ("return_statement", "throw_statement")


def _accumulate(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Combine with the previous value: `best = max(best, x)`; correct `x =+ 1`."""
    left, right = get_field(node, "left"), get_field(node, "right")
    if node.type not in ("assignment_expression", "assignment_statement") or left is None or right is None:
        return
    if not any(child.type == "=" for child in node.children) or right.type in FUNCTIONS:
        return
    target, value = tree.text(left), tree.text(right)
    for form in tree.syntax.min_max:
        yield tree.replace_with(right, form.format(target, value), 1.0)
    called = get_field(right, "function") if right.type in CALLS else None
    if called is not None and tree.text(called).rpartition(".")[2] in ("max", "min"):
        for name in tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]:
            if name != target:
                yield tree.replace_with(right, f"{tree.text(called)}({target}, {name})", 0.9)
    if right.type == "unary_expression" and right.children[0].type in ("+", "-"):
        part = get_field(right, "argument", "operand")
        if part is not None:
            yield tree.replace_with(node, f"{target} {right.children[0].type}= {tree.text(part)}", 1.0)
    if right.type in ("identifier", *PARTS, *MEMBERS):
        yield tree.replace_with(node, f"{value} = {target}", 0.4)


def _append_element(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Append one element: for `found += x`, and for `found = found.push(x)`."""
    left, right = get_field(node, "left"), get_field(node, "right")
    sign = node.child_by_field_name("operator")
    if left is None or right is None or not tree.syntax.terminator:
        return
    target = tree.text(left)
    if node.type == "augmented_assignment_expression" and sign is not None and tree.text(sign) == "+=":
        yield tree.replace_with(
            node, tree.syntax.append.format(target, tree.text(right)).removesuffix(";"), 1.0
        )
    elif node.type == "assignment_expression" and right.type in CALLS:
        called = get_field(right, "function")
        of = get_field(called, "object") if called is not None else None
        if of is not None and tree.text(of) == target:
            yield tree.replace_with(node, tree.text(right), 1.0)


def _change_initial_value(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Start from another value."""
    if node.type == "array" and node.named_child_count == 0:
        near = [f"[{name}]" for name in tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]]
        for place, text in enumerate(("[[]]", *near, "[0]", "{}", "''", "null")):
            yield tree.replace_with(node, text, 0.9 - 0.03 * place)
    elif node.type == "array":
        yield tree.replace_with(node, "[]", 0.7)
        yield tree.replace_with(node, f"[{tree.text(node)}]", 0.4)
    elif node.type in NUMBERS and _is_initial_value(node):
        for place, name in enumerate(tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES]):
            yield tree.replace_with(node, name, 0.5 - 0.02 * place)
    elif node.type in ("null", "nil", "undefined"):
        for place, text in enumerate(
            (*tree.syntax.default_returns, *tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES])
        ):
            if text != tree.text(node):
                yield tree.replace_with(node, text, 0.6 - 0.02 * place)


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
    for place, value in enumerate(
        (*tree.scope_names(node)[:MAX_TREE_INITIAL_NAMES], *tree.syntax.default_returns)
    ):
        yield tree.replace_with(node, f"return {value}{tree.syntax.terminator}", 0.8 - 0.02 * place)


def _add_final_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a `return` at the end of a function, for the case that its loop finds nothing."""
    body, taken = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or not tree.text(body).endswith("}"):
        return
    inner = body.named_children[-1] if body.named_children else None
    if inner is not None and inner.type == "statement_list":
        inner = inner.named_children[-1]
    if inner is None or inner.type in EXIT_STATEMENTS or not _returns_value(node, tree):
        return
    names = [tree.text(n) for n in walk(taken) if n.type == "identifier"] if taken is not None else []
    lengths = [tree.syntax.length.format(name) for name in reversed(names)]
    for place, value in enumerate((*lengths, *tree.syntax.default_returns)):
        text = f"\n{tree.indent(inner)}return {value}{tree.syntax.terminator}"
        edit = Edit(start=inner.end_byte, end=inner.end_byte, text=text)
        yield Change(edits=(edit,), note=f"return {value} at the end", weight=1.0 - 0.05 * place)


def _returns_value(function: Node, tree: SyntaxTree) -> bool:
    inner = (node for node in walk(function) if node.type == "return_statement")
    return any(
        node.named_child_count and is_same_node(tree.enclosing_function(node), function) for node in inner
    )


def _move_early_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move an `else { return }` that ends a loop at the first element after the loop."""
    yes, other, loop = get_field(node, "consequence"), get_field(node, "alternative"), node.parent
    while loop is not None and loop.type not in (*LOOPS, *FUNCTIONS):
        loop = loop.parent
    if node.type != "if_statement" or yes is None or other is None or loop is None or loop.type not in LOOPS:
        return
    ending = [inner for inner in walk(other) if inner.type in EXIT_STATEMENTS]
    if len(ending) != 1 or tree.text(other).count("\n") > MAX_ELSE_LINES:
        return
    text = f"\n{tree.indent(loop)}{tree.text(ending[0])}"
    edits = (
        Edit(start=yes.end_byte, end=other.end_byte, text=""),
        Edit(start=loop.end_byte, end=loop.end_byte, text=text),
    )
    yield Change(edits=edits, note=f"{shorten(tree.text(ending[0]))} moves after the loop", weight=1.0)


OPERATORS: TreeOperators = {
    "accumulation": _accumulate,
    "append_element": _append_element,
    "initial_value": _change_initial_value,
    "bare_return": _add_return_value,
    "final_return": _add_final_return,
    "early_loop_return": _move_early_return,
}
