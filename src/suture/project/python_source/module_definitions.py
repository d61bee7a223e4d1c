"""The definitions of a Python module: which there are, and whether new code keeps those of the old.

The role of a definition distinguishes several definitions of one name, such as a property and its setter. A stub
is a function whose body the model omitted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from suture.project.python_source.parsing import parse_module
from suture.project.python_source.statement_edits import (
    Definition,
    bound_names,
    inner_statements,
    is_docstring,
    read_names,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Member = tuple[str, ...]
"""`(classes around the member..., name of the member, its role)`, such as `("Cart", "total", "setter")`."""
BROKEN_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)[ \t]*[(:\[]", re.MULTILINE)
"""Matches a function or class at the top level of a module that need not be valid."""
BROKEN_METHOD = re.compile(r"^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\([ \t]*(?:self|cls)\b", re.MULTILINE)
"""Matches a method in a module that does not parse."""


def preserves_definitions(code: str, original: str) -> bool:
    """Return whether new code may replace the original, because it still defines everything in it.

    Methods count, and so do the setters of properties, and every import that the new code uses. A function
    whose body the model omitted (`...`) does not count as defined. If the original is invalid, only its
    top-level functions, classes and methods count.
    """
    old, new = parse_module(original), parse_module(code)
    if new is None:
        return False
    if old is None:  # read it line by line
        methods = set(BROKEN_METHOD.findall(original)) <= set(BROKEN_METHOD.findall(code))
        return methods and top_level_names(original) <= top_level_names(code)
    new_stubs = set(_members(new.body, stubs_only=True)) - set(_members(old.body, stubs_only=True))
    if not set(_members(old.body)) <= set(_members(new.body)) - new_stubs:
        return False
    # An import that only the old code used may be dropped: it may be the mistake itself. An import that
    # nothing used is there for other modules.
    new_names = {name for node in new.body for name in bound_names(node)}
    # `annotations` comes from `__future__`; nothing reads it.
    dropped = _imported(old.body) - new_names - {"annotations"}
    return not (dropped & read_names(new.body)) and dropped <= read_names(old.body)


def top_level_names(code: str) -> frozenset[str]:
    """Return the names that a module defines at its top level, without imports, even if it is invalid."""
    tree = parse_module(code)
    if tree is None:
        return frozenset(BROKEN_DEFINITION.findall(code))
    return frozenset(member[0] for member in _members(tree.body))


def _members(body: Iterable[ast.stmt], *, stubs_only: bool = False) -> Iterator[Member]:
    """Yield all definitions in a scope and in its classes, or only the stubs among them."""
    for node in body:
        if isinstance(node, Definition):
            if not stubs_only or is_stub(node):
                yield node.name, definition_role(node)
            if isinstance(node, ast.ClassDef):
                yield from () if stubs_only else _header_members(node)
                yield from ((node.name, *member) for member in _members(node.body, stubs_only=stubs_only))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            continue
        elif inner := list(inner_statements(node)):
            yield from _members(inner, stubs_only=stubs_only)
        elif not stubs_only:
            yield from ((name, "") for name in bound_names(node))


def _header_members(node: ast.ClassDef) -> Iterator[Member]:
    """Yield the parts of a class that a partial snippet usually omits, as if they were members.

    Their names contain brackets, so that no real member has the same name.
    """
    if node.bases or node.keywords:
        yield node.name, "(bases)", ""
    if node.decorator_list:
        yield node.name, "(decorators)", ""
    if is_docstring(node.body[0]):
        yield node.name, "(docstring)", ""


def _imported(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the names that the imports of a scope bind, also those inside `if`, `try` and the like."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= bound_names(node)
        else:
            names |= _imported(inner_statements(node))
    return frozenset(names)


def is_stub(node: ast.stmt) -> bool:
    """Return whether a statement is a function with only a docstring, `pass` or `...` in its body."""
    return isinstance(node, Function) and all(
        isinstance(inner, ast.Pass) or is_docstring(inner) or _is_ellipsis(inner) for inner in node.body
    )


def _is_ellipsis(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def definition_role(node: ast.stmt) -> str:
    """Return the role of a definition among those of its name; empty if it has none.

    A role is `setter`, `deleter`, `getter`, `overload` or `register`, by the definition's decorator.
    """
    for decorator in node.decorator_list if isinstance(node, Definition) else ():
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("setter", "deleter", "getter", "overload", "register"):
            return str(name)
    return ""


@dataclass(frozen=True, kw_only=True)
class QualifiedClass:
    """A class of a module, with its qualified name, such as `Shop.Cart`."""

    name: str
    node: ast.ClassDef


def find_classes(scope: Iterable[ast.stmt], prefix: str = "") -> Iterator[QualifiedClass]:
    """Yield the classes of a scope, and those inside of them."""
    for node in scope:
        if isinstance(node, ast.ClassDef):
            yield QualifiedClass(name=f"{prefix}{node.name}", node=node)
            yield from find_classes(node.body, f"{prefix}{node.name}.")
        else:
            yield from find_classes(inner_statements(node), prefix)


def find_nested_functions(
    scope: Iterable[ast.stmt], prefix: str = "", *, is_inside: bool = False
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions inside of functions, with their qualified names."""
    for node in scope:
        if isinstance(node, Function) and is_inside:
            yield f"{prefix}{node.name}", node
        if isinstance(node, Definition):
            inside = is_inside or isinstance(node, Function)
            yield from find_nested_functions(node.body, f"{prefix}{node.name}.", is_inside=inside)
        else:
            yield from find_nested_functions(inner_statements(node), prefix, is_inside=is_inside)
