"""Slips of people who learn the language: a loop over a number, a bare `return`, `else: return` in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import FUNCTIONS, Function, PythonTree, is_docstring
from suture.mutation.changes import Change, Operator, replace_with, shorten
from suture.mutation.python.operators.statements import indented
from suture.mutation.python.operators.undefined_names import BUILTINS, known_names
from suture.project.python_source.parsing import first_line

SIGNS = ("+", "-", "*", "//", "%", "/")
FILLED = {
    **dict.fromkeys(("append", "extend", "insert", "pop", "sort", "reverse"), ("[]",)),
    **dict.fromkeys(("appendleft", "popleft"), ("deque()", "[]")),
    **dict.fromkeys(("add", "discard", "remove"), ("set()", "[]")),
    **dict.fromkeys(("get", "items", "keys", "values", "setdefault", "update"), ("{}",)),
}
BEGINNINGS = ("0", "[]", "{}", '""', "set()", "None", "1", "False", "True")


def _iterated(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A loop over a number, or over values where places and values are meant."""
    assert isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
    text = view.text(node.iter)
    called = node.iter.func if isinstance(node.iter, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else ""
    if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
        if name not in ("enumerate", "zip"):
            for form, weight in ((f"enumerate({text})", 1.0), (f"{text}.items()", 0.8)):
                yield replace_with(view, node.iter, form, weight)
        return
    if name in ("len", "int", "abs", "min", "max", "sum"):
        yield replace_with(view, node.iter, f"range({text})", 1.0)
    elif not name and isinstance(node.iter, (ast.Name, ast.Attribute, ast.BinOp, ast.Constant)):
        for form, weight in ((f"range({text})", 0.5), (f"range(len({text}))", 0.5)):
            yield replace_with(view, node.iter, form, weight)
    elif name == "range" and isinstance(node.iter, ast.Call) and len(node.iter.args) == 1:
        argument = node.iter.args[0]
        if isinstance(argument, (ast.Name, ast.Attribute)):
            yield replace_with(view, argument, f"len({view.text(argument)})", 0.6)
            yield replace_with(view, node.iter, view.text(argument), 0.3)


def _given_back(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A `return` without a value, in a function that should give one."""
    assert isinstance(node, ast.Return)
    if node.value is not None:
        return
    end = view.span(node)[1]
    names = view.scope_names(node)
    for value, fit in (*names.fitting("unknown", node.lineno), ("True", 0.6), ("False", 0.6)):
        edit = Edit(start=end, end=end, text=f" {value}")
        yield Change(edits=(edit,), note=f"return becomes return {value}", weight=fit)


def _at_the_end(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """What lacks behind a loop that did not find anything: the length, nothing, or a sign of that."""
    assert isinstance(node, FUNCTIONS)
    last = node.body[-1]
    lines = view.line_span(last)
    if lines is None or isinstance(last, (ast.Return, ast.Raise)) or not _returns(node):
        return
    indent = view.indent(last)
    newline = "" if view.raw[lines[1] - 1 : lines[1]] == b"\n" else "\n"
    names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
    values = [*(f"len({name})" for name in reversed(names)), "0", "-1", "[]", "False", "None"]
    for number, value in enumerate(values):
        edit = Edit(start=lines[1], end=lines[1], text=f"{newline}{indent}return {value}\n")
        yield Change(edits=(edit,), note=f"return {value} at the end", weight=1.0 - 0.05 * number)


def _returns(function: Function) -> bool:
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(function))


def _begun(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A name that is read, or counted up, before anything binds it: it begins where the function does."""
    assert isinstance(node, ast.Name)
    function = view.enclosing_function(node)
    if function is None or node.id in BUILTINS:
        return
    parent = view.parent(node)
    counted = isinstance(parent, ast.AugAssign) and parent.target is node
    if not counted and (not isinstance(node.ctx, ast.Load) or node.id in known_names(view)):
        return
    stored = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)
    ]
    if counted and any(not isinstance(view.parent(n), ast.AugAssign) for n in stored):
        return
    first = next((statement for statement in function.body if not is_docstring(statement)), None)
    if first is None or view.line_span(first) is None:
        return
    start = view.offset(first_line(first), 0)
    filled = FILLED.get(parent.attr, ()) if isinstance(parent, ast.Attribute) else ()
    for number, value in enumerate(dict.fromkeys((*filled, *BEGINNINGS))):
        edit = Edit(start=start, end=start, text=f"{view.indent(first)}{node.id} = {value}\n")
        weight = (1.0 if filled or counted else 0.6) * 0.9**number
        yield Change(edits=(edit,), note=f"{node.id} begins as {value}", weight=weight)


