"""What a statement needs of those before it: its imports, names and the calls that prepare them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from suture.project.python_source.python_code import Definition, names_of, read_names

Scope = tuple[ast.stmt, ...]
"""The statements before one, in their order."""

BUILTINS = frozenset(dir(builtins))


def setup_for(node: ast.stmt, scope: Scope, entry_point: str | None) -> list[ast.stmt]:
    """The statements that a statement needs of those before it, in their order.

    Statements that import or define the entry point are left out: it is what the candidate gives. So are
    those that nothing needs, such as calls for show, since one that fails would fail the test.

    Args:
        node: The statement.
        scope: What stands before it.
        entry_point: What is tested, where known.
    """
    needed = read_names([node])
    kept: list[ast.stmt] = []
    for earlier in reversed(scope):
        part = _without(earlier, entry_point)
        if part is None or not (_defines(part) & needed or _prepares(part, needed, entry_point)):
            continue
        kept.append(part)
        needed |= read_names([part])
    return kept[::-1]


def known_names(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """Every name that the statements bind anywhere inside, and the built-in ones."""
    return BUILTINS | {name for node in nodes for part in ast.walk(node) for name in _bound_in(part)}


def _bound_in(part: ast.AST) -> Iterator[str]:
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        yield part.id
    elif isinstance(part, ast.arg):
        yield part.arg
    elif isinstance(part, ast.ExceptHandler) and part.name:
        yield part.name
    elif isinstance(part, Definition | ast.Import | ast.ImportFrom):
        yield from names_of(part)


def _without(node: ast.stmt, entry_point: str | None) -> ast.stmt | None:
    """A statement as far as it does not bring the entry point; `None` where nothing is left."""
    if isinstance(node, ast.ImportFrom):
        aliases = [alias for alias in node.names if alias.name not in (entry_point, "*")]
        return ast.ImportFrom(node.module, aliases, node.level) if aliases else None
    if entry_point is not None and entry_point in names_of(node):
        return None
    tests = any(isinstance(part, ast.Assert) for part in ast.walk(node))
    return None if tests and not isinstance(node, Definition) else node


def _defines(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
        return frozenset(name for part in ast.walk(node) for name in _bound_in(part))
    return names_of(node)


def _prepares(node: ast.stmt, needed: frozenset[str], entry_point: str | None) -> bool:
    """Whether a call or a block may change a needed value, such as `cart.add(3)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        own = needed - BUILTINS - {entry_point or ""}
        shows = isinstance(called, ast.Name) and called.id == "print"
        return not shows and bool(read_names([node]) & own)
    return False
