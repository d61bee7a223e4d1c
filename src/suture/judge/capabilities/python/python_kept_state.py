"""Find functions of a Python file that answer by the number of their calls, or with the next of prepared answers."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TAKING_METHODS = ("pop", "popleft", "send")
TAKING_FUNCTIONS = ("next", "anext")
SEQUENCE_CALLS = ("iter", "list", "collections.deque", "reversed")
MIN_ANSWERS = 2
"""Prepared answers that are a sequence."""


def find_kept_state(tree: ast.Module, names: ModuleNames) -> Iterator[Use]:
    """Yield each count and each sequence outside of a function by which the function chooses its answer."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    for function in functions:
        for name in sorted(_list_outer_names(function)):
            place = _find_decision(function, name) if _only_counts(functions, name) else None
            if place is not None:
                yield _get_use(f"count of calls {name}", place)
        for taken in filter(None, map(_get_taken, ast.walk(function))):
            if not _assigns(function, taken.id) and _is_prepared(names.assigned.get(taken.id), names):
                yield _get_use(f"prepared answers {taken.id}", taken)


def _get_use(name: str, node: ast.expr) -> Use:
    return Use(code="detects_environment", name=name, line=node.lineno, key=name)


def _list_outer_names(function: ast.AST) -> set[str]:
    """Return the variables outside of a function that it assigns."""
    declared = (
        node for node in ast.iter_child_nodes(function) if isinstance(node, ast.Global | ast.Nonlocal)
    )
    return {name for node in declared for name in node.names}


def _assigns(function: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(function)
    )


def _only_counts(functions: Iterable[ast.AST], name: str) -> bool:
    """Return whether all functions that assign a variable outside of them only ever add to it."""
    changes = [
        part
        for function in functions
        if name in _list_outer_names(function)
        for part in ast.walk(function)
        if isinstance(part, ast.Assign | ast.AugAssign) and _assigns(part, name)
    ]
    return bool(changes) and all(
        isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add) for part in changes
    )


def _find_decision(function: ast.AST, name: str) -> ast.expr | None:
    """Return where a count is compared with a number, or selects one of some literals."""

    def has_count(node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))

    for node in ast.walk(function):
        match node:
            case ast.Compare(left=left, comparators=others) if has_count(node):
                if any(isinstance(side, ast.Constant) for side in (left, *others)):
                    return node
            case ast.Subscript(value=ast.List() | ast.Tuple() | ast.Dict() | ast.Constant()) if has_count(
                node.slice
            ):
                return node
    return None


def _get_taken(node: ast.AST) -> ast.Name | None:
    """Return the variable from which a call takes the next value: `left.pop()`, `next(left)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=method)) if method in TAKING_METHODS:
            return owner
        case ast.Call(func=ast.Name(id=function), args=[ast.Name() as owner, *_]) if (
            function in TAKING_FUNCTIONS
        ):
            return owner
    return None


def _is_prepared(value: ast.expr | None, names: ModuleNames) -> bool:
    """Return whether a value is a list of constants, or an iterator of one."""
    match value:
        case ast.Call(func=func, args=[first]) if names.resolve(func) in SEQUENCE_CALLS:
            return _is_prepared(first, names)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return len(parts) >= MIN_ANSWERS and all(map(names.is_constant, parts))
        case ast.Constant(value=str() as text):
            return len(text) >= MIN_ANSWERS
    return False
