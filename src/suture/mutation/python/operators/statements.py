"""Deletes, moves, copies and adds statements, and changes the exits of loops.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, insert_text, replace_span, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import PythonOperator, PythonTree
from suture.mutation.tuning import MAX_COPIED_STATEMENTS, MAX_RETURN_VALUES, MOVE_DISTANCE
from suture.project.python_source.parsing import first_line
from suture.project.python_source.scopes import FUNCTIONS, Function
from suture.project.python_source.statement_edits import is_docstring

STATEMENT_NODES = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While,
    ast.Break, ast.Continue, ast.Raise, ast.Delete, ast.Try, ast.With, ast.Assert,
)  # fmt: skip
"""Statements that are deleted, moved and changed: all except definitions, imports and the rarest ones."""
EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
"""Statements after which the rest of a block never runs."""


def _delete(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Delete a statement, or the condition around its body."""
    assert isinstance(node, ast.stmt)
    lines = tree.line_span(node)
    if lines is None or is_docstring(node):
        return
    is_only_statement = len(tree.enclosing_block(node)) == 1
    text = f"{tree.indent(node)}pass\n" if is_only_statement else ""
    weight = 1.0 if len(ast.unparse(node).splitlines()) == 1 else 0.5
    yield replace_span(*lines, text, f"{shorten(tree.text(node))} is deleted", weight)
    if isinstance(node, ast.If) and not node.orelse and node.body:
        yield from _remove_condition(node, tree)


def _remove_condition(node: ast.If, tree: PythonTree) -> Iterator[Change]:
    """Replace an `if` with its body."""
    lines, first_lines, last_lines = (
        tree.line_span(node),
        tree.line_span(node.body[0]),
        tree.line_span(node.body[-1]),
    )
    if lines and first_lines and last_lines:
        body = tree.raw[first_lines[0] : last_lines[1]].decode("utf-8", "surrogatepass")
        text = reindent(body, tree.indent(node.body[0]), tree.indent(node))
        note = f"run unconditionally, not only if {shorten(tree.text(node.test))}"
        yield replace_span(*lines, text, note, 0.6)


