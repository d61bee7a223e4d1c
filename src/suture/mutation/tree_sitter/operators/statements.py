"""Deletes, moves, copies and adds statements, such as a guard at the start of a function.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.mutation import tuning
from suture.mutation.changes import Change, insert_text, shorten
from suture.mutation.edits import Edit
from suture.mutation.tree_sitter.syntax_tree import (
    SyntaxTree,
    TreeOperators,
    enclosing_loop,
    get_field,
    insert_at,
    is_same_node,
    replace_node,
    walk,
)
from suture.mutation.tree_sitter.value_kinds import BLOCKS, EXITS, FUNCTIONS, LOOPS

if TYPE_CHECKING:
    from tree_sitter import Node

SIMPLE_STATEMENTS = (
    "expression_statement", "assignment_statement", "inc_statement", "dec_statement", "return_statement",
    "break_statement", "continue_statement",
)  # fmt: skip
DECLARATIONS = ("lexical_declaration", "variable_declaration", "short_var_declaration", "var_declaration")
FOR_HEADS = {"for_clause", "range_clause"}
"""Heads of loops that are more than a condition."""


def _delete(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Delete a statement, or the condition around its body."""
    if not tree.is_statement(node) or node.type in (*DECLARATIONS, *FUNCTIONS):
        return
    yield Change(edits=(_delete_lines(node, tree),), note=f"{shorten(tree.text(node))} is deleted")
    body = get_field(node, "consequence") if node.type == "if_statement" else None
    if body is not None and get_field(node, "alternative") is None:
        statements = tree.text(body).removeprefix("{").removesuffix("}").strip()
        edit = replace_node(node, statements)
        yield Change(edits=(edit,), note="the condition is deleted", weight=0.8)


