"""The names that a test program uses but does not define, and what the program's text says about each.

Only the test's text and the task are read here: a candidate that could claim that its function is a class, or
an exception, would choose how it is judged.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
RAISING = frozenset(("raises", "assertRaises", "assertRaisesRegex", "suppress"))
"""Functions whose first argument is an exception class."""
TAKES_DATA = frozenset((
    "abs", "all", "any", "dict", "float", "frozenset", "int", "isclose", "isinstance", "list", "max",
    "min", "round", "set", "sorted", "sum", "tuple", "type",
))  # fmt: skip
"""Functions that accept only plain data."""


@dataclass
class NameUse:
    """How a test uses one name.

    Attributes:
        called: Whether the name is called somewhere.
        raised: Whether the name stands where only an exception can stand.
        as_data: Whether plain data can serve every use.
        attributes: The attributes that are read from the name.
    """

    called: bool = False
    raised: bool = False
    as_data: bool = True
    attributes: set[str] = field(default_factory=set)


def find_free_names(source: str, tree: ast.Module, functions: frozenset[str] = frozenset()) -> list[str]:
    """Return the names that the program reads before it binds them, sorted.

    Args:
        source: The program as Python source.
        tree: The same program as a tree.
        functions: The task's own functions. All other builtins keep their meaning and are never free.

    Raises:
        SyntaxError: The compiler rejects the source although it parses.
    """
    read: set[str] = set()
    bound: set[str] = set()
    tables = [symtable.symtable(source, "<test>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            here = top or symbol.is_global()
            if here and symbol.is_referenced():
                read.add(name)
            if here and (symbol.is_assigned() or symbol.is_imported() or (top and symbol.is_namespace())):
                bound.add(name)
    early = _read_before_bound(tree, read & bound)
    meant = BUILTINS - functions
    return sorted(name for name in (read - bound) | early if name not in meant and not _is_dunder(name))


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _read_before_bound(tree: ast.Module, names: set[str]) -> set[str]:
    """Return those of the names that the program reads before it binds them, as `f` in `f = timed(f)`."""
    early: set[str] = set()
    known: set[str] = set()
    for statement in tree.body:
        inner = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        if isinstance(statement, (ast.Assert, ast.Assign, ast.AugAssign, ast.Expr)):
            early |= ({node.id for node in inner if isinstance(node.ctx, ast.Load)} & names) - known
        known |= {node.id for node in inner if not isinstance(node.ctx, ast.Load)}
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            known.add(statement.name)
        known |= {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(statement)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
    return early


def find_name_uses(tree: ast.Module, names: set[str]) -> dict[str, NameUse]:
    """Return how a program uses each of the names."""
    uses = {name: NameUse() for name in names}
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    with_attributes = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in uses:
            _note(node, uses[node.id], above, with_attributes)
    return uses


def _note(node: ast.Name, use: NameUse, above: Mapping[ast.AST, ast.AST], with_attributes: set[str]) -> None:
    parent = above[node]
    if _is_raised(node, above):
        use.raised = True
        return
    if isinstance(parent, ast.Attribute):
        use.attributes.add(parent.attr)
        use.as_data = False
    elif isinstance(parent, ast.Call) and parent.func is node:
        use.called = True
        use.as_data = use.as_data and _is_data_place(parent, above, with_attributes)
    elif isinstance(parent, ast.Subscript) and parent.value is node:
        pass
    else:
        use.as_data = use.as_data and _is_data_place(node, above, with_attributes)


def _is_raised(node: ast.Name, above: Mapping[ast.AST, ast.AST]) -> bool:
    at: ast.AST = node
    parent = above[at]
    if isinstance(parent, ast.Call) and parent.func is at and isinstance(above[parent], ast.Raise):
        return True
    if isinstance(parent, ast.Tuple):
        at, parent = parent, above[parent]
    if isinstance(parent, ast.ExceptHandler):
        return parent.type is at
    if isinstance(parent, ast.Call):
        called = next(reversed(_dotted(parent.func)), "")
        return at in parent.args and called in RAISING
    return isinstance(parent, ast.Raise)


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def _is_data_place(node: ast.expr, above: Mapping[ast.AST, ast.AST], with_attributes: set[str]) -> bool:
    """Whether a value at this position is only compared, counted or combined with data."""
    parent = above[node]
    if isinstance(parent, ast.Compare):
        others = [side for side in (parent.left, *parent.comparators) if side is not node]
        return not any(_makes_an_object(side) or _asks_for_a_type(side) for side in others)
    if isinstance(parent, (ast.Assert, ast.UnaryOp, ast.BinOp, ast.BoolOp)):
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        called = next(reversed(_dotted(parent.func)), "")
        return called in TAKES_DATA and not (called == "isinstance" and node is not parent.args[0])
    if isinstance(parent, ast.Assign) and parent.value is node:
        return all(isinstance(t, ast.Name) and t.id not in with_attributes for t in parent.targets)
    return False


def _makes_an_object(side: ast.expr) -> bool:
    return any(name[:1].isupper() for name in _called_names(side))


def _asks_for_a_type(side: ast.expr) -> bool:
    return "type" in _called_names(side) or (isinstance(side, ast.Attribute) and side.attr == "__class__")


def _called_names(side: ast.expr) -> Iterator[str]:
    for node in ast.walk(side):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
