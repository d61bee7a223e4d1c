"""Statements: superfluous, missing, or in the wrong place; missing guards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.node_kinds import BLOCKS, FUNCTIONS, LOOPS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, TreeOperators, get_field, is_same_node, walk
from suture.mutation.tuning import (
    MAX_COPIED_STATEMENTS,
    MAX_GUARDED_PARAMETERS,
    MAX_RETURNED_CHARS,
    MAX_TREE_STATEMENT_NAMES,
    MOVE_DISTANCE,
)

if TYPE_CHECKING:
    from tree_sitter import Node

SIMPLE_STATEMENTS = (
    "expression_statement",
    "assignment_statement",
    "inc_statement",
    "dec_statement",
    "return_statement",
    "break_statement",
    "continue_statement",
)
DECLARATIONS = ("lexical_declaration", "variable_declaration", "short_var_declaration", "var_declaration")
EXIT_STATEMENTS = ("return_statement", "break_statement", "continue_statement", "throw_statement")
FOR_HEADS = {"for_clause", "range_clause"}


def _delete(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Delete a statement, or the condition around its body."""
    if not tree.is_statement(node) or node.type in (*DECLARATIONS, *FUNCTIONS):
        return
    start, end = _line_span(node, tree)
    yield Change(edits=(Edit(start=start, end=end, text=""),), note=f"{shorten(tree.text(node))} is deleted")
    body = get_field(node, "consequence") if node.type == "if_statement" else None
    if body is not None and get_field(node, "alternative") is None:
        inner = tree.text(body).removeprefix("{").removesuffix("}").strip()
        edit = Edit(start=node.start_byte, end=node.end_byte, text=inner)
        yield Change(edits=(edit,), note="the condition is deleted", weight=0.8)


