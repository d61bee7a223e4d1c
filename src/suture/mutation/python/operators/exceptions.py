"""Exception classes, and defaults that live longer than a call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, is_docstring
from suture.mutation.changes import Change, Operator, replace_with, shorten
from suture.mutation.python.operators.undefined_names import known_names

ALIKE = (
    ("KeyError", "IndexError", "LookupError", "AttributeError"),
    ("ValueError", "TypeError", "ZeroDivisionError", "ArithmeticError", "OverflowError"),
    ("FileNotFoundError", "OSError", "PermissionError"),
    ("RuntimeError", "NotImplementedError", "RecursionError", "StopIteration"),
    ("ValueError", "KeyError", "IndexError", "TypeError", "Exception"),
)

COMMON = (
    *("KeyError", "IndexError", "TypeError", "AttributeError", "OSError", "RuntimeError", "ImportError"),
    *("NotImplementedError", "StopIteration", "ZeroDivisionError", "AssertionError", "UnicodeDecodeError"),
    *("LookupError", "OverflowError", "RecursionError"),
)
PAIRS = (
    *("(KeyError, IndexError)", "(TypeError, ValueError)", "(AttributeError, TypeError)"),
    *("(KeyError, TypeError)", "(KeyError, AttributeError)", "(IndexError, TypeError)"),
)
"""What is caught together, where nothing in the file tells."""


def _class(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    named: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        named = node.type
    elif isinstance(node, ast.Raise):
        named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(named, ast.Tuple):
        yield from _of_several(named, view)
    elif isinstance(named, ast.Name):
        for other, weight in _others(named.id, view):
            yield replace_with(view, named, other, weight)
        if isinstance(node, ast.ExceptHandler):
            yield from _several(named, view)


def _of_several(named: ast.Tuple, view: PythonTree) -> Iterator[Change]:
    """One class less, or another in its place."""
    texts = [view.text(element) for element in named.elts]
    for element in named.elts:
        others = [view.text(e) for e in named.elts if e is not element]
        yield replace_with(view, named, f"({', '.join(others)},)", 0.4)
        if isinstance(element, ast.Name):
            for other, weight in _others(element.id, view):
                if other not in texts:
                    yield replace_with(view, element, other, 0.7 * weight)


def _several(named: ast.Name, view: PythonTree) -> Iterator[Change]:
    """Two classes for one: with another that is like it, or two for one that there is not."""
    pairs = {f"({named.id}, {other})": 0.7 for other in _like(named.id)}
    if not _is_known(named.id, view):
        pairs |= dict.fromkeys((*view.cached("caught together", _caught_together), *PAIRS), 0.6)
    start, end = view.span(named)
    for text, weight in pairs.items():
        edit = Edit(start=start, end=end, text=text)  # it has its brackets
        yield Change(edits=(edit,), note=f"{named.id} becomes {shorten(text)}", weight=weight)


def _others(name: str, view: PythonTree) -> Iterator[tuple[str, float]]:
    """Exception classes that may be meant in place of one, each with its weight."""
    own, used = view.cached("exceptions", _exceptions)
    near, known = _like(name), _is_known(name, view)
    for other in dict.fromkeys((*own, *near, *used, "ValueError", "Exception", *COMMON)):
        if other != name:
            likely = other in (*own, *near) or not known
            yield other, 1.0 if likely else 0.5 if other not in COMMON else 0.3


def _like(name: str) -> list[str]:
    return [other for group in ALIKE if name in group for other in group if other != name]


def _is_known(name: str, view: PythonTree) -> bool:
    return name in view.functions or hasattr(builtins, name) or name in known_names(view)


def _caught_together(view: PythonTree) -> list[str]:
    """Tuples of classes that handlers of the file name."""
    handlers = [n for n in ast.walk(view.tree) if isinstance(n, ast.ExceptHandler)]
    return [view.text(n.type) for n in handlers if isinstance(n.type, ast.Tuple)]


def _exceptions(view: PythonTree) -> tuple[list[str], list[str]]:
    """Exception classes that the file defines, and those that it names."""
    own = [c.name for c in ast.walk(view.tree) if isinstance(c, ast.ClassDef) and _is_exception(c)]
    used = [n.id for n in ast.walk(view.tree) if isinstance(n, ast.Name) and _names_exception(n.id)]
    return own, list(dict.fromkeys(used))


def _names_exception(name: str) -> bool:
    return name.endswith(("Error", "Exception")) or name in ("StopIteration", "KeyboardInterrupt")


def _is_exception(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)


def _default(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A list, dict or set that all calls share, because it is a default."""
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
        made = isinstance(default, ast.Call) and ast.unparse(default.func) in ("list", "dict", "set")
        if not (isinstance(default, (ast.List, ast.Dict, ast.Set)) or made) or not body:
            continue
        lines, indent, name = view.line_span(body[0]), view.indent(body[0]), argument.arg
        if lines is None:
            continue
        text = f"{indent}if {name} is None:\n{indent}    {name} = {view.text(default)}\n"
        yield Change(
            edits=(view.replacement(default, "None"), Edit(start=lines[0], end=lines[0], text=text)),
            note=f"each call gets a {name} of its own",
        )


OPERATORS = (
    Operator(name="exception class", prior=0.5, nodes=(ast.ExceptHandler, ast.Raise), changes=_class),
    Operator(name="shared default", prior=0.8, nodes=FUNCTIONS, changes=_default),
)
