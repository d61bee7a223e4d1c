"""Deletes, repeats, moves, copies and adds statements, and changes the exits of loops.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.python_operator import PythonOperator
from suture.mutation.python.python_tree import FUNCTIONS, Function, PythonTree, is_docstring
from suture.mutation.tuning import MAX_COPIED_STATEMENTS, MAX_RETURN_VALUES, MOVE_DISTANCE
from suture.project.python_source.parsing import first_line

STATEMENT_NODES = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While,
    ast.Break, ast.Continue, ast.Raise, ast.Delete, ast.Try, ast.With, ast.Assert,
)  # fmt: skip
EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def _delete(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Delete a statement, or the condition around its body."""
    assert isinstance(node, ast.stmt)
    lines = tree.line_span(node)
    if lines is None or is_docstring(node):
        return
    is_only_statement = len(tree.enclosing_block(node)) == 1
    text = f"{tree.indent(node)}pass\n" if is_only_statement else ""
    line_count = len(ast.unparse(node).splitlines())
    yield Change(
        edits=(Edit(start=lines[0], end=lines[1], text=text),),
        note=f"{shorten(tree.text(node))} is deleted",
        weight=1.0 if line_count == 1 else 0.5,
    )
    if isinstance(node, ast.If) and not node.orelse and node.body:
        yield from _remove_condition(node, tree)


def _remove_condition(node: ast.If, tree: PythonTree) -> Iterator[Change]:
    """Replace an `if` with its body."""
    lines, first, last = tree.line_span(node), tree.line_span(node.body[0]), tree.line_span(node.body[-1])
    if lines and first and last:
        body = tree.raw[first[0] : last[1]].decode("utf-8", "surrogatepass")
        text = reindent(body, tree.indent(node.body[0]), tree.indent(node))
        edit = Edit(start=lines[0], end=lines[1], text=text)
        yield Change(
            edits=(edit,),
            note=f"run unconditionally, not only if {shorten(tree.text(node.test))}",
            weight=0.6,
        )


