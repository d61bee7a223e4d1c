"""Mistakes of beginners, such as a loop over a number, a bare `return`, or an `else: return` in a loop.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.python_operator import PythonOperator, replace_with
from suture.mutation.python.operators.statements import reindent
from suture.mutation.python.operators.undefined_names import BUILTINS, known_names
from suture.mutation.python.python_tree import FUNCTIONS, Function, PythonTree, is_docstring
from suture.project.python_source.parsing import first_line

ARITHMETIC_SIGNS = ("+", "-", "*", "//", "%", "/")
INITIAL_BY_METHOD = {
    **dict.fromkeys(("append", "extend", "insert", "pop", "sort", "reverse"), ("[]",)),
    **dict.fromkeys(("appendleft", "popleft"), ("deque()", "[]")),
    **dict.fromkeys(("add", "discard", "remove"), ("set()", "[]")),
    **dict.fromkeys(("get", "items", "keys", "values", "setdefault", "update"), ("{}",)),
}
INITIAL_VALUES = ("0", "[]", "{}", '""', "set()", "None", "1", "False", "True")


def _change_iteration(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Iterate over a range instead of a number, or over indices and values instead of values."""
    assert isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
    text = tree.text(node.iter)
    called = node.iter.func if isinstance(node.iter, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else ""
    if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
        if name not in ("enumerate", "zip"):
            for form, weight in ((f"enumerate({text})", 1.0), (f"{text}.items()", 0.8)):
                yield replace_with(tree, node.iter, form, weight)
        return
    if name in ("len", "int", "abs", "min", "max", "sum"):
        yield replace_with(tree, node.iter, f"range({text})", 1.0)
    elif not name and isinstance(node.iter, (ast.Name, ast.Attribute, ast.BinOp, ast.Constant)):
        for form, weight in ((f"range({text})", 0.5), (f"range(len({text}))", 0.5)):
            yield replace_with(tree, node.iter, form, weight)
    elif name == "range" and isinstance(node.iter, ast.Call) and len(node.iter.args) == 1:
        argument = node.iter.args[0]
        if isinstance(argument, (ast.Name, ast.Attribute)):
            yield replace_with(tree, argument, f"len({tree.text(argument)})", 0.6)
            yield replace_with(tree, node.iter, tree.text(argument), 0.3)


def _add_return_value(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Give a bare `return` a value."""
    assert isinstance(node, ast.Return)
    if node.value is not None:
        return
    end = tree.span(node)[1]
    names = tree.scope_names(node)
    for value, fit in (*names.fitting("unknown", node.lineno), ("True", 0.6), ("False", 0.6)):
        edit = Edit(start=end, end=end, text=f" {value}")
        yield Change(edits=(edit,), note=f"return becomes return {value}", weight=fit)


def _add_final_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a `return` at the end of a function, for the case that its loop finds nothing."""
    assert isinstance(node, FUNCTIONS)
    last = node.body[-1]
    lines = tree.line_span(last)
    if lines is None or isinstance(last, (ast.Return, ast.Raise)) or not _returns_value(node):
        return
    indent = tree.indent(last)
    newline = "" if tree.raw[lines[1] - 1 : lines[1]] == b"\n" else "\n"
    names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
    values = [*(f"len({name})" for name in reversed(names)), "0", "-1", "[]", "False", "None"]
    for number, value in enumerate(values):
        edit = Edit(start=lines[1], end=lines[1], text=f"{newline}{indent}return {value}\n")
        yield Change(edits=(edit,), note=f"return {value} at the end", weight=1.0 - 0.05 * number)


def _returns_value(function: Function) -> bool:
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(function))


def _initialise(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Initialise, at the start of the function, a name that is read or counted up before it is bound."""
    assert isinstance(node, ast.Name)
    function = tree.enclosing_function(node)
    if function is None or node.id in BUILTINS:
        return
    parent = tree.parent(node)
    counted = isinstance(parent, ast.AugAssign) and parent.target is node
    if not counted and (not isinstance(node.ctx, ast.Load) or node.id in known_names(tree)):
        return
    stored = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Name) and n.id == node.id and isinstance(n.ctx, ast.Store)
    ]
    if counted and any(not isinstance(tree.parent(n), ast.AugAssign) for n in stored):
        return
    first = next((statement for statement in function.body if not is_docstring(statement)), None)
    if first is None or tree.line_span(first) is None:
        return
    start = tree.offset(first_line(first), 0)
    fill_placeholders = INITIAL_BY_METHOD.get(parent.attr, ()) if isinstance(parent, ast.Attribute) else ()
    for number, value in enumerate(dict.fromkeys((*fill_placeholders, *INITIAL_VALUES))):
        edit = Edit(start=start, end=start, text=f"{tree.indent(first)}{node.id} = {value}\n")
        weight = (1.0 if fill_placeholders or counted else 0.6) * 0.9**number
        yield Change(edits=(edit,), note=f"{node.id} is initialised with {value}", weight=weight)


def _move_early_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Move an `else: return x` behind its loop, because it ends the loop at the first element."""
    assert isinstance(node, ast.If)
    block, loop = tree.enclosing_block(node), tree.parent(node)
    if not node.orelse or not isinstance(loop, (ast.For, ast.While)) or node is not block[-1]:
        return
    ending = node.orelse[-1]
    whole, own, last = tree.line_span(loop), tree.line_span(ending), tree.line_span(node.body[-1])
    if not isinstance(ending, ast.Return) or len(node.orelse) != 1 or not (whole and own and last):
        return
    text = tree.raw[own[0] : own[1]].decode("utf-8", "surrogatepass")
    moved = reindent(text, tree.indent(ending), tree.indent(loop))
    newline = "" if tree.raw[whole[1] - 1 : whole[1]] == b"\n" else "\n"
    if own[1] == whole[1]:
        edits: tuple[Edit, ...] = (Edit(start=last[1], end=own[1], text=moved),)
    else:
        deletion = Edit(start=last[1], end=own[1], text="")
        edits = (deletion, Edit(start=whole[1], end=whole[1], text=f"{newline}{moved}"))
    yield Change(edits=edits, note=f"{shorten(tree.text(ending))} moves after the loop", weight=1.0)


def _append_element(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Append one element instead of `list += x` or `list = list.append(x)`."""
    assert isinstance(node, (ast.AugAssign, ast.Assign))
    start, end = tree.span(node)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        if isinstance(node.value, (ast.List, ast.Tuple, ast.Constant)):
            return
        target, value = tree.text(node.target), tree.text(node.value)
        for form, weight in ((f"{target}.append({value})", 1.0), (f"{target} += [{value}]", 0.8)):
            edit = Edit(start=start, end=end, text=form)
            yield Change(
                edits=(edit,), note=f"{shorten(tree.text(node))} becomes {shorten(form)}", weight=weight
            )
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and tree.text(function.value) == tree.text(node.targets[0]):
            edit = Edit(start=start, end=end, text=tree.text(node.value))
            yield Change(edits=(edit,), note=f"{shorten(tree.text(node.value))} is not assigned", weight=1.0)


def _replace_invented_function(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace the call of a function of two values that does not exist with arithmetic on them."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 2 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return
    if not _is_undefined(node.func, tree):
        return
    one, other = (_operand_text(argument, tree) for argument in node.args)
    held = isinstance(tree.parent(node), (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript))
    for number, sign in enumerate(ARITHMETIC_SIGNS):
        text = f"{one} {sign} {other}"
        yield replace_with(tree, node, f"({text})" if held else text, 1.0 - 0.05 * number)


def _is_undefined(function: ast.expr, tree: PythonTree) -> bool:
    if isinstance(function, ast.Name):
        return function.id not in known_names(tree) and function.id not in BUILTINS
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = function.value.id
        return owner in ("self", "cls") and function.attr not in tree.functions
    return False


def _operand_text(node: ast.expr, tree: PythonTree) -> str:
    text = tree.text(node)
    simple = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)
    return text if isinstance(node, simple) else f"({text})"


LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
OPERATORS = (
    PythonOperator(name="iteration", nodes=LOOPS, changes=_change_iteration),
    PythonOperator(name="bare_return", nodes=(ast.Return,), changes=_add_return_value),
    PythonOperator(name="final_return", nodes=FUNCTIONS, changes=_add_final_return),
    PythonOperator(name="missing_initialisation", nodes=(ast.Name,), changes=_initialise),
    PythonOperator(name="early_loop_return", nodes=(ast.If,), changes=_move_early_return),
    PythonOperator(name="append_element", nodes=(ast.AugAssign, ast.Assign), changes=_append_element),
    PythonOperator(name="invented_function", nodes=(ast.Call,), changes=_replace_invented_function),
)
