"""Exception classes, and defaults that live longer than a call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from suture.repair.editing.edits import Edit
from suture.repair.editing.view import FUNCTIONS, View, is_docstring
from suture.repair.operators.change import Change, Operator, instead
from suture.repair.operators.undefined import known_names

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
)


def _class(node: ast.AST, view: View) -> Iterator[Change]:
    named: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        named = node.type
    elif isinstance(node, ast.Raise):
        named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(named, ast.Tuple):
        for element in named.elts:
            others = [view.text(e) for e in named.elts if e is not element]
            yield instead(view, named, f"({', '.join(others)},)", 0.4)
        return
    if not isinstance(named, ast.Name):
        return
    known = named.id in view.functions or hasattr(builtins, named.id) or named.id in known_names(view)
    own, used = view.remembered("exceptions", _exceptions)
    near = [other for group in ALIKE if named.id in group for other in group]
    for other in dict.fromkeys((*own, *near, *used, "ValueError", "Exception", *COMMON)):
        if other != named.id:
            likely = other in (*own, *near) or not known
            yield instead(view, named, other, 1.0 if likely else 0.5 if other not in COMMON else 0.3)
    if isinstance(node, ast.ExceptHandler):
        for other in dict.fromkeys(near):
            if other != named.id:
                yield instead(view, named, f"({named.id}, {other})", 0.7)


def _exceptions(view: View) -> tuple[list[str], list[str]]:
    """Exception classes that the file defines, and those that it names."""
    own = [c.name for c in ast.walk(view.tree) if isinstance(c, ast.ClassDef) and _is_exception(c)]
    used = [n.id for n in ast.walk(view.tree) if isinstance(n, ast.Name) and _names_exception(n.id)]
    return own, list(dict.fromkeys(used))


def _names_exception(name: str) -> bool:
    return name.endswith(("Error", "Exception")) or name in ("StopIteration", "KeyboardInterrupt")


def _is_exception(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)


def _default(node: ast.AST, view: View) -> Iterator[Change]:
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
        lines, indent, name = view.lines_of(body[0]), view.indent(body[0]), argument.arg
        if lines is None:
            continue
        text = f"{indent}if {name} is None:\n{indent}    {name} = {view.text(default)}\n"
        yield Change(
            edits=(view.replace(default, "None"), Edit(start=lines[0], end=lines[0], text=text)),
            note=f"each call gets a {name} of its own",
        )


OPERATORS = (
    Operator(name="exception class", prior=0.5, nodes=(ast.ExceptHandler, ast.Raise), changes=_class),
    Operator(name="shared default", prior=0.8, nodes=FUNCTIONS, changes=_default),
)
