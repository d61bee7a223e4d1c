"""Mistakes of beginners, such as a loop over a number, or a bare `return`.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, insert_text
from suture.mutation.python.operators.undefined_names import BUILTINS, known_names
from suture.mutation.python.python_tree import PythonOperator, PythonTree, replace_with
from suture.project.python_source.parsing import first_line
from suture.project.python_source.scopes import FUNCTIONS
from suture.project.python_source.statement_edits import is_docstring

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


LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
OPERATORS = (
    PythonOperator(name="iteration", nodes=LOOPS, changes=_change_iteration),
    PythonOperator(name="bare_return", nodes=(ast.Return,), changes=_add_return_value),
    PythonOperator(name="final_return", nodes=FUNCTIONS, changes=_add_final_return),
    PythonOperator(name="missing_initialisation", nodes=(ast.Name,), changes=_initialise),
)
