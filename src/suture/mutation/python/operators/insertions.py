"""Statements that lack: a guard or base case, a `return`, an assignment, something put into a container."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import FUNCTIONS, Function, PythonTree, is_docstring
from suture.mutation.changes import Change, Operator, shorten
from suture.project.python_source.parsing import first_line

SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
ANYTHING = (*SIMPLE, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Return)
INTO = {"sequence": ("append",), "set": ("add",), "unknown": ("append", "add")}
MOST_SOURCES = 8
"""Statements of the function that one place is offered a copy of, the nearest first."""
MOST_ANSWERS = 8
"""Values that a new `return` may give, the function's own first."""


def _guard(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A base case, or a guard against `None` and empty, at the start of a function."""
    assert isinstance(node, FUNCTIONS)
    body = [statement for statement in node.body if not is_docstring(statement)]
    if not body or view.line_span(body[0]) is None:
        return
    start, indent = view.offset(first_line(body[0]), 0), view.indent(body[0])
    parameters = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
    kinds = view.scope_names(body[0]).kinds
    for name in parameters:
        numeric = kinds.get(name) == "number"
        tests = (
            (f"{name} <= 0", f"{name} == 0", f"{name} <= 1")
            if numeric
            else (f"not {name}", f"{name} is None")
        )
        for test in tests:
            for answer, weight in _answers(node, view):
                text = f"{indent}if {test}:\n{indent}    return{answer and ' '}{answer}\n"
                yield Change(
                    edits=(Edit(start=start, end=start, text=text),),
                    note=f"if {test}: return {answer}".rstrip(),
                    weight=weight,
                )


def _answers(function: Function, view: PythonTree) -> Iterator[tuple[str, float]]:
    """What a guard could return: what the function returns elsewhere, then the empty values."""
    if any(
        isinstance(n, (ast.Yield, ast.YieldFrom)) and view.enclosing_function(n) is function
        for n in view.nodes_of(function)
    ):
        yield "", 1.0
        return
    returned = [n.value for n in view.nodes_of(function) if isinstance(n, ast.Return) and n.value is not None]
    plain = [view.text(value) for value in returned if isinstance(value, (ast.Constant, ast.Name, ast.List))]
    parameters = {argument.arg for argument in function.args.args}
    own = [
        text for text in plain if text in parameters or not text.isidentifier() or text in ("True", "False")
    ]
    likely = [text for text in dict.fromkeys(own) if text]
    for number, text in enumerate(dict.fromkeys((*likely, "[]", "0", "None", "False", "True", "''", "1"))):
        if number < MOST_ANSWERS:
            yield text, 1.0 if text in likely else 0.6


def _put_in(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A local container that is read and never filled, or not filled here."""
    assert isinstance(node, ast.stmt)
    function = view.enclosing_function(node)
    if function is None:
        return
    names = view.scope_names(node)
    around = [function, *(parent for parent in view.ancestors(function) if isinstance(parent, FUNCTIONS))]
    made = _containers(around[-1], view)
    for container, kind in made.items():
        if names.bound_at.get(container, 0) > node.lineno:
            continue
        for method in INTO.get(kind, ()):
            for value, fit in names.fitting("unknown", node.end_lineno or node.lineno):
                if value != container and value not in made:
                    yield from _beside(node, view, f"{container}.{method}({value})", fit)


def _containers(function: Function, view: PythonTree) -> dict[str, str]:
    """Local variables that begin as an empty or small container, and parameters used as one."""
    made: dict[str, str] = {}
    for node in view.nodes_of(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
            if isinstance(value, ast.List) or called in ("list", "deque"):
                made[node.targets[0].id] = "sequence"
            elif isinstance(value, ast.Set) or called == "set":
                made[node.targets[0].id] = "set"
            elif called[:1].isupper():
                made[node.targets[0].id] = "unknown"
    return made


def _assignment(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`previous = current`, left out."""
    assert isinstance(node, ast.stmt)
    function = view.enclosing_function(node)
    if function is None:
        return
    names = view.scope_names(node)
    line = node.end_lineno or node.lineno
    bound = names.bound_before(line)
    stored = [
        n.id for n in view.nodes_of(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    for target in dict.fromkeys(name for name in stored if name in bound):
        for value in bound:
            if value != target:
                alike = names.kinds[target] == names.kinds[value] or "unknown" in (
                    names.kinds[target],
                    names.kinds[value],
                )
                yield from _beside(node, view, f"{target} = {value}", 0.9 if alike else 0.2)
        if names.kinds.get(target) == "number":
            for sign in ("+=", "-="):
                yield from _beside(node, view, f"{target} {sign} 1", 0.6)


def _return(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A `return` that lacks at the end of a block, of a variable that the function made."""
    assert isinstance(node, ast.stmt)
    function = view.enclosing_function(node)
    block = view.enclosing_block(node)
    if function is None or node is not block[-1] or isinstance(node, ast.Return):
        return
    ends_function = block is function.body
    stored = [
        n.id for n in view.nodes_of(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    values = [*dict.fromkeys(stored), *(a.arg for a in function.args.args), "True", "False", "None"]
    for value in values:
        yield from _beside(node, view, f"return {value}", 1.0 if ends_function else 0.4, before=False)


def _copied(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A statement that the function has elsewhere, as it is."""
    assert isinstance(node, ast.stmt)
    function = view.enclosing_function(node)
    if function is None:
        return
    others = [
        n for n in view.nodes_of(function) if isinstance(n, SIMPLE) and n is not node and not is_docstring(n)
    ]
    others.sort(key=lambda other: abs(other.lineno - node.lineno))
    for other in others[:MOST_SOURCES]:
        yield from _beside(node, view, view.text(other), 0.8)


def _beside(node: ast.stmt, view: PythonTree, text: str, weight: float, *, before: bool = True) -> Iterator[Change]:
    """A new line behind a statement, and before it where it is the first of its block."""
    lines, indent = view.line_span(node), view.indent(node)
    if lines is None or indent.strip() or "\n" in text:
        return
    is_elif = isinstance(node, ast.If) and view.raw[view.span(node)[0] :].startswith(b"elif")
    if before and not is_elif and node is view.enclosing_block(node)[0]:
        edit = Edit(start=lines[0], end=lines[0], text=f"{indent}{text}\n")
        yield Change(edits=(edit,), note=f"{shorten(text)} before line {node.lineno}", weight=weight)
    if not isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        newline = "" if view.raw[lines[1] - 1 : lines[1]] == b"\n" else "\n"
        edit = Edit(start=lines[1], end=lines[1], text=f"{newline}{indent}{text}\n")
        where = f"behind line {node.end_lineno}"
        yield Change(edits=(edit,), note=f"{shorten(text)} {where}", weight=weight)


OPERATORS = (
    Operator(name="guard", prior=0.35, nodes=FUNCTIONS, changes=_guard),
    Operator(name="put into", prior=0.3, nodes=ANYTHING, changes=_put_in),
    Operator(name="lacking assignment", prior=0.15, nodes=ANYTHING, changes=_assignment),
    Operator(name="lacking return", prior=0.4, nodes=ANYTHING, changes=_return),
    Operator(name="copied statement", prior=0.18, nodes=ANYTHING, changes=_copied),
)
