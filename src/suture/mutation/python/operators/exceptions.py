"""Wrong exception classes, and mutable defaults that all calls share."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from suture.mutation.changes import Change, shorten
from suture.mutation.edits import Edit
from suture.mutation.python.operators.python_operator import PythonOperator, replace_with
from suture.mutation.python.operators.undefined_names import known_names
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, is_docstring

CONFUSABLE_EXCEPTIONS = (
    ("KeyError", "IndexError", "LookupError", "AttributeError"),
    ("ValueError", "TypeError", "ZeroDivisionError", "ArithmeticError", "OverflowError"),
    ("FileNotFoundError", "OSError", "PermissionError"),
    ("RuntimeError", "NotImplementedError", "RecursionError", "StopIteration"),
    ("ValueError", "KeyError", "IndexError", "TypeError", "Exception"),
)

COMMON_EXCEPTIONS = (
    "KeyError", "IndexError", "TypeError", "AttributeError", "OSError", "RuntimeError", "ImportError",
    "NotImplementedError", "StopIteration", "ZeroDivisionError", "AssertionError", "UnicodeDecodeError",
    "LookupError", "OverflowError", "RecursionError",
)  # fmt: skip
COMMON_PAIRS = (
    "(KeyError, IndexError)",
    "(TypeError, ValueError)",
    "(AttributeError, TypeError)",
    "(KeyError, TypeError)",
    "(KeyError, AttributeError)",
    "(IndexError, TypeError)",
)
"""Exceptions that are often caught together."""


def _change_exception(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Raise or catch another exception class."""
    named: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        named = node.type
    elif isinstance(node, ast.Raise):
        named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(named, ast.Tuple):
        yield from _change_tuple(named, tree)
    elif isinstance(named, ast.Name):
        for other, weight in _other_exceptions(named.id, tree):
            yield replace_with(tree, named, other, weight)
        if isinstance(node, ast.ExceptHandler):
            yield from _catch_two(named, tree)


def _change_tuple(named: ast.Tuple, tree: PythonTree) -> Iterator[Change]:
    """Drop a class of a tuple, or replace it."""
    texts = [tree.text(element) for element in named.elts]
    for element in named.elts:
        others = [tree.text(e) for e in named.elts if e is not element]
        yield replace_with(tree, named, f"({', '.join(others)},)", 0.4)
        if isinstance(element, ast.Name):
            for other, weight in _other_exceptions(element.id, tree):
                if other not in texts:
                    yield replace_with(tree, element, other, 0.7 * weight)


def _catch_two(named: ast.Name, tree: PythonTree) -> Iterator[Change]:
    """Catch two classes: the class and a similar one, or a common pair where the class is undefined."""
    pairs = {f"({named.id}, {other})": 0.7 for other in _confusable_with(named.id)}
    if not _is_defined(named.id, tree):
        pairs |= dict.fromkeys((*tree.cached("caught together", _exception_tuples), *COMMON_PAIRS), 0.6)
    start, end = tree.span(named)
    for text, weight in pairs.items():
        edit = Edit(start=start, end=end, text=text)  # the text has its own parentheses
        yield Change(edits=(edit,), note=f"{named.id} becomes {shorten(text)}", weight=weight)


def _other_exceptions(name: str, tree: PythonTree) -> Iterator[tuple[str, float]]:
    """Yield exception classes that may be meant instead of one, each with its weight."""
    own, used = tree.cached("exceptions", _collect_exceptions)
    near, known = _confusable_with(name), _is_defined(name, tree)
    for other in dict.fromkeys((*own, *near, *used, "ValueError", "Exception", *COMMON_EXCEPTIONS)):
        if other != name:
            likely = other in (*own, *near) or not known
            yield other, 1.0 if likely else 0.5 if other not in COMMON_EXCEPTIONS else 0.3


def _confusable_with(name: str) -> list[str]:
    return [other for group in CONFUSABLE_EXCEPTIONS if name in group for other in group if other != name]


def _is_defined(name: str, tree: PythonTree) -> bool:
    return name in tree.functions or hasattr(builtins, name) or name in known_names(tree)


def _exception_tuples(tree: PythonTree) -> list[str]:
    """Return the tuples of classes that handlers of the file catch."""
    handlers = [n for n in ast.walk(tree.module) if isinstance(n, ast.ExceptHandler)]
    return [tree.text(n.type) for n in handlers if isinstance(n.type, ast.Tuple)]


def _collect_exceptions(tree: PythonTree) -> tuple[list[str], list[str]]:
    """Return the exception classes that the file defines, and those that it uses."""
    own = [c.name for c in ast.walk(tree.module) if isinstance(c, ast.ClassDef) and _is_exception_class(c)]
    used = [n.id for n in ast.walk(tree.module) if isinstance(n, ast.Name) and _looks_like_exception(n.id)]
    return own, list(dict.fromkeys(used))


def _looks_like_exception(name: str) -> bool:
    return name.endswith(("Error", "Exception")) or name in ("StopIteration", "KeyboardInterrupt")


def _is_exception_class(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)


def _create_default_per_call(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Create a mutable default in each call instead of sharing it between calls."""
    assert isinstance(node, FUNCTIONS)
    positional = [*node.args.posonlyargs, *node.args.args]
    pairs = list(
        zip(positional[len(positional) - len(node.args.defaults) :], node.args.defaults, strict=True)
    )
    pairs += [
        (a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None
    ]
    body = [statement for statement in node.body if not is_docstring(statement)]
    for argument, default in pairs:
        is_container_call = isinstance(default, ast.Call) and ast.unparse(default.func) in (
            "list",
            "dict",
            "set",
        )
        if not (isinstance(default, (ast.List, ast.Dict, ast.Set)) or is_container_call) or not body:
            continue
        lines, indent, name = tree.line_span(body[0]), tree.indent(body[0]), argument.arg
        if lines is None:
            continue
        text = f"{indent}if {name} is None:\n{indent}    {name} = {tree.text(default)}\n"
        yield Change(
            edits=(tree.replacement(default, "None"), Edit(start=lines[0], end=lines[0], text=text)),
            note=f"each call creates its own {name}",
        )


OPERATORS = (
    PythonOperator(name="exception_class", nodes=(ast.ExceptHandler, ast.Raise), changes=_change_exception),
    PythonOperator(name="mutable_default", nodes=FUNCTIONS, changes=_create_default_per_call),
)