def _move(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Swap a statement with the next one, or move it a little further, or to an end of its block."""
    assert isinstance(node, ast.stmt)
    block = tree.enclosing_block(node)
    index = next((n for n, other in enumerate(block) if other is node), 0)
    lines = tree.line_span(node)
    if lines is None or is_docstring(node):
        return
    text, last = _line_text(tree, lines), len(block) - 1
    down, up = range(index + 1, index + 1 + MOVE_DISTANCE), range(index - 2, index - 2 - MOVE_DISTANCE, -1)
    for new_index in dict.fromkeys((*down, last, *up, 0)):
        # To move before the previous statement is what that statement's own move down does.
        if not 0 <= new_index <= last or new_index in (index - 1, index):
            continue
        sibling = block[new_index]
        sibling_lines = tree.line_span(sibling)
        if sibling_lines is None or is_docstring(sibling):
            continue
        moves_down = new_index > index
        if isinstance(sibling if moves_down else node, EXITS):
            continue  # the statements after a `return` never run
        offset = sibling_lines[1] if moves_down else sibling_lines[0]
        deletion = Edit(start=lines[0], end=lines[1], text="")
        insertion = Edit(start=offset, end=offset, text=text)
        direction = "after" if moves_down else "before"
        note = f"{shorten(tree.text(node))} moves {direction} line {sibling.lineno}"
        if not moves_down or tree.raw[offset - 1 : offset] == b"\n":
            weight = 1.0 if new_index == index + 1 else 0.5
            yield Change(edits=(deletion, insertion), note=note, weight=weight)


def _change_block(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Move the last statement of a block after the block, or the statement after a block into it."""
    assert isinstance(node, ast.stmt)
    block, parent = tree.enclosing_block(node), tree.parent(node)
    index = next((n for n, other in enumerate(block) if other is node), 0)
    lines = tree.line_span(node)
    if lines is None:
        return
    inner, text = tree.indent(node), _line_text(tree, lines)
    within = isinstance(parent, ast.stmt) and not isinstance(parent, (*FUNCTIONS, ast.ClassDef))
    end = tree.line_span(parent) if within and isinstance(parent, ast.stmt) else None
    if node is block[-1] and len(block) > 1 and isinstance(parent, ast.stmt) and end is not None:
        shallower = reindent(text, inner, tree.indent(parent))
        edits: tuple[Edit, ...] = (Edit(start=lines[0], end=lines[1], text=shallower),)
        if end[1] != lines[1]:
            deletion = Edit(start=lines[0], end=lines[1], text="")
            edits = (deletion, Edit(start=end[1], end=end[1], text=shallower))
        yield Change(edits=edits, note=f"{shorten(tree.text(node))} moves out of its block")
    previous = block[index - 1] if index else None
    if isinstance(previous, (ast.If, ast.For, ast.While, ast.With)):
        body = getattr(previous, "orelse", None) or previous.body
        if isinstance(body[-1], EXITS):
            return  # the statement would never run there
        deeper = reindent(text, inner, tree.indent(body[-1]))
        edit = Edit(start=lines[0], end=lines[1], text=deeper)
        yield Change(edits=(edit,), note=f"{shorten(tree.text(node))} moves into the block before it")


def _change_loop_control(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Switch `while` and `if`, or `break` and `continue`; add a missing exit from a loop."""
    assert isinstance(node, ast.stmt)
    start, end = tree.span(node)
    if isinstance(node, (ast.Break, ast.Continue)):
        for other in ("break", "continue", "return", "pass"):
            if other != tree.text(node):
                edit = Edit(start=start, end=end, text=other)
                yield Change(edits=(edit,), note=f"{tree.text(node)} becomes {other}", weight=1.0)
    elif isinstance(node, ast.Return) and node.value is None and _in_loop(node, tree):
        for other in ("break", "continue"):
            edit = Edit(start=start, end=end, text=other)
            yield Change(edits=(edit,), note=f"return becomes {other}", weight=1.0)
    elif isinstance(node, (ast.If, ast.While)) and not node.orelse and tree.raw[start : start + 2] != b"el":
        old, new = ("if", "while") if isinstance(node, ast.If) else ("while", "if")
        if tree.raw[start:end].startswith(old.encode()):
            edit = Edit(start=start, end=start + len(old), text=new)
            yield Change(edits=(edit,), note=f"{old} becomes {new}", weight=0.5)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and _in_loop(node, tree):
        lines = tree.line_span(node)
        if lines and node is tree.enclosing_block(node)[-1]:
            for exit_word in ("break", "continue"):
                edit = Edit(start=lines[1], end=lines[1], text=f"{tree.indent(node)}{exit_word}\n")
                yield Change(edits=(edit,), note=f"{exit_word} after {shorten(tree.text(node))}", weight=0.5)


def _switch_elif(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Turn an `elif` into an `if`, or an `if` into an `elif`."""
    assert isinstance(node, ast.If)
    start, _ = tree.span(node)
    if tree.raw[start : start + 4] == b"elif":
        yield Change(edits=(Edit(start=start, end=start + 4, text="if"),), note="elif becomes if")
        return
    block = tree.enclosing_block(node)
    index = next((n for n, other in enumerate(block) if other is node), 0)
    previous = block[index - 1] if index else None
    if isinstance(previous, ast.If) and not previous.orelse and tree.raw[start : start + 2] == b"if":
        yield Change(edits=(Edit(start=start, end=start + 2, text="elif"),), note="if becomes elif")


def _duplicate(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Repeat a simple statement."""
    assert isinstance(node, ast.stmt)
    lines = tree.line_span(node)
    if lines and isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and not is_docstring(node):
        edit = Edit(start=lines[1], end=lines[1], text=_line_text(tree, lines))
        yield Change(edits=(edit,), note=f"{shorten(tree.text(node))} is repeated")


def _in_loop(node: ast.AST, tree: PythonTree) -> bool:
    for parent in tree.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        if isinstance(parent, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


def _line_text(tree: PythonTree, lines: tuple[int, int]) -> str:
    text = tree.raw[lines[0] : lines[1]].decode("utf-8", "surrogatepass")
    return text if text.endswith("\n") else f"{text}\n"


def reindent(text: str, before: str, after: str) -> str:
    """Return lines with another indentation; lines without the old one stay as they are."""
    lines = text.splitlines(keepends=True)
    return "".join(after + line.removeprefix(before) if line.startswith(before) else line for line in lines)


SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
INSERTION_POINTS = (*SIMPLE, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Return)
FILL_METHODS = {"sequence": ("append",), "set": ("add",), "unknown": ("append", "add")}


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
                text = f"{indent}if {condition}:\n{indent}    return{value and ' '}{value}\n"
                yield Change(
                    edits=(Edit(start=start, end=start, text=text),),
                    note=f"if {condition}: return {value}".rstrip(),
                    weight=weight,
                )


def _guard_values(function: Function, tree: PythonTree) -> Iterator[tuple[str, float]]:
    """Yield `(value, weight)` for what a guard may return: the function's other values, then empty ones.

    In a generator, the only value is an empty text, for a bare `return`.
    """
    if any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) and tree.enclosing_function(n) is function
        for n in tree.nodes_of(function)
    ):
        yield "", 1.0
        return
    returned = [n.value for n in tree.nodes_of(function) if isinstance(n, ast.Return) and n.value is not None]
    plain = [tree.text(value) for value in returned if isinstance(value, (ast.Constant, ast.Name, ast.List))]
    parameters = {argument.arg for argument in function.args.args}
    own = [
        text for text in plain if text in parameters or not text.isidentifier() or text in ("True", "False")
    ]
    likely = [text for text in dict.fromkeys(own) if text]
    for number, text in enumerate(dict.fromkeys((*likely, "[]", "0", "None", "False", "True", "''", "1"))):
        if number < MAX_RETURN_VALUES:
            yield text, 1.0 if text in likely else 0.6


def _fill_container(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Put a variable into a local container that is not filled here."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    names = tree.scope_names(node)
    around = [function, *(parent for parent in tree.ancestors(function) if isinstance(parent, FUNCTIONS))]
    containers = _local_containers(around[-1], tree)
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
            value = node.value
            called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
            if isinstance(value, ast.List) or called in ("list", "deque"):
                containers[node.targets[0].id] = "sequence"
            elif isinstance(value, ast.Set) or called == "set":
                containers[node.targets[0].id] = "set"
            elif called[:1].isupper():
                containers[node.targets[0].id] = "unknown"
    return containers


def _add_assignment(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add an assignment such as `previous = current`, or a counter."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    names = tree.scope_names(node)
    line = node.end_lineno or node.lineno
    bound = names.bound_before(line)
    stored = [
        n.id for n in tree.nodes_of(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    for target in dict.fromkeys(name for name in stored if name in bound):
        for value in bound:
            if value != target:
                alike = names.kinds[target] == names.kinds[value] or "unknown" in (
                    names.kinds[target],
                    names.kinds[value],
                )
                yield from _insert_beside(node, tree, f"{target} = {value}", 0.9 if alike else 0.2)
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
    ends_function = block is function.body
    stored = [
        n.id for n in tree.nodes_of(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    values = [*dict.fromkeys(stored), *(a.arg for a in function.args.args), "True", "False", "None"]
    for value in values:
        yield from _insert_beside(node, tree, f"return {value}", 1.0 if ends_function else 0.4, before=False)


def _copy_statement(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Copy a statement of the same function."""
    assert isinstance(node, ast.stmt)
    function = tree.enclosing_function(node)
    if function is None:
        return
    others = [
        n for n in tree.nodes_of(function) if isinstance(n, SIMPLE) and n is not node and not is_docstring(n)
    ]
    others.sort(key=lambda other: abs(other.lineno - node.lineno))
    for other in others[:MAX_COPIED_STATEMENTS]:
        yield from _insert_beside(node, tree, tree.text(other), 0.8)


def _insert_beside(
    node: ast.stmt, tree: PythonTree, text: str, weight: float, *, before: bool = True
) -> Iterator[Change]:
    """Insert a line after a statement, and before it where it is the first of its block."""
    lines, indent = tree.line_span(node), tree.indent(node)
    if lines is None or indent.strip() or "\n" in text:
        return
    is_elif = isinstance(node, ast.If) and tree.raw[tree.span(node)[0] :].startswith(b"elif")
    if before and not is_elif and node is tree.enclosing_block(node)[0]:
        edit = Edit(start=lines[0], end=lines[0], text=f"{indent}{text}\n")
        yield Change(edits=(edit,), note=f"{shorten(text)} before line {node.lineno}", weight=weight)
    if not isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        newline = "" if tree.raw[lines[1] - 1 : lines[1]] == b"\n" else "\n"
        edit = Edit(start=lines[1], end=lines[1], text=f"{newline}{indent}{text}\n")
        where = f"after line {node.end_lineno}"
        yield Change(edits=(edit,), note=f"{shorten(text)} {where}", weight=weight)


OPERATORS = (
    PythonOperator(name="delete_statement", nodes=STATEMENT_NODES, changes=_delete),
    PythonOperator(name="move_statement", nodes=STATEMENT_NODES, changes=_move),
    PythonOperator(name="change_block", nodes=STATEMENT_NODES, changes=_change_block),
    PythonOperator(name="loop_control", nodes=STATEMENT_NODES, changes=_change_loop_control),
    PythonOperator(name="elif", nodes=(ast.If,), changes=_switch_elif),
    PythonOperator(name="duplicate_statement", nodes=STATEMENT_NODES, changes=_duplicate),
    PythonOperator(name="guard", nodes=FUNCTIONS, changes=_add_guard),
    PythonOperator(name="fill_container", nodes=INSERTION_POINTS, changes=_fill_container),
    PythonOperator(name="missing_assignment", nodes=INSERTION_POINTS, changes=_add_assignment),
    PythonOperator(name="missing_return", nodes=INSERTION_POINTS, changes=_add_return),
    PythonOperator(name="copied_statement", nodes=INSERTION_POINTS, changes=_copy_statement),
)
