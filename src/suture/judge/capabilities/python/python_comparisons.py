"""Find the comparison methods that the classes of a Python module get, and those that may call different objects equal.

A class gets one by a definition, by an assignment, or by ways that hide it. What a method compares is analysed in
`python_evidence`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import replace

from suture.judge.capabilities.python.python_evidence import (
    COMPARISON_METHODS,
    ComparedClass,
    Function,
    get_body,
    get_called_name,
    get_own_nodes,
    is_loose,
)
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.scopes import FUNCTIONS

EMPTY = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=ast.Constant(value=None))
"""A function that does nothing."""


def find_loose_comparisons(tree: ast.Module, names: ModuleNames) -> Iterator[Use]:
    """Yield the comparison methods of a module that may call different objects equal."""
    functions = _find_unique_functions(tree)
    nodes = list(ast.walk(tree))
    owner = ComparedClass(
        names=names,
        functions=functions,
        classes=frozenset(node.name for node in nodes if isinstance(node, ast.ClassDef)),
    )
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            subclasses = [kind for kind in nodes if isinstance(kind, ast.ClassDef) and _extends(kind, node)]
            is_stateless = all(_has_no_state(kind) for kind in (node, *subclasses))
            yield from _find_class_uses(node, replace(owner, is_stateless=is_stateless))
        elif isinstance(node, ast.Dict):  # `type("A", (), {"__eq__": ...})`
            for key, value in zip(node.keys, node.values, strict=True):
                name = names.fold_text(key) if key is not None else None
                yield from _find_binding_uses(name or "", value, owner, "")
        elif isinstance(node, ast.keyword):
            yield from _find_binding_uses(node.arg or "", node.value, owner, "")


def _find_class_uses(node: ast.ClassDef, owner: ComparedClass) -> Iterator[Use]:
    bound: set[ast.AST] = set()
    for statement in get_own_nodes(node.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            name, full_name = statement.name, f"{node.name}.{statement.name}"
            is_disguise = name == "__class__"  # `isinstance` believes it
            if is_disguise or (name in COMPARISON_METHODS and is_loose(name, statement, owner)):
                yield Use(code="loosens_comparison", name=full_name, line=statement.lineno, key=full_name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                if isinstance(target, ast.Name):
                    bound.add(target)
                    yield from _find_binding_uses(target.id, statement.value, owner, f"{node.name}.")
    yield from _find_hidden_bindings(node, bound, owner)


def _find_hidden_bindings(node: ast.ClassDef, bound: set[ast.AST], owner: ComparedClass) -> Iterator[Use]:
    """Yield a comparison method that a class gets by a loop, an import or `vars()["__eq__"] = ...`.

    Args:
        bound: Targets of plain assignments, which are analysed elsewhere.
    """
    for part in get_own_nodes(node.body):
        names: list[str] = []
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part not in bound:
            names = [part.id]
        elif isinstance(part, ast.alias):
            names = [part.asname or part.name]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            is_namespace = owner.names.resolve(part.func) in ("vars", "locals") and not part.args
            names = ["__eq__"] if is_namespace else []
        for name in names:
            if name in COMPARISON_METHODS:
                key = f"{node.name}.{name}"
                yield Use(
                    code="loosens_comparison", name=key, line=getattr(part, "lineno", node.lineno), key=key
                )


def _find_binding_uses(name: str, value: ast.expr, owner: ComparedClass, prefix: str) -> Iterator[Use]:
    """Yield a comparison method that is bound to a name: `__eq__ = lambda self, other: True`."""
    is_disguise = name == "__class__" and bool(prefix)  # `isinstance` believes what the class says
    is_comparison = name in COMPARISON_METHODS
    is_property = (
        is_comparison and isinstance(value, ast.Call) and owner.names.resolve(value.func) == "property"
    )
    functions = _find_bound_functions(value, owner) if is_comparison else ()
    is_other = is_comparison and _is_other_method(name, value, owner)
    if (
        is_disguise
        or is_property
        or is_other
        or any(is_loose(name, function, owner) for function in functions)
    ):
        yield Use(code="loosens_comparison", name=prefix + name, line=value.lineno, key=prefix + name)


def _is_other_method(name: str, value: ast.expr, owner: ComparedClass) -> bool:
    """Return whether a comparison method is bound to one of another name, as in `__eq__ = int.__ne__`.

    A function of this module is analysed instead, and so is a variable.
    """
    if isinstance(value, ast.Call):
        parts = [part for part in ast.walk(value) if isinstance(part, ast.Attribute)]
        return any(part.attr in COMPARISON_METHODS - {name} for part in parts)
    if isinstance(value, ast.Name):
        is_foreign = owner.names.is_imported(value) or hasattr(builtins, value.id)
        return is_foreign and owner.names.resolve(value).rpartition(".")[2] != name
    return isinstance(value, ast.Attribute) and value.attr != name and value.attr not in owner.functions


def _find_bound_functions(value: ast.expr, owner: ComparedClass) -> Iterator[Function]:
    """Yield the functions that an expression may stand for; none for those of other modules and classes."""
    if isinstance(value, ast.Lambda):
        yield value
    elif isinstance(value, ast.Name | ast.Attribute):
        name = value.id if isinstance(value, ast.Name) else value.attr
        if name in owner.functions:
            yield owner.functions[name]
    elif isinstance(value, ast.Call):  # a wrapper of a function, or a function that makes one
        parts = [*value.args, *get_body(owner.functions.get(get_called_name(value), EMPTY))]
        for part in parts:
            yield from (node for node in ast.walk(part) if isinstance(node, Function))


def _find_unique_functions(tree: ast.Module) -> dict[str, Function]:
    """Return the functions and methods of a module, by name, except for those whose name is defined twice."""
    functions: dict[str, Function] = {}
    repeated: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name in functions:
                repeated.add(node.name)
            functions[node.name] = node
    return {name: function for name, function in functions.items() if name not in repeated}


def _extends(kind: ast.ClassDef, base: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.Name) and part.id == base.name for part in kind.bases)


def _has_no_state(node: ast.ClassDef) -> bool:
    """Return whether a class neither sets attributes of its instances nor declares fields."""
    for part in ast.walk(node):
        is_set = isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
        is_slots = isinstance(part, ast.Name) and part.id == "__slots__"
        if is_set or is_slots or (isinstance(part, ast.AnnAssign) and part in node.body):
            return False
    return True


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
