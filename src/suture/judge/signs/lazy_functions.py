"""Find Python functions that a change makes lazy although nothing iterates or awaits what they return.

Calling a generator or coroutine function runs nothing of its body. Tests that look at what the work does, such as
callbacks and test doubles, then pass because nothing happens.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import TypeGuard

from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import Function, iterate_functions, walk_own_nodes

LAZY_BUILTINS = frozenset(("map", "filter"))
"""Built-in functions that call what they get only when their result is iterated."""


def find_unread_lazy_functions(old: ast.Module, new: ast.Module, test_texts: Iterable[str]) -> set[str]:
    """Return the names of functions that are newly lazy while each of their calls is a statement of its own.

    The calls in the tests count; if there are none, those in the file itself. A function also counts if a statement
    of it newly makes a generator or a `map` that nothing can read.

    Args:
        old: The whole file before the change.
        new: The whole file after the change.
    """
    before = dict(iterate_functions(old.body))
    known = [(name, before[name], node) for name, node in iterate_functions(new.body) if name in before]
    unread = {node.name for _, earlier, node in known if _count_unread(node) > _count_unread(earlier)}
    lazy = [
        name
        for name, earlier, node in known
        if _is_lazy(node) and not _is_lazy(earlier) and not earlier.decorator_list
    ]
    if not lazy:
        return unread
    trees = [tree for text in test_texts if (tree := parse_module(text)) is not None]
    return unread | {name.split(".")[-1] for name in lazy if _is_only_discarded(name, trees, new)}


def _is_lazy(function: Function) -> bool:
    """Return whether a call of a function runs nothing of its work."""
    parts = list(walk_own_nodes(function.body))
    if isinstance(function, ast.AsyncFunctionDef) or any(
        isinstance(part, (ast.Yield, ast.YieldFrom)) for part in parts
    ):
        return True
    returned = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
    return bool(returned) and all(map(_is_lazy_value, returned))


def _is_lazy_value(node: ast.expr) -> bool:
    is_lazy_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") in LAZY_BUILTINS
    return is_lazy_call or isinstance(node, ast.GeneratorExp)


def _count_unread(function: Function) -> int:
    """Count the statements that make a lazy value which nothing can read."""
    return sum(
        isinstance(part, ast.Expr) and _is_lazy_value(part.value) for part in walk_own_nodes(function.body)
    )


def _is_only_discarded(name: str, tests: Iterable[ast.Module], file: ast.Module) -> bool:
    calls = Counter[bool]()
    for tree in tests:
        calls += _count_calls(name, tree)
    calls = calls or _count_calls(name, file)
    return bool(calls[True]) and not calls[False]


def _count_calls(name: str, tree: ast.Module) -> Counter[bool]:
    """Count the uses of a function, by whether each is a call whose result is discarded.

    Args:
        name: Its name, after that of its class if it is a method, which is not an attribute of a module.
    """
    nodes = list(ast.walk(tree))
    modules = {
        item.asname or item.name.split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for item in node.names
    }
    discarded = [node.value.func for node in nodes if _discards(node) and isinstance(node.value, ast.Call)]
    owner, _, last = name.rpartition(".")
    uses = Counter[bool]()
    for node in nodes:
        match node:
            case ast.Attribute(value=receiver, attr=attribute, ctx=ast.Load()) if attribute == last:
                if not (owner and isinstance(receiver, ast.Name) and receiver.id in modules):
                    uses[node in discarded] += 1
            case ast.Name(id=variable, ctx=ast.Load()) if variable == last and not owner:
                uses[node in discarded] += 1
    return uses


def _discards(node: ast.AST) -> TypeGuard[ast.Expr | ast.Assign]:
    """Return whether a statement discards the value of its expression."""
    return isinstance(node, ast.Expr) or (
        isinstance(node, ast.Assign)
        and all(isinstance(target, ast.Name) and target.id == "_" for target in node.targets)
    )
