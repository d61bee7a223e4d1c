"""Mistakes of beginners, such as a loop over a number, a bare `return`, or an `else: return` in a loop.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, insert_text, replace_span, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.python_operator import PythonOperator, replace_with
from suture.mutation.python.operators.statements import reindent
from suture.mutation.python.operators.undefined_names import BUILTINS, known_names
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree
from suture.project.python_source.parsing import first_line
from suture.project.python_source.statement_edits import is_docstring

ARITHMETIC_SIGNS = ("+", "-", "*", "//", "%", "/")
"""What may be meant by an invented function of two numbers, the likeliest first. Chosen by judgement."""
INITIAL_BY_METHOD = {
    **dict.fromkeys(("append", "extend", "insert", "pop", "sort", "reverse"), ("[]",)),
    **dict.fromkeys(("appendleft", "popleft"), ("deque()", "[]")),
    **dict.fromkeys(("add", "discard", "remove"), ("set()", "[]")),
    **dict.fromkeys(("get", "items", "keys", "values", "setdefault", "update"), ("{}",)),
}
"""Method that is called on a variable -> the values with which the variable may begin."""
INITIAL_VALUES = ("0", "[]", "{}", '""', "set()", "None", "1", "False", "True")
"""Values with which any variable may begin, the likeliest first. Chosen by judgement; not measured."""


def _change_iteration(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Iterate over a range instead of a number, or over indices and values instead of values."""
    assert isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension))
    text = tree.text(node.iter)
    callee = node.iter.func if isinstance(node.iter, ast.Call) else None
    name = callee.id if isinstance(callee, ast.Name) else ""
    if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
        if name not in ("enumerate", "zip"):  # these already yield pairs
            yield replace_with(tree, node.iter, f"enumerate({text})", 1.0)
            yield replace_with(tree, node.iter, f"{text}.items()", 0.8)
        return
    if name in ("len", "int", "abs", "min", "max", "sum"):  # these return numbers: nothing to iterate over
        yield replace_with(tree, node.iter, f"range({text})", 1.0)
    elif not name and isinstance(node.iter, (ast.Name, ast.Attribute, ast.BinOp, ast.Constant)):
        yield replace_with(tree, node.iter, f"range({text})", 0.5)
        yield replace_with(tree, node.iter, f"range(len({text}))", 0.5)
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
    variables = names.fitting("unknown", node.lineno)  # the function may return any kind of value
    for value, weight in (*variables, ("True", 0.6), ("False", 0.6)):
        yield insert_text(end, f" {value}", f"return becomes return {value}", weight)


def _add_final_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a `return` at the end of a function that returns a value elsewhere, but may reach its end."""
    assert isinstance(node, FUNCTIONS)
    last_statement = node.body[-1]
    lines = tree.line_span(last_statement)
    returns_value = any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(node))
    # `lines` is `None` if other code shares a line with the statement.
    if lines is None or isinstance(last_statement, (ast.Return, ast.Raise)) or not returns_value:
        return
    names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
    # A search that finds nothing returns one of these. `len` of the last parameter comes first.
    values = [*(f"len({name})" for name in reversed(names)), "0", "-1", "[]", "False", "None"]
    for rank, value in enumerate(values):
        line = f"{tree.missing_newline(lines[1])}{tree.indent(last_statement)}return {value}\n"
        yield insert_text(lines[1], line, f"return {value} at the end", 1.0 - 0.05 * rank)


def _initialise(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Initialise, at the start of the function, a name that is read or counted up before it is bound."""
    assert isinstance(node, ast.Name)
    function = tree.enclosing_function(node)
    if function is None or node.id in BUILTINS:
        return
    parent = tree.parent(node)
    is_counted = isinstance(parent, ast.AugAssign) and parent.target is node
    if not is_counted and (not isinstance(node.ctx, ast.Load) or node.id in known_names(tree)):
        return
    names = [part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == node.id]
    stores = [name for name in names if isinstance(name.ctx, ast.Store)]
    if is_counted and any(not isinstance(tree.parent(name), ast.AugAssign) for name in stores):
        return  # another statement of the function initialises it
    statement = next((part for part in function.body if not is_docstring(part)), None)
    if statement is None or tree.line_span(statement) is None:
        return
    start = tree.offset(first_line(statement), 0)
    fitting_values = INITIAL_BY_METHOD.get(parent.attr, ()) if isinstance(parent, ast.Attribute) else ()
    for rank, value in enumerate(dict.fromkeys((*fitting_values, *INITIAL_VALUES))):
        line = f"{tree.indent(statement)}{node.id} = {value}\n"
        weight = (1.0 if fitting_values or is_counted else 0.6) * 0.9**rank
        yield insert_text(start, line, f"{node.id} is initialised with {value}", weight)


