"""Whole statements: deleted, doubled, moved, in the wrong block; loops and their exits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, is_docstring
from suture.mutation.changes import Change, Operator, shorten

STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.If, ast.For, ast.While),
    *(ast.Break, ast.Continue, ast.Raise, ast.Delete, ast.Try, ast.With, ast.Assert),
)
EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
NEAR = 4
"""Statements in each direction past which one is moved; the ends of its block are tried as well."""


def _deleted(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.stmt)
    lines = view.line_span(node)
    if lines is None or is_docstring(node):
        return
    alone = len(view.enclosing_block(node)) == 1
    text = f"{view.indent(node)}pass\n" if alone else ""
    size = len(ast.unparse(node).splitlines())
    yield Change(
        edits=(Edit(start=lines[0], end=lines[1], text=text),),
        note=f"{shorten(view.text(node))} goes",
        weight=1.0 if size == 1 else 0.5,
    )
    if isinstance(node, ast.If) and not node.orelse and node.body:
        yield from _unguarded(node, view)


def _unguarded(node: ast.If, view: PythonTree) -> Iterator[Change]:
    """The body of an `if`, whatever its condition."""
    lines, first, last = view.line_span(node), view.line_span(node.body[0]), view.line_span(node.body[-1])
    if lines and first and last:
        body = view.raw[first[0] : last[1]].decode("utf-8", "surrogatepass")
        text = indented(body, view.indent(node.body[0]), view.indent(node))
        edit = Edit(start=lines[0], end=lines[1], text=text)
        yield Change(edits=(edit,), note=f"no longer only if {shorten(view.text(node.test))}", weight=0.6)


def _moved(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A statement changes places with the next, or goes a little further, or to an end of its block."""
    assert isinstance(node, ast.stmt)
    block = view.enclosing_block(node)
    at = next((n for n, other in enumerate(block) if other is node), 0)
    own = view.line_span(node)
    if own is None or is_docstring(node):
        return
    text = _whole(view, own)
    last = len(block) - 1
    places = [*range(at + 1, at + 1 + NEAR), last, *range(at - 2, at - 2 - NEAR, -1), 0]
    for to in dict.fromkeys(to for to in places if 0 <= to <= last and to not in (at - 1, at)):
        place = view.line_span(block[to])
        if place is None or is_docstring(block[to]):
            continue
        behind = to > at
        if isinstance(block[to], EXITS) if behind else isinstance(node, EXITS):
            continue  # what comes behind it would never run
        where = place[1] if behind else place[0]
        edits = (Edit(start=own[0], end=own[1], text=""), Edit(start=where, end=where, text=text))
        note = f"{shorten(view.text(node))} goes {'behind' if behind else 'before'} line {block[to].lineno}"
        if not (behind and view.raw[place[1] - 1 : place[1]] != b"\n"):
            yield Change(edits=edits, note=note, weight=1.0 if to == at + 1 else 0.5)


