"""The functions of a syntax tree, and the nodes that belong to one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
"""The statements that define a function; `FUNCTIONS` is for `isinstance`."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
"""The nodes whose inside belongs to them alone."""


def walk_own_nodes(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of some statements in their order, without those inside of functions, classes and lambdas."""
    waiting = list(reversed(statements))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def iterate_functions(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield the functions of a module and the methods of its classes, each with its dotted name."""
    for node in body:
        if isinstance(node, FUNCTIONS):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from iterate_functions(node.body, f"{prefix}{node.name}.")