def _move(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Swap a statement with the next one, or move it further."""
    if not tree.is_statement(node) or node.type not in (*SIMPLE_STATEMENTS, *DECLARATIONS, "if_statement"):
        return
    following = node.next_named_sibling
    if following is not None and tree.is_statement(following):
        note = f"{shorten(tree.text(node))} moves one line down"
        yield Change(edits=tree.swap(node, following), note=note, weight=0.8)
    yield from _move_further(node, tree)


def _move_further(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move a statement a little up or down, or to an end of its block."""
    assert node.parent is not None, "a statement is in a block"
    block = [sibling for sibling in node.parent.named_children if tree.is_statement(sibling)]
    index = next(number for number, sibling in enumerate(block) if is_same_node(sibling, node))
    last_index = len(block) - 1
    down = range(index + 2, index + 2 + tuning.MOVE_DISTANCE)
    up = range(index - 2, index - 2 - tuning.MOVE_DISTANCE, -1)
    for new_index in dict.fromkeys((*down, last_index, *up, 0)):
        if not 0 <= new_index <= last_index or abs(new_index - index) <= 1:
            continue
        sibling, moves_down = block[new_index], new_index > index
        if (sibling if moves_down else node).type in EXITS:
            continue  # the statements after a `return` never run
        text, indent = tree.text(node), tree.indent(sibling)
        if moves_down:
            insertion = insert_at(sibling.end_byte, f"\n{indent}{text}")
        else:
            insertion = insert_at(sibling.start_byte, f"{text}\n{indent}")
        note = f"{shorten(text)} moves {'after' if moves_down else 'before'} {shorten(tree.text(sibling))}"
        yield Change(edits=(_delete_lines(node, tree), insertion), note=note, weight=0.4)


def _change_block(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Move a statement after its block, or into the block before it."""
    if not tree.is_statement(node) or node.type not in (*SIMPLE_STATEMENTS, *DECLARATIONS, "if_statement"):
        return
    deletion = _delete_lines(node, tree)
    outer_statement = _statement_around(node, tree)
    if outer_statement is not None and node.type not in DECLARATIONS:
        insertion = insert_at(outer_statement.end_byte, f"\n{tree.indent(outer_statement)}{tree.text(node)}")
        # The deletion of whole lines may reach past an outer statement that no brace ends; edits must not
        # overlap.
        if deletion.end <= insertion.start:
            note = f"{shorten(tree.text(node))} moves after the block"
            weight = 1.0 if node.type in EXITS else 0.8
            yield Change(edits=(deletion, insertion), note=note, weight=weight)
    previous = node.prev_named_sibling
    if previous is not None and previous.type in (*LOOPS, "if_statement"):
        block = _last_block(previous)
        if block is not None:
            insertion = insert_at(block.end_byte - 1, f"  {tree.text(node)}\n")
            note = f"{shorten(tree.text(node))} moves into the block before it"
            yield Change(edits=(insertion, deletion), note=note, weight=0.7)


def _add_guard(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a base case, or a guard against null and empty values, at the start of a function."""
    body, parameters = get_field(node, "body"), get_field(node, "parameters", "parameter")
    if node.type not in FUNCTIONS or body is None or parameters is None:
        return
    if not tree.text(body).startswith("{"):
        return
    names = [tree.text(n) for n in walk(parameters) if n.type == "identifier"]
    equal = tree.syntax.equality[0]
    returned = _returned_texts(node, tree)
    for name in names[: tuning.MAX_GUARDED_PARAMETERS]:
        length = tree.syntax.length.format(name)
        conditions = (
            f"{length} {equal} 0",
            f"{name} <= 0",
            f"{name} {equal} 0",
            f"{name} <= 1",
            f"{name} {equal} {tree.syntax.null}",
            f"{length} < 2",
            f"!{name}",
        )
        for condition in conditions:
            for value in dict.fromkeys((*returned, name, *tree.syntax.default_returns)):
                guard = tree.syntax.if_statement.format(condition, f"return {value}{tree.syntax.terminator}")
                weight = 1.0 if value in returned else 0.6
                note = f"if {condition}: return {value}"
                yield insert_text(body.start_byte + 1, f"\n  {guard}", note, weight)


def _returned_texts(node: Node, tree: SyntaxTree) -> list[str]:
    """Return the short values, as written, that a function returns elsewhere."""
    returns = (inner for inner in walk(node) if inner.type == "return_statement" and inner.named_children)
    own_returns = (inner for inner in returns if is_same_node(tree.enclosing_function(inner), node))
    texts = (tree.text(inner.named_children[0]) for inner in own_returns)
    return [text for text in texts if len(text) <= tuning.MAX_RETURNED_CHARS]


def _copy_statement(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Copy a statement of the same function."""
    function = tree.enclosing_function(node)
    if function is None or not tree.is_statement(node):
        return
    others = [n for n in walk(function) if n.type in SIMPLE_STATEMENTS and not is_same_node(n, node)]
    others.sort(key=lambda other: abs(other.start_byte - node.start_byte))
    for text in list(dict.fromkeys(tree.text(other) for other in others))[: tuning.MAX_COPIED_STATEMENTS]:
        yield from _insert_beside(node, tree, text, 0.8)


def _add_assignment(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add an assignment such as `previous = current`, or a counter."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node):
        return
    # By judgement: the value may be any of the first names, and the target one of those declared last of them.
    names, end = tree.scope_names(node)[: 2 * tuning.MAX_TREE_STATEMENT_NAMES], tree.syntax.terminator
    previous = node.prev_named_sibling
    saving = _plain_assignment(previous, tree) if previous else None
    restoring = _plain_assignment(node, tree)
    if previous and saving and restoring and saving[0] == restoring[1] and saving[1] != restoring[0]:
        # `a = x` then `y = a`: the swap of `x` and `y` lacks `x = y` in between.
        yield from _insert_beside(previous, tree, f"{saving[1]} = {restoring[0]}{end}", 1.0, before=False)
    for target in names[-tuning.MAX_TREE_STATEMENT_NAMES :]:
        yield from _insert_beside(node, tree, f"{target} += 1{end}", 0.7)
        for value in names:
            if value != target:
                yield from _insert_beside(node, tree, f"{target} = {value}{end}", 0.6)


def _plain_assignment(statement: Node, tree: SyntaxTree) -> tuple[str, str] | None:
    """Return `(target, value)` of an assignment with `=` or `:=`; `None` for any other statement."""
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
    """Append a variable to a sequence that starts empty."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node):
        return
    # Twice as many names as elsewhere, because few of them start empty (by judgement).
    names = tree.scope_names(node)[: 2 * tuning.MAX_TREE_STATEMENT_NAMES]
    for target in names:
        if any(f"{target}{sign} []" in tree.source for sign in (" =", " :=")):
            for value in names:
                if value != target:
                    yield from _insert_beside(node, tree, tree.syntax.append.format(target, value), 0.9)


def _add_return(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Add a `return`, `break` or `continue` at the end of a block."""
    if tree.enclosing_function(node) is None or not tree.is_statement(node) or node.type in EXITS:
        return
    if node.next_named_sibling is not None:
        return
    if node.type == "expression_statement":
        value = node.named_children[0]
        yield tree.replace_with(value, f"return {tree.text(value)}", 1.0)
    # By judgement: the names that were declared last are the likeliest results.
    for name in (*tree.scope_names(node)[-tuning.MAX_TREE_STATEMENT_NAMES :], "true", "false"):
        yield from _insert_beside(node, tree, f"return {name}{tree.syntax.terminator}", 0.6, before=False)
    for word in ("break", "continue"):
        yield from _insert_beside(node, tree, f"{word}{tree.syntax.terminator}", 0.5, before=False)


def _change_loop_control(node: Node, tree: SyntaxTree) -> Iterator[Change]:
    """Switch `break` and `continue`, or `if` and a loop."""
    loop_keyword = "while" if tree.is_javascript else "for"
    keyword = node.children[0] if node.children else None
    if node.type == "if_statement" and get_field(node, "alternative") is None and keyword is not None:
        yield tree.replace_with(keyword, loop_keyword, 0.5)
    elif keyword is not None and keyword.type == loop_keyword and _is_while(node):
        yield tree.replace_with(keyword, "if", 0.5)
    if node.type in ("break_statement", "continue_statement") and node.named_child_count == 0:
        word = "continue" if node.type == "break_statement" else "break"
        yield tree.replace_with(node, f"{word}{tree.syntax.terminator}", 1.0)
        yield tree.replace_with(node, f"return{tree.syntax.terminator}", 0.3)
    if node.type == "return_statement" and not node.named_child_count and enclosing_loop(node) is not None:
        for word in ("break", "continue"):
            yield tree.replace_with(node, f"{word}{tree.syntax.terminator}", 1.0)


def _is_while(node: Node) -> bool:
    """Return whether the head of a loop is only a condition."""
    child_types = {child.type for child in node.named_children}
    return node.type == "while_statement" or (node.type == "for_statement" and not child_types & FOR_HEADS)


def _insert_beside(
    node: Node, tree: SyntaxTree, text: str, weight: float, *, before: bool = True
) -> Iterator[Change]:
    """Insert a statement after another, and with `before` also in front of the first one of a block."""
    indent, inserted, neighbour = tree.indent(node), shorten(text), shorten(tree.text(node))
    if before and node.prev_named_sibling is None:
        yield insert_text(node.start_byte, f"{text}\n{indent}", f"{inserted} before {neighbour}", weight)
    if node.type not in EXITS:
        yield insert_text(node.end_byte, f"\n{indent}{text}", f"{inserted} after {neighbour}", weight)


def _delete_lines(node: Node, tree: SyntaxTree) -> Edit:
    """Return the edit that deletes a statement, and its whole lines where nothing else is on them."""
    start, end = node.start_byte, node.end_byte
    line_start = tree.raw.rfind(b"\n", 0, start) + 1
    line_end = tree.raw.find(b"\n", end)
    if line_end >= 0 and not tree.raw[line_start:start].strip() and not tree.raw[end:line_end].strip():
        start, end = line_start, line_end + 1
    return Edit(start=start, end=end, text="")


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
    is_block = body is not None and body.type in ("statement_block", "block")
    return body if body is not None and is_block and body.end_byte == node.end_byte else None


OPERATORS: TreeOperators = {
    "delete_statement": _delete,
    "move_statement": _move,
    "change_block": _change_block,
    "guard": _add_guard,
    "copied_statement": _copy_statement,
    "missing_assignment": _add_assignment,
    "fill_container": _fill_container,
    "missing_return": _add_return,
    "loop_control": _change_loop_control,
}