def _rehung(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """The last statement of a block leaves it; the statement behind a block enters it."""
    assert isinstance(node, ast.stmt)
    block, parent = view.enclosing_block(node), view.parent(node)
    at = next((n for n, other in enumerate(block) if other is node), 0)
    lines = view.line_span(node)
    if lines is None:
        return
    inner, text = view.indent(node), _whole(view, lines)
    within = isinstance(parent, ast.stmt) and not isinstance(parent, (*FUNCTIONS, ast.ClassDef))
    end = view.line_span(parent) if within and isinstance(parent, ast.stmt) else None
    if node is block[-1] and len(block) > 1 and isinstance(parent, ast.stmt) and end is not None:
        shallower = indented(text, inner, view.indent(parent))
        edits: tuple[Edit, ...] = (Edit(start=lines[0], end=lines[1], text=shallower),)
        if end[1] != lines[1]:
            gone = Edit(start=lines[0], end=lines[1], text="")
            edits = (gone, Edit(start=end[1], end=end[1], text=shallower))
        yield Change(edits=edits, note=f"{shorten(view.text(node))} leaves its block")
    before = block[at - 1] if at else None
    if isinstance(before, (ast.If, ast.For, ast.While, ast.With)):
        body = getattr(before, "orelse", None) or before.body
        if isinstance(body[-1], EXITS):
            return  # it would never run there
        deeper = indented(text, inner, view.indent(body[-1]))
        edit = Edit(start=lines[0], end=lines[1], text=deeper)
        yield Change(edits=(edit,), note=f"{shorten(view.text(node))} enters the block before it")


def _loops(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`while` and `if`, `break` and `continue`, an exit that lacks."""
    assert isinstance(node, ast.stmt)
    start, end = view.span(node)
    if isinstance(node, (ast.Break, ast.Continue)):
        for other in ("break", "continue", "return", "pass"):
            if other != view.text(node):
                edit = Edit(start=start, end=end, text=other)
                yield Change(edits=(edit,), note=f"{view.text(node)} becomes {other}", weight=1.0)
    elif isinstance(node, ast.Return) and node.value is None and _in_loop(node, view):
        for other in ("break", "continue"):
            edit = Edit(start=start, end=end, text=other)
            yield Change(edits=(edit,), note=f"return becomes {other}", weight=1.0)
    elif isinstance(node, (ast.If, ast.While)) and not node.orelse and view.raw[start : start + 2] != b"el":
        old, new = ("if", "while") if isinstance(node, ast.If) else ("while", "if")
        if view.raw[start:end].startswith(old.encode()):
            edit = Edit(start=start, end=start + len(old), text=new)
            yield Change(edits=(edit,), note=f"{old} becomes {new}", weight=0.5)
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) and _in_loop(node, view):
        lines = view.line_span(node)
        if lines and node is view.enclosing_block(node)[-1]:
            for exit_word in ("break", "continue"):
                edit = Edit(start=lines[1], end=lines[1], text=f"{view.indent(node)}{exit_word}\n")
                yield Change(edits=(edit,), note=f"{exit_word} behind {shorten(view.text(node))}", weight=0.5)


def _elif(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """An `elif` that should be an `if`, and an `if` that should be an `elif`."""
    assert isinstance(node, ast.If)
    start, _ = view.span(node)
    if view.raw[start : start + 4] == b"elif":
        yield Change(edits=(Edit(start=start, end=start + 4, text="if"),), note="elif becomes if")
        return
    block = view.enclosing_block(node)
    at = next((n for n, other in enumerate(block) if other is node), 0)
    before = block[at - 1] if at else None
    if isinstance(before, ast.If) and not before.orelse and view.raw[start : start + 2] == b"if":
        yield Change(edits=(Edit(start=start, end=start + 2, text="elif"),), note="if becomes elif")


def _doubled(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.stmt)
    lines = view.line_span(node)
    if lines and isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and not is_docstring(node):
        edit = Edit(start=lines[1], end=lines[1], text=_whole(view, lines))
        yield Change(edits=(edit,), note=f"{shorten(view.text(node))} twice")


def _in_loop(node: ast.AST, view: PythonTree) -> bool:
    for parent in view.ancestors(node):
        if isinstance(parent, FUNCTIONS):
            return False
        if isinstance(parent, (ast.For, ast.While, ast.AsyncFor)):
            return True
    return False


def _whole(view: PythonTree, lines: tuple[int, int]) -> str:
    text = view.raw[lines[0] : lines[1]].decode("utf-8", "surrogatepass")
    return text if text.endswith("\n") else f"{text}\n"


def indented(text: str, before: str, after: str) -> str:
    """Lines with another indentation; those that did not have the first stay as they are."""
    lines = text.splitlines(keepends=True)
    return "".join(after + line.removeprefix(before) if line.startswith(before) else line for line in lines)


OPERATORS = (
    Operator(name="statement goes", prior=0.4, nodes=STATEMENTS, changes=_deleted),
    Operator(name="statement moves", prior=0.28, nodes=STATEMENTS, changes=_moved),
    Operator(name="statement's block", prior=0.45, nodes=STATEMENTS, changes=_rehung),
    Operator(name="loop", prior=0.4, nodes=STATEMENTS, changes=_loops),
    Operator(name="elif", prior=0.4, nodes=(ast.If,), changes=_elif),
    Operator(name="statement twice", prior=0.1, nodes=STATEMENTS, changes=_doubled),
)
