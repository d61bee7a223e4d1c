"""Calls: wrong arguments, a call that lacks around a value or is too much; displays; generators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import ValueKind, guess_kind
from suture.mutation.python.python_tree import PythonTree, is_docstring
from suture.mutation.changes import Change, Operator, replace_with, shorten

AROUND: dict[ValueKind, tuple[str, ...]] = {
    "number": ("abs", "int", "str", "float", "round"),
    "sequence": ("list", "sorted", "set", "len", "reversed", "tuple", "sum"),
    "text": ("list", "len", "int", "str", "sorted", "repr"),
    "set": ("list", "sorted", "len"),
    "mapping": ("list", "dict", "sorted", "len"),
    "callable": (),
    "unknown": ("list", "len", "abs", "sorted", "str", "int", "set", "tuple"),
}
FREELY = (*(ast.Return, ast.Assign, ast.AugAssign, ast.Compare, ast.Call, ast.For), *(ast.BinOp, ast.keyword))
NO_ANSWER = (ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)
MOST_WIDE = 6
"""Arguments of which each pair is swapped."""


def _arguments(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.Call)
    arguments = node.args
    if len(arguments) <= MOST_WIDE:
        for left in range(len(arguments)):
            for right in range(left + 1, len(arguments)):
                one, other = arguments[left], arguments[right]
                edits = (view.replacement(one, view.text(other)), view.replacement(other, view.text(one)))
                note = f"arguments {view.text(one)} and {view.text(other)} change places"
                if view.text(one) != view.text(other):
                    yield Change(edits=edits, note=note, weight=1.0 if right == left + 1 else 0.7)
    for number, argument in enumerate(arguments if not node.keywords else ()):
        yield _without(view, arguments, number, f"argument {view.text(argument)} goes")


def _without(view: PythonTree, items: list[ast.expr], number: int, note: str) -> Change:
    """One item of a list goes, and a comma with it."""
    start, end = view.span(items[number])
    if number + 1 < len(items):
        end = view.span(items[number + 1])[0]
    elif number:
        start = view.span(items[number - 1])[1]
    return Change(edits=(Edit(start=start, end=end, text=""),), note=note, weight=0.4)


def _missing_argument(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A variable more, where the callee is known to take more or is not known at all."""
    assert isinstance(node, ast.Call)
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    callee = view.functions.get(name)
    if callee is None and name not in ("round", "int", "sorted", "sum", "pow", "range", "get", "pop", "zip"):
        return
    if callee is not None and len(node.args) >= len(callee.args.args):
        return
    names = view.scope_names(node)
    given = {view.text(argument) for argument in node.args}
    end = view.span(node)[1] - 1
    if node.keywords or view.raw[end : end + 1] != b")" or view.raw[:end].rstrip().endswith(b","):
        return
    if node.args and isinstance(node.args[-1], ast.GeneratorExp):
        return  # it shares its parentheses with the call
    near = [(other, fit) for other, fit in names.fitting("unknown", view.enclosing_statement(node).lineno)]
    for other, fit in [*near, ("0", 0.5), ("1", 0.5), ("2", 0.4)]:
        if other not in given:
            text = f", {other}" if node.args else other
            edit = Edit(start=end, end=end, text=text)
            yield Change(edits=(edit,), note=f"{name}() takes {other} too", weight=fit)