def _given_up_early(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`else: return` within a loop, which ends it at the first element: it goes behind the loop."""
    assert isinstance(node, ast.If)
    block, loop = view.enclosing_block(node), view.parent(node)
    if not node.orelse or not isinstance(loop, (ast.For, ast.While)) or node is not block[-1]:
        return
    ending = node.orelse[-1]
    whole, own, kept = view.line_span(loop), view.line_span(ending), view.line_span(node.body[-1])
    if not isinstance(ending, ast.Return) or len(node.orelse) != 1 or not (whole and own and kept):
        return
    text = view.raw[own[0] : own[1]].decode("utf-8", "surrogatepass")
    moved = indented(text, view.indent(ending), view.indent(loop))
    newline = "" if view.raw[whole[1] - 1 : whole[1]] == b"\n" else "\n"
    if own[1] == whole[1]:
        edits: tuple[Edit, ...] = (Edit(start=kept[1], end=own[1], text=moved),)
    else:
        gone = Edit(start=kept[1], end=own[1], text="")
        edits = (gone, Edit(start=whole[1], end=whole[1], text=f"{newline}{moved}"))
    yield Change(edits=edits, note=f"{shorten(view.text(ending))} goes behind the loop", weight=1.0)


def _one_more(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A list that is to take one element: `found += x`, and `found = found.append(x)`."""
    assert isinstance(node, (ast.AugAssign, ast.Assign))
    start, end = view.span(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        if isinstance(node.value, (ast.List, ast.Tuple, ast.Constant)):
            return
        target, value = view.text(node.target), view.text(node.value)
        for form, weight in ((f"{target}.append({value})", 1.0), (f"{target} += [{value}]", 0.8)):
            edit = Edit(start=start, end=end, text=form)
            yield Change(edits=(edit,), note=f"{shorten(view.text(node))} becomes {shorten(form)}", weight=weight)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and view.text(function.value) == view.text(node.targets[0]):
            edit = Edit(start=start, end=end, text=view.text(node.value))
            yield Change(edits=(edit,), note=f"{shorten(view.text(node.value))} is not kept", weight=1.0)


def _worked_out(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A function or method of two values that nobody wrote: what it was to work out of them."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 2 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return
    if not _is_nobodys(node.func, view):
        return
    one, other = (_factor(argument, view) for argument in node.args)
    held = isinstance(view.parent(node), (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript))
    for number, sign in enumerate(SIGNS):
        text = f"{one} {sign} {other}"
        yield replace_with(view, node, f"({text})" if held else text, 1.0 - 0.05 * number)


def _is_nobodys(function: ast.expr, view: PythonTree) -> bool:
    if isinstance(function, ast.Name):
        return function.id not in known_names(view) and function.id not in BUILTINS
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = function.value.id
        return owner in ("self", "cls") and function.attr not in view.functions
    return False


def _factor(node: ast.expr, view: PythonTree) -> str:
    text = view.text(node)
    simple = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)
    return text if isinstance(node, simple) else f"({text})"


LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
OPERATORS = (
    Operator(name="iterated", prior=0.6, nodes=LOOPS, changes=_iterated),
    Operator(name="value given back", prior=0.6, nodes=(ast.Return,), changes=_given_back),
    Operator(name="return at the end", prior=0.35, nodes=FUNCTIONS, changes=_at_the_end),
    Operator(name="name begins", prior=0.8, nodes=(ast.Name,), changes=_begun),
    Operator(name="else of a loop", prior=0.6, nodes=(ast.If,), changes=_given_up_early),
    Operator(name="one more element", prior=0.45, nodes=(ast.AugAssign, ast.Assign), changes=_one_more),
    Operator(name="worked out", prior=0.6, nodes=(ast.Call,), changes=_worked_out),
)