def _move(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Move a statement a few statements down or up, or to an end of its block."""
    assert isinstance(node, ast.stmt)
    block = tree.enclosing_block(node)
    index = next((n for n, other in enumerate(block) if other is node), 0)
    lines = tree.line_span(node)
    if lines is None or is_docstring(node):
        return
    text, last_index = line_text(tree, lines), len(block) - 1
    down, up = range(index + 1, index + 1 + MOVE_DISTANCE), range(index - 2, index - 2 - MOVE_DISTANCE, -1)
    for new_index in dict.fromkeys((*down, last_index, *up, 0)):
        # A move before the previous statement equals that statement's own move down.
        if not 0 <= new_index <= last_index or new_index in (index - 1, index):
            continue
        sibling = block[new_index]
        sibling_lines = tree.line_span(sibling)
        if sibling_lines is None or is_docstring(sibling):
            continue
        moves_down = new_index > index
        if isinstance(sibling if moves_down else node, EXITS):
            continue  # what is after an exit never runs: the node, or all that the node would move before
        offset = sibling_lines[1] if moves_down else sibling_lines[0]
        deletion = Edit(start=lines[0], end=lines[1], text="")
        insertion = Edit(start=offset, end=offset, text=text)
        direction = "after" if moves_down else "before"
        note = f"{shorten(tree.text(node))} moves {direction} line {sibling.lineno}"
        # At the end of a file without a final newline, the statement would join the last line.
        if not moves_down or tree.raw[offset - 1 : offset] == b"\n":
            weight = 1.0 if new_index == index + 1 else 0.5
            yield Change(edits=(deletion, insertion), note=note, weight=weight)


def _change_block(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Move the last statement of a block after the block, or the statement after a block into it."""
    assert isinstance(node, ast.stmt)
    block, parent = tree.enclosing_block(node), tree.parent(node)
    lines = tree.line_span(node)
    if lines is None:
        return
    indent, text = tree.indent(node), line_text(tree, lines)
    if isinstance(parent, ast.stmt) and not isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
        parent_lines = tree.line_span(parent)
        if node is block[-1] and len(block) > 1 and parent_lines is not None:  # no block may become empty
            moved_text, parent_end = reindent(text, indent, tree.indent(parent)), parent_lines[1]
            edits: tuple[Edit, ...] = (Edit(start=lines[0], end=lines[1], text=moved_text),)
            if parent_end != lines[1]:  # other blocks of the parent, such as an `else`, follow
                deletion = Edit(start=lines[0], end=lines[1], text="")
                edits = (deletion, Edit(start=parent_end, end=parent_end, text=moved_text))
            yield Change(edits=edits, note=f"{shorten(tree.text(node))} moves out of its block")
    previous = tree.previous_statement(node)
    if isinstance(previous, (ast.If, ast.For, ast.While, ast.With)):
        body = getattr(previous, "orelse", None) or previous.body
        if isinstance(body[-1], EXITS):
            return  # the statement would never run there
        moved_text = reindent(text, indent, tree.indent(body[-1]))
        yield replace_span(*lines, moved_text, f"{shorten(tree.text(node))} moves into the block before it")


def _change_loop_control(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Switch `while` and `if`, or `break` and `continue`; add a missing exit from a loop."""
    assert isinstance(node, ast.stmt)
    start, end = tree.span(node)
    if isinstance(node, (ast.Break, ast.Continue)):
        for other in ("break", "continue", "return", "pass"):
            if other != tree.text(node):
                yield replace_span(start, end, other, f"{tree.text(node)} becomes {other}")
    elif isinstance(node, ast.Return) and node.value is None and in_loop(node, tree):
        for other in ("break", "continue"):
            yield replace_span(start, end, other, f"return becomes {other}")
    # An `elif` cannot become a `while`.
    elif isinstance(node, (ast.If, ast.While)) and not node.orelse and tree.raw[start : start + 2] != b"el":
        old, new = ("if", "while") if isinstance(node, ast.If) else ("while", "if")
        if tree.raw[start:end].startswith(old.encode()):
            yield replace_span(start, start + len(old), new, f"{old} becomes {new}", 0.5)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and in_loop(node, tree):
        lines = tree.line_span(node)
        if lines and node is tree.enclosing_block(node)[-1]:
            for word in ("break", "continue"):
                line = f"{tree.indent(node)}{word}\n"
                yield insert_text(lines[1], line, f"{word} after {shorten(tree.text(node))}", 0.5)


def _switch_elif(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Turn an `elif` into an `if` or `else`, or an `if` into an `elif`."""
    assert isinstance(node, ast.If)
    start, _ = tree.span(node)
    if tree.raw[start : start + 4] == b"elif":
        yield replace_span(start, start + 4, "if", "elif becomes if")
        if not node.orelse:
            colon = tree.raw.index(b":", tree.span(node.test)[1])  # parentheses may precede it
            yield replace_span(start, colon, "else", "elif becomes else", 0.5)
        return
    previous = tree.previous_statement(node)
    if isinstance(previous, ast.If) and not previous.orelse and tree.raw[start : start + 2] == b"if":
        yield replace_span(start, start + 2, "elif", "if becomes elif")


def in_loop(node: ast.AST, tree: PythonTree) -> bool:
    """Return whether a loop of the same function holds a node."""
    for parent in tree.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        if isinstance(parent, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


def line_text(tree: PythonTree, lines: tuple[int, int]) -> str:
    """Return the lines of a byte span, with a line end also at the end of the file."""
    text = tree.raw[lines[0] : lines[1]].decode("utf-8", "surrogatepass")
    return text if text.endswith("\n") else f"{text}\n"


def reindent(text: str, before: str, after: str) -> str:
    """Return lines with another indentation; lines without the old one stay as they are."""
    lines = text.splitlines(keepends=True)
    return "".join(after + line.removeprefix(before) if line.startswith(before) else line for line in lines)


SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
"""Statements that are copied."""
INSERTION_POINTS = (*SIMPLE, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Return)
"""Statements next to which others are inserted."""
FILL_METHODS = {"sequence": ("append",), "set": ("add",), "unknown": ("append", "add")}
"""Kind of container -> methods that put an element into it."""


def _add_guard(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a base case, or a guard against `None` and empty values, at the start of a function."""
    assert isinstance(node, FUNCTIONS)
    body = [statement for statement in node.body if not is_docstring(statement)]
    if not body or tree.line_span(body[0]) is None:
        return
    start, indent = tree.offset(first_line(body[0]), 0), tree.indent(body[0])
    parameters = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
    kinds = tree.scope_names(body[0]).kinds
    for name in parameters:
        conditions: tuple[str, ...] = (f"not {name}", f"{name} is None")
        if kinds.get(name) == "number":
            conditions = (f"{name} <= 0", f"{name} == 0", f"{name} <= 1")
        for condition in conditions:
            for value, weight in _guard_values(node, tree):
                exit_statement = f"return {value}".rstrip()
                text = f"{indent}if {condition}:\n{indent}    {exit_statement}\n"
                yield insert_text(start, text, f"if {condition}: {exit_statement}", weight)


def _guard_values(function: Function, tree: PythonTree) -> Iterator[tuple[str, float]]:
    """Yield `(value, weight)` for what a guard may return: the function's other values, then empty ones.

    In a generator, the only value is an empty string, for a bare `return`.
    """
    nodes = tree.nodes_of(function)
    yields = [node for node in nodes if isinstance(node, (ast.Yield, ast.YieldFrom))]
    if any(tree.enclosing_function(node) is function for node in yields):
        yield "", 1.0
        return
    values = [node.value for node in nodes if isinstance(node, ast.Return)]
    texts = [tree.text(value) for value in values if isinstance(value, (ast.Constant, ast.Name, ast.List))]
    # Names other than parameters are not bound at the start of the function.
    names = {"True", "False", *(argument.arg for argument in function.args.args)}
    returned = [text for text in texts if text in names or not text.isidentifier()]
    candidates = dict.fromkeys((*returned, "[]", "0", "None", "False", "True", "''", "1"))
    for text in list(candidates)[:MAX_RETURN_VALUES]:
        yield text, 1.0 if text in returned else 0.6


def _fill_container(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Put a variable into a container of the function, or of the functions around it."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    names = tree.scope_names(node)
    outermost = [function, *(above for above in tree.ancestors(function) if isinstance(above, FUNCTIONS))][-1]
    containers = _local_containers(outermost, tree)
    for container, kind in containers.items():
        if names.bound_at.get(container, 0) > node.lineno:
            continue
        for method in FILL_METHODS.get(kind, ()):
            for value, fit in names.fitting("unknown", node.end_lineno or node.lineno):
                if value != container and value not in containers:
                    yield from _insert_beside(node, tree, f"{container}.{method}({value})", fit)


def _local_containers(function: Function, tree: PythonTree) -> dict[str, str]:
    """Return local variable -> kind, for variables that are initialised as a container."""
    containers: dict[str, str] = {}
    for node in tree.nodes_of(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            variable, value = node.targets[0].id, node.value
            callee = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
            if isinstance(value, ast.List) or callee in ("list", "deque"):
                containers[variable] = "sequence"
            elif isinstance(value, ast.Set) or callee == "set":
                containers[variable] = "set"
            elif callee[:1].isupper():  # a class, which may be a container
                containers[variable] = "unknown"
    return containers


def _assigned_names(function: Function, tree: PythonTree) -> list[str]:
    """Return the variables that a function assigns, each once."""
    names = [node for node in tree.nodes_of(function) if isinstance(node, ast.Name)]
    return list(dict.fromkeys(name.id for name in names if isinstance(name.ctx, ast.Store)))


def _add_assignment(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add an assignment such as `previous = current`, or a counter."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    names = tree.scope_names(node)
    bound_names = names.bound_before(node.end_lineno or node.lineno)
    for target in _assigned_names(function, tree):
        if target not in bound_names:
            continue
        for value in bound_names:
            if value != target:
                kinds = {names.kinds[target], names.kinds[value]}
                is_alike = len(kinds) == 1 or "unknown" in kinds
                is_alike &= not names.is_unlike(value, names.observed.get(target, "unknown"))
                yield from _insert_beside(node, tree, f"{target} = {value}", 0.9 if is_alike else 0.2)
        if names.kinds.get(target) == "number":
            for sign in ("+=", "-="):
                yield from _insert_beside(node, tree, f"{target} {sign} 1", 0.6)


def _add_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a `return` of a variable at the end of a block."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    block = tree.enclosing_block(node)
    if function is None or node is not block[-1] or isinstance(node, ast.Return):
        return
    weight = 1.0 if block is function.body else 0.4
    parameters = [argument.arg for argument in function.args.args]
    for value in (*_assigned_names(function, tree), *parameters, "True", "False", "None"):
        yield from _insert_beside(node, tree, f"return {value}", weight, before=False)


def _copy_statement(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Copy a statement of the same function."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    statements = [part for part in tree.nodes_of(function) if isinstance(part, SIMPLE)]
    others = [other for other in statements if other is not node and not is_docstring(other)]
    others.sort(key=lambda other: abs(other.lineno - node.lineno))
    for other in others[:MAX_COPIED_STATEMENTS]:
        yield from _insert_beside(node, tree, tree.text(other), 0.8)


def _insert_beside(
    node: ast.stmt, tree: PythonTree, text: str, weight: float, *, before: bool = True
) -> Iterator[Change]:
    """Insert a line after a statement, and before it where it is the first of its block."""
    lines, indent = tree.line_span(node), tree.indent(node)
    if lines is None or indent.strip() or "\n" in text:
        return  # the new line would not have the indentation of the node
    # In the tree, an `elif` is an `if` that is the first of its block; no line can precede it there.
    is_elif = isinstance(node, ast.If) and tree.raw[tree.span(node)[0] :].startswith(b"elif")
    if before and not is_elif and node is tree.enclosing_block(node)[0]:
        yield insert_text(lines[0], f"{indent}{text}\n", f"{shorten(text)} before line {node.lineno}", weight)
    if not isinstance(node, EXITS):
        line = f"{tree.missing_newline(lines[1])}{indent}{text}\n"
        yield insert_text(lines[1], line, f"{shorten(text)} after line {node.end_lineno}", weight)


OPERATORS = (
    PythonOperator(name="delete_statement", nodes=STATEMENT_NODES, changes=_delete),
    PythonOperator(name="move_statement", nodes=STATEMENT_NODES, changes=_move),
    PythonOperator(name="change_block", nodes=STATEMENT_NODES, changes=_change_block),
    PythonOperator(name="loop_control", nodes=STATEMENT_NODES, changes=_change_loop_control),
    PythonOperator(name="elif", nodes=(ast.If,), changes=_switch_elif),
    PythonOperator(name="guard", nodes=FUNCTIONS, changes=_add_guard),
    PythonOperator(name="fill_container", nodes=INSERTION_POINTS, changes=_fill_container),
    PythonOperator(name="missing_assignment", nodes=INSERTION_POINTS, changes=_add_assignment),
    PythonOperator(name="missing_return", nodes=INSERTION_POINTS, changes=_add_return),
    PythonOperator(name="copied_statement", nodes=INSERTION_POINTS, changes=_copy_statement),
)