def _around(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A value that lacks a call around it, or a copy."""
    assert isinstance(node, ast.expr)
    parent = view.parent(node)
    if not isinstance(parent, FREELY) or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return
    if isinstance(parent, ast.Call) and node is parent.func:
        return
    if isinstance(node, ast.Name) and node.id in view.functions:
        return
    text, kind = view.text(node), guess_kind(node, view.scope_names(node))
    for number, name in enumerate(AROUND[kind]):
        if not text.startswith(f"{name}("):
            yield replace_with(view, node, f"{name}({text})", (1.0 if kind != "unknown" else 0.7) - 0.08 * number)
    if kind in ("sequence", "set", "mapping", "unknown") and isinstance(node, (ast.Name, ast.Attribute)):
        yield replace_with(view, node, f"{text}.copy()", 0.7)
    if kind in ("number", "unknown"):
        for bound in ("max(0, {})", "min(0, {})", "max(1, {})"):
            yield replace_with(view, node, bound.format(text), 0.7 if "0" in bound else 0.4)


def _within(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A call around a value that should not be there; a function that calls itself mostly means to."""
    assert isinstance(node, ast.Call)
    function = view.enclosing_function(node)
    recursive = function is not None and view.text(node.func).rpartition(".")[2] == function.name
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            weight = 1.0 if len(node.args) == 1 else 0.6
            yield replace_with(view, node, view.text(argument), 0.4 * weight if recursive else weight)
    if isinstance(node.func, ast.Attribute):
        yield replace_with(view, node, view.text(node.func.value), 0.6)


def _accumulated(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`best = x` where the better of both is to be kept; `d[k] = x` where x joins what is there."""
    assert isinstance(node, ast.Assign)
    if len(node.targets) != 1 or isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return
    target, value = view.text(node.targets[0]), view.text(node.value)
    kind = guess_kind(node.value, view.scope_names(node))
    if kind in ("number", "unknown"):
        for name in ("max", "min"):
            yield replace_with(view, node.value, f"{name}({target}, {value})", 1.0)
    start, end = view.span(node)
    sign = view.raw.find(b"=", view.span(node.targets[0])[1])
    for other, weight in (("+=", 0.8), ("-=", 0.45), ("*=", 0.3)):
        edit = Edit(start=sign, end=sign + 1, text=other)
        yield Change(edits=(edit,), note=f"= becomes {other} in {shorten(view.text(node))}", weight=weight)
    if isinstance(node.value, ast.UnaryOp) and isinstance(node.value.op, (ast.UAdd, ast.USub)):
        mark = "+" if isinstance(node.value.op, ast.UAdd) else "-"  # `x =+ 1`
        text = f"{target} {mark}= {view.text(node.value.operand)}"
        yield Change(edits=(Edit(start=start, end=end, text=text),), note=text, weight=1.0)
    if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
        edit = Edit(start=start, end=end, text=f"{value} = {target}")
        yield Change(edits=(edit,), note=f"{value} = {target}, the other way round", weight=0.4)
    for method in ("update", "append", "extend", "add"):
        likely = isinstance(node.targets[0], ast.Subscript) and kind != "number"
        edit = Edit(start=start, end=end, text=f"{target}.{method}({value})")
        yield Change(edits=(edit,), note=f"{target} = becomes .{method}()", weight=0.8 if likely else 0.3)


def _display(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A wrong initial value: an empty display that should hold something, or the reverse."""
    texts: list[tuple[str, float]] = []
    if isinstance(node, ast.List) and isinstance(node.ctx, ast.Load):
        if node.elts:
            texts += [("[]", 0.7), (f"[{view.text(node)}]", 0.4)]
        else:
            line = view.enclosing_statement(node).lineno
            near = view.scope_names(node).fitting("unknown", line)
            texts += [("[[]]", 0.9), *((f"[{name}]", fit) for name, fit in near), ("[0]", 0.5), ("None", 0.3)]
            texts += [("{}", 0.3), ("set()", 0.4)]
    elif isinstance(node, ast.Dict) and not node.keys:
        texts += [("[]", 0.5), ("set()", 0.5), ("None", 0.3)]
    elif isinstance(node, ast.Constant) and node.value is None:
        parameters = view.scope_names(node).parameters
        texts += [("[]", 0.6), ("0", 0.5), ("{}", 0.4), ("False", 0.4), ("''", 0.4)]
        texts += [(name, 0.5) for name in parameters]
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) == 2:
        one, other = (view.text(element) for element in node.elts)
        edits = (view.replacement(node.elts[0], other), view.replacement(node.elts[1], one))
        yield Change(edits=edits, note=f"{one} and {other} change places", weight=0.8)
    if isinstance(node, ast.expr):
        for text, weight in texts:
            yield replace_with(view, node, text, weight)


def _generator(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`yield` and `yield from`, `await` and none, `return` of a call and none."""
    if isinstance(node, ast.Yield) and node.value is not None:
        value = view.text(node.value)
        yield replace_with(view, node, f"yield from {value}", 1.0)
        if isinstance(node.value, ast.Call):
            for argument in node.value.args:
                yield replace_with(view, node, f"yield {view.text(argument)}", 1.0)
    elif isinstance(node, ast.YieldFrom):
        value = view.text(node.value)
        yield replace_with(view, node, f"yield {value}", 1.0)
    elif isinstance(node, ast.Await):
        yield replace_with(view, node, view.text(node.value), 0.5)
    elif _may_wait(node, view) and isinstance(node, ast.Call):
        yield replace_with(view, node, f"(await {view.text(node)})", 1.0)


def _may_wait(node: ast.AST, view: PythonTree) -> bool:
    waits = isinstance(view.parent(node), ast.Await)
    return isinstance(view.enclosing_function(node), ast.AsyncFunctionDef) and not waits


def _returned(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A value that is computed and not returned, and one that is returned too early."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
        yield from _meant_as_assignment(node.value, view)
    if isinstance(node, ast.Expr) and not isinstance(node.value, NO_ANSWER) and not is_docstring(node):
        start, _ = view.span(node)
        yield Change(
            edits=(Edit(start=start, end=start, text="return "),),
            note=f"{view.text(node)} is returned",
            weight=1.0 if not _is_method(node.value) else 0.5,
        )
        if isinstance(node.value, ast.Call) and _is_method(node.value):
            owner = node.value.func
            assert isinstance(owner, ast.Attribute)
            edit = Edit(start=start, end=start, text=f"{view.text(owner.value)} = ")
            yield Change(edits=(edit,), note=f"{view.text(node)} is kept", weight=0.7)
    elif isinstance(node, ast.Return) and node.value is not None:
        start, _ = view.span(node)
        edit = Edit(start=start, end=view.span(node.value)[0], text="")
        yield Change(edits=(edit,), note=f"{view.text(node)} returns nothing yet", weight=0.3)


def _meant_as_assignment(node: ast.Compare, view: PythonTree) -> Iterator[Change]:
    """`x == 1` as a statement."""
    if len(node.ops) == 1 and isinstance(node.left, (ast.Name, ast.Attribute, ast.Subscript)):
        edit = Edit(start=view.span(node.left)[1], end=view.span(node.comparators[0])[0], text=" = ")
        yield Change(edits=(edit,), note=f"{shorten(view.text(node))} is an assignment", weight=1.0)


def _is_method(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


VALUES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.List, ast.GeneratorExp)
OPERATORS = (
    Operator(name="arguments", prior=0.65, nodes=(ast.Call,), changes=_arguments),
    Operator(name="missing argument", prior=0.25, nodes=(ast.Call,), changes=_missing_argument),
    Operator(name="call around", prior=0.28, nodes=VALUES, changes=_around),
    Operator(name="call within", prior=0.45, nodes=(ast.Call,), changes=_within),
    Operator(name="accumulation", prior=0.5, nodes=(ast.Assign,), changes=_accumulated),
    Operator(
        name="display", prior=0.5, nodes=(ast.List, ast.Dict, ast.Constant, ast.Tuple), changes=_display
    ),
    Operator(
        name="generator", prior=0.6, nodes=(ast.Yield, ast.YieldFrom, ast.Await, ast.Call), changes=_generator
    ),
    Operator(name="returned", prior=0.5, nodes=(ast.Expr, ast.Return), changes=_returned),
)