def _move(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Swap a statement with the next one, or move it further."""
    if not tree.is_statement(node) or node.type not in (*SIMPLE_STATEMENTS, *DECLARATIONS, "if_statement"):
        return
    after = node.next_named_sibling
    if after is not None and tree.is_statement(after):
        swapped = (
            Edit(start=node.start_byte, end=node.end_byte, text=tree.text(after)),
            Edit(start=after.start_byte, end=after.end_byte, text=tree.text(node)),
        )
        yield Change(edits=swapped, note=f"{shorten(tree.text(node))} moves one line down", weight=0.8)
    yield from _move_further(node, tree)


def _move_further(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move a statement a little up or down, or to an end of its block."""
    assert node.parent is not None, "a statement is in a block"
    block = [other for other in node.parent.named_children if tree.is_statement(other)]
    at = next(number for number, other in enumerate(block) if is_same_node(other, node))
    last, own, text = len(block) - 1, _line_span(node, tree), tree.text(node)
    deletion = Edit(start=own[0], end=own[1], text="")
    places = (*range(at + 2, at + 2 + MOVE_DISTANCE), last, *range(at - 2, at - 2 - MOVE_DISTANCE, -1), 0)
    for to in dict.fromkeys(to for to in places if 0 <= to <= last and abs(to - at) > 1):
        other, moves_down = block[to], to > at
        if (other if moves_down else node).type in EXIT_STATEMENTS:
            continue  # what follows it would never run
        indent = tree.indent(other)
        place = other.end_byte if moves_down else other.start_byte
        put = Edit(start=place, end=place, text=f"\n{indent}{text}" if moves_down else f"{text}\n{indent}")
        note = f"{shorten(text)} moves {'after' if moves_down else 'before'} {shorten(tree.text(other))}"
        yield Change(edits=(deletion, put), note=note, weight=0.4)


def _change_block(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move a statement after its block, or into the block before it."""
    if not tree.is_statement(node) or node.type not in (*SIMPLE_STATEMENTS, *DECLARATIONS, "if_statement"):
        return
    before = node.prev_named_sibling
    start, end = _line_span(node, tree)
    deletion = Edit(start=start, end=end, text="")
    around = _statement_around(node, tree)
    if around is not None and node.type not in DECLARATIONS:
        text = f"\n{tree.indent(around)}{tree.text(node)}"
        put = Edit(start=around.end_byte, end=around.end_byte, text=text)
        if deletion.end <= put.start:
            note = f"{shorten(tree.text(node))} moves after the block"
            yield Change(
                edits=(deletion, put), note=note, weight=1.0 if node.type in EXIT_STATEMENTS else 0.8
            )
    if before is not None and before.type in (*LOOPS, "if_statement"):
        inner = _last_block(before)
        if inner is not None:
            put = Edit(start=inner.end_byte - 1, end=inner.end_byte - 1, text=f"  {tree.text(node)}\n")
            yield Change(
                edits=(put, deletion),
                note=f"{shorten(tree.text(node))} moves into the block before it",
                weight=0.7,
            )


def _add_guard(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a base case, or a guard against null and empty values, at the start of a function."""
    body, taken = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or taken is None or not tree.text(body).startswith("{"):
        return
    names = [tree.text(n) for n in walk(taken) if n.type == "identifier"]
    equal = tree.syntax.equality[0]
    returned = _returned_texts(node, tree)
    for name in names[:MAX_GUARDED_PARAMETERS]:
        length = tree.syntax.length.format(name)
        tests = (f"{length} {equal} 0", f"{name} <= 0", f"{name} {equal} 0", f"{name} <= 1")
        for test in (*tests, f"{name} {equal} {tree.syntax.null}", f"{length} < 2", f"!{name}"):
            for answer in dict.fromkeys((*returned, name, *tree.syntax.default_returns)):
                text = tree.syntax.if_statement.format(test, f"return {answer}{tree.syntax.terminator}")
                edit = Edit(start=body.start_byte + 1, end=body.start_byte + 1, text=f"\n  {text}")
                note = f"if {test}: return {answer}"
                yield Change(edits=(edit,), note=note, weight=1.0 if answer in returned else 0.6)


def _returned_texts(node: Node, tree: SyntaxTree) -> list[str]:
    """Return the short texts that a function returns in other places."""
    found = []
    for inner in walk(node):
        if (
            inner.type == "return_statement"
            and is_same_node(tree.enclosing_function(inner), node)
            and inner.named_children
        ):
            text = tree.text(inner.named_children[0])
            found += [text] if len(text) <= MAX_RETURNED_CHARS else []
    return found


def _copy_statement(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Copy a statement of the same function."""
    function = tree.enclosing_function(node)
    if function is None or not tree.is_statement(node):
        return
    others = [n for n in walk(function) if n.type in SIMPLE_STATEMENTS and not is_same_node(n, node)]
    others.sort(key=lambda other: abs(other.start_byte - node.start_byte))
    for text in list(dict.fromkeys(tree.text(other) for other in others))[:MAX_COPIED_STATEMENTS]:
        yield from _insert_beside(node, tree, text, 0.8)


def _duplicate(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Repeat a simple statement."""
    if tree.is_statement(node) and node.type in SIMPLE_STATEMENTS and node.type not in EXIT_STATEMENTS:
        yield from _insert_beside(node, tree, tree.text(node), 1.0, before=False)


def _add_assignment(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add an assignment such as `previous = current`, or a counter."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node):
        return
    names, end = tree.scope_names(node)[: 2 * MAX_TREE_STATEMENT_NAMES], tree.syntax.terminator
    before = node.prev_named_sibling
    saved, restored = _plain_assignment(before, tree) if before else None, _plain_assignment(node, tree)
    if before and saved and restored and saved[0] == restored[1] and saved[1] != restored[0]:
        # `a = x` then `y = a`: the swap of `x` and `y` lacks `x = y` in between.
        yield from _insert_beside(before, tree, f"{saved[1]} = {restored[0]}{end}", 1.0, before=False)
    for target in names[-MAX_TREE_STATEMENT_NAMES:]:
        yield from _insert_beside(node, tree, f"{target} += 1{end}", 0.7)
        for value in names:
            if value != target:
                yield from _insert_beside(node, tree, f"{target} = {value}{end}", 0.6)


def _plain_assignment(statement: Node, tree: SyntaxTree) -> tuple[str, str] | None:
    """Return the target and the value of a plain assignment; `None` for any other statement."""
    node = statement
    while (
        node.type in (*DECLARATIONS, "expression_statement", "expression_list")
        and node.named_child_count == 1
    ):
        node = node.named_children[0]
    target, value = get_field(node, "name", "left"), get_field(node, "value", "right")
    sign = get_field(node, "operator")
    is_plain = sign is None or sign.type in ("=", ":=")
    return (tree.text(target), tree.text(value)) if target and value and is_plain else None


def _fill_container(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Put a variable into a sequence that is not filled here."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node):
        return
    names = tree.scope_names(node)[: 2 * MAX_TREE_STATEMENT_NAMES]
    for target in names:
        if any(f"{target}{mark}" in tree.raw.decode("utf-8", "replace") for mark in (" = []", " := []")):
            for value in names:
                if value != target:
                    yield from _insert_beside(node, tree, tree.syntax.append.format(target, value), 0.9)


def _add_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a `return` at the end of a block, or an exit from a loop."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node) or node.type in EXIT_STATEMENTS:
        return
    if node.next_named_sibling is not None:
        return
    value = node.named_children[0] if node.type == "expression_statement" else None
    if value is not None:
        yield tree.replace_with(value, f"return {tree.text(value)}", 1.0)
    for name in (*tree.scope_names(node)[-MAX_TREE_STATEMENT_NAMES:], "true", "false"):
        yield from _insert_beside(node, tree, f"return {name}{tree.syntax.terminator}", 0.6, before=False)
    for word in ("break", "continue"):
        yield from _insert_beside(node, tree, f"{word}{tree.syntax.terminator}", 0.5, before=False)


def _change_loop_control(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Switch `break` and `continue`, or `if` and a loop."""
    once, again = ("if", "while") if tree.syntax.terminator else ("if", "for")
    start = node.children[0] if node.children else None
    if node.type == "if_statement" and get_field(node, "alternative") is None and start is not None:
        yield tree.replace_with(start, again, 0.5)
    elif start is not None and start.type == again and _is_while(node):
        yield tree.replace_with(start, once, 0.5)
    if node.type in ("break_statement", "continue_statement") and node.named_child_count == 0:
        word = "continue" if node.type == "break_statement" else "break"
        yield tree.replace_with(node, f"{word}{tree.syntax.terminator}", 1.0)
        yield tree.replace_with(node, f"return{tree.syntax.terminator}", 0.3)
    if node.type == "return_statement" and node.named_child_count == 0 and _is_in_loop(node):
        for word in ("break", "continue"):
            yield tree.replace_with(node, f"{word}{tree.syntax.terminator}", 1.0)


def _is_in_loop(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type not in (*LOOPS, *FUNCTIONS):
        above = above.parent
    return above is not None and above.type in LOOPS


def _is_while(node: Node) -> bool:
    """Return whether a loop has only a condition."""
    kinds = {child.type for child in node.named_children}
    return node.type == "while_statement" or (node.type == "for_statement" and not kinds & FOR_HEADS)


def _insert_beside(
    node: Node, tree: SyntaxTree, text: str, weight: float, *, before: bool = True
) -> Iterator[Change]:
    """Insert a statement after another, and before it where it is the first of its block."""
    indent = tree.indent(node)
    if before and node.prev_named_sibling is None:
        edit = Edit(start=node.start_byte, end=node.start_byte, text=f"{text}\n{indent}")
        yield Change(edits=(edit,), note=f"{shorten(text)} before {shorten(tree.text(node))}", weight=weight)
    if node.type not in EXIT_STATEMENTS:
        edit = Edit(start=node.end_byte, end=node.end_byte, text=f"\n{indent}{text}")
        yield Change(edits=(edit,), note=f"{shorten(text)} after {shorten(tree.text(node))}", weight=weight)


def _line_span(node: Node, tree: SyntaxTree) -> tuple[int, int]:
    """Return the span of a statement, with its whole lines where nothing else is on them."""
    start, end = node.start_byte, node.end_byte
    before = tree.raw.rfind(b"\n", 0, start) + 1
    after = tree.raw.find(b"\n", end)
    if after >= 0 and not tree.raw[before:start].strip() and not tree.raw[end:after].strip():
        return before, after + 1
    return start, end


def _statement_around(node: Node, tree: SyntaxTree) -> Node | None:
    """Return the statement whose block holds a statement, in the same function."""
    above = node.parent
    while above is not None and above.type not in FUNCTIONS:
        if above.type not in BLOCKS and tree.is_statement(above):
            return above
        above = above.parent
    return None


def _last_block(node: Node) -> Node | None:
    """Return the block at the end of a statement."""
    body = get_field(node, "body", "consequence")
    if body is not None and body.end_byte == node.end_byte and body.type in ("statement_block", "block"):
        return body
    return None


OPERATORS: TreeOperators = {
    "delete_statement": _delete,
    "move_statement": _move,
    "duplicate_statement": _duplicate,
    "change_block": _change_block,
    "guard": _add_guard,
    "copied_statement": _copy_statement,
    "missing_assignment": _add_assignment,
    "fill_container": _fill_container,
    "missing_return": _add_return,
    "loop_control": _change_loop_control,
}