def _move_early_return(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Move an `else: return x` behind its loop, because it ends the loop at the first element."""
    assert isinstance(node, ast.If)
    block, loop = tree.enclosing_block(node), tree.parent(node)
    if not node.orelse or not isinstance(loop, (ast.For, ast.While)) or node is not block[-1]:
        return
    ending = node.orelse[-1]
    loop_lines, return_lines = tree.line_span(loop), tree.line_span(ending)
    body_lines = tree.line_span(node.body[-1])
    if not isinstance(ending, ast.Return) or len(node.orelse) != 1:
        return
    if loop_lines is None or return_lines is None or body_lines is None:
        return
    text = tree.raw[slice(*return_lines)].decode("utf-8", "surrogatepass")
    moved_text = reindent(text, tree.indent(ending), tree.indent(loop))
    else_start, else_end, loop_end = body_lines[1], return_lines[1], loop_lines[1]
    if else_end == loop_end:
        edits: tuple[Edit, ...] = (Edit(start=else_start, end=else_end, text=moved_text),)
    else:
        insertion = Edit(start=loop_end, end=loop_end, text=f"{tree.missing_newline(loop_end)}{moved_text}")
        edits = (Edit(start=else_start, end=else_end, text=""), insertion)
    yield Change(edits=edits, note=f"{shorten(tree.text(ending))} moves after the loop")


def _append_element(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Append one element instead of `list += x` or `list = list.append(x)`."""
    assert isinstance(node, (ast.AugAssign, ast.Assign))
    start, end = tree.span(node)
    value = tree.text(node.value)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        if isinstance(node.value, (ast.List, ast.Tuple, ast.Constant)):
            return  # a list or tuple is meant to be concatenated, and a constant to be added
        target = tree.text(node.target)
        for text, weight in ((f"{target}.append({value})", 1.0), (f"{target} += [{value}]", 0.8)):
            note = f"{shorten(tree.text(node))} becomes {shorten(text)}"
            yield replace_span(start, end, text, note, weight)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        method = node.value.func
        if isinstance(method, ast.Attribute) and tree.text(method.value) == tree.text(node.targets[0]):
            yield replace_span(start, end, value, f"{shorten(value)} is not assigned")


def _replace_invented_function(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace the call of a function of two values that does not exist with arithmetic on them."""
    assert isinstance(node, ast.Call)
    if len(node.args) != 2 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return
    if not _is_undefined(node.func, tree):
        return
    left, right = (_operand_text(argument, tree) for argument in node.args)
    is_operand = isinstance(tree.parent(node), (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript))
    for rank, sign in enumerate(ARITHMETIC_SIGNS):
        text = f"{left} {sign} {right}"
        yield replace_with(tree, node, f"({text})" if is_operand else text, 1.0 - 0.05 * rank)


def _is_undefined(function: ast.expr, tree: PythonTree) -> bool:
    """Return whether the file does not define a function, or a method of the class that calls it.

    Methods of other objects may come from anywhere.
    """
    if isinstance(function, ast.Name):
        return function.id not in known_names(tree) and function.id not in BUILTINS
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = function.value.id
        return owner in ("self", "cls") and function.attr not in tree.functions
    return False


def _operand_text(node: ast.expr, tree: PythonTree) -> str:
    is_simple = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
    return tree.text(node) if is_simple else f"({tree.text(node)})"


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
