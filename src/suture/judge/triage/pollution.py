"""Whether a test itself leaves something behind that later tests see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

CHANGERS = {
    "a list": ("append", "extend", "insert", "remove", "reverse", "sort"),
    "a set or a mapping": ("add", "clear", "discard", "pop", "popitem", "setdefault", "update"),
    "a file": ("unlink", "write", "write_text"),
    "the process": ("chdir", "putenv", "seed", "setlocale"),
}
CHANGING = frozenset(name for names in CHANGERS.values() for name in names)
"""Methods and functions that change what they are called on, or the process."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_shared_state_write(tree: ast.Module, name: str) -> str:
    """The statement by which a test, or the set-up around it, changes something that outlives the test.

    What a test makes itself, and what a fixture hands it, does not count.

    Args:
        tree: The test's file.
        name: The test function.

    Returns:
        The statement as source; empty where there is none.
    """
    shared = set(_module_names(tree))
    for function in _around(tree, name):
        for node in ast.walk(function):
            if isinstance(node, ast.stmt) and _writes(node, shared - _own_names(function)):
                return ast.unparse(node)
    return ""


def _module_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
        elif isinstance(node, (ast.ClassDef, ast.AnnAssign)):
            yield node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target)


def _around(tree: ast.Module, name: str) -> Iterator[Function]:
    """The test, the fixtures that it asks for by name, and the set-up of its class or module."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    asked = {arg.arg for f in functions if f.name == name for arg in f.args.args}
    for function in functions:
        if function.name in (name, *asked) or function.name.lower().startswith(("setup", "set_up")):
            yield function


def _own_names(function: Function) -> set[str]:
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outer = {n for node in ast.walk(function) if isinstance(node, ast.Global) for n in node.names}
    arguments = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
    return (stored - outer) | arguments


def _writes(node: ast.stmt, shared: set[str]) -> bool:
    if isinstance(node, ast.Global):
        return True
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr in CHANGING:
            return _root(called) in shared
    return any(isinstance(t, (ast.Attribute, ast.Subscript)) and _root(t) in shared for t in targets)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
