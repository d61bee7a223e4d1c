"""The names that a test program uses but does not define, and what the program's source says about each.

Only the test's source and the task are read here: a candidate that could claim that its function is a class, or
an exception, would choose how it is judged.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Mapping
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
CATCHING_FUNCTIONS = frozenset(("raises", "assertRaises", "assertRaisesRegex", "suppress"))
"""Functions whose first argument is an exception class."""
DATA_FUNCTIONS = frozenset((
    "abs", "all", "any", "dict", "float", "frozenset", "int", "isclose", "isinstance", "list", "max",
    "min", "round", "set", "sorted", "sum", "tuple", "type",
))  # fmt: skip
"""Functions that accept only plain data."""


@dataclass
class NameUse:
    """How a test uses one name.

    Attributes:
        raised: Whether the name is used where only an exception can be used.
        as_data: Whether every use works with plain data, such as a comparison with a number.
    """

    called: bool = False
    raised: bool = False
    as_data: bool = True
    attributes: set[str] = field(default_factory=set)


def find_free_names(source: str, tree: ast.Module, functions: frozenset[str] = frozenset()) -> list[str]:
    """Return the names that the program reads before it binds them, sorted.

    Args:
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
        is_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            name = symbol.get_name()
            is_module_level = is_module or symbol.is_global()
            if is_module_level and symbol.is_referenced():
                read.add(name)
            if is_module_level and (
                symbol.is_assigned() or symbol.is_imported() or (is_module and symbol.is_namespace())
            ):
                bound.add(name)
    read_early = _find_early_reads(tree, read & bound)
    builtin_names = BUILTINS - functions
    return sorted(
        name
        for name in (read - bound) | read_early
        if name not in builtin_names and not (name.startswith("__") and name.endswith("__"))
    )


def _find_early_reads(tree: ast.Module, names: set[str]) -> set[str]:
    """Return those of the names that the program reads before it binds them, as `f` in `f = timed(f)`."""
    read_early: set[str] = set()
    bound: set[str] = set()
    for statement in tree.body:
        name_nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        # What is inside other statements, such as functions, may run later or not at all.
        if isinstance(statement, (ast.Assert, ast.Assign, ast.AugAssign, ast.Expr)):
            read_early |= ({node.id for node in name_nodes if isinstance(node.ctx, ast.Load)} & names) - bound
        bound |= {node.id for node in name_nodes if not isinstance(node.ctx, ast.Load)}
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(statement.name)
        bound |= {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(statement)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
    return read_early


def find_name_uses(tree: ast.Module, names: set[str]) -> dict[str, NameUse]:
    """Return how a program uses each of the names."""
    uses = {name: NameUse() for name in names}
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names_with_attributes = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in uses:
            _record_use(node, uses[node.id], parents, names_with_attributes)
    return uses


def _record_use(
    node: ast.Name, use: NameUse, parents: Mapping[ast.AST, ast.AST], names_with_attributes: set[str]
) -> None:
    parent = parents[node]
    if _is_raised(node, parents):
        use.raised = True
        return
    if isinstance(parent, ast.Attribute):
        use.attributes.add(parent.attr)
        use.as_data = False
    elif isinstance(parent, ast.Call) and parent.func is node:
        use.called = True
        use.as_data = use.as_data and _is_used_as_data(parent, parents, names_with_attributes)
    elif isinstance(parent, ast.Subscript) and parent.value is node:
        pass  # plain data has items too
    else:
        use.as_data = use.as_data and _is_used_as_data(node, parents, names_with_attributes)


def _is_raised(node: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a name stands for an exception: in a `raise`, an `except` or a call such as `raises`."""
    operand: ast.AST = node
    parent = parents[operand]
    if isinstance(parent, ast.Call) and parent.func is operand and isinstance(parents[parent], ast.Raise):
        return True
    if isinstance(parent, ast.Tuple):  # as in `except (KeyError, ValueError)`
        operand, parent = parent, parents[parent]
    if isinstance(parent, ast.ExceptHandler):
        return parent.type is operand
    if isinstance(parent, ast.Call):
        return operand in parent.args and _get_function_name(parent) in CATCHING_FUNCTIONS
    return isinstance(parent, ast.Raise)


def _get_function_name(call: ast.Call) -> str:
    """Return the last name of a call's function, such as `raises` for `pytest.raises`; else empty."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_used_as_data(
    node: ast.expr, parents: Mapping[ast.AST, ast.AST], names_with_attributes: set[str]
) -> bool:
    """Whether a value at this position is only compared, counted or combined with data."""
    parent = parents[node]
    if isinstance(parent, ast.Compare):
        other_sides = [side for side in (parent.left, *parent.comparators) if side is not node]
        return not any(_needs_class(side) for side in other_sides)
    if isinstance(parent, (ast.Assert, ast.UnaryOp, ast.BinOp, ast.BoolOp)):
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        function = _get_function_name(parent)
        return function in DATA_FUNCTIONS and not (function == "isinstance" and node is not parent.args[0])
    if isinstance(parent, ast.Assign) and parent.value is node:
        return all(
            isinstance(target, ast.Name) and target.id not in names_with_attributes
            for target in parent.targets
        )
    return False


def _needs_class(side: ast.expr) -> bool:
    """Whether an expression calls something that is named like a class, or reads the type of a value."""
    called_names = {
        node.func.id
        for node in ast.walk(side)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    reads_type = "type" in called_names or (isinstance(side, ast.Attribute) and side.attr == "__class__")
    return reads_type or any(name[:1].isupper() for name in called_names)
