"""What of a module would be lost if another text took its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from suture.project.python_source.parsing import parsed
from suture.project.python_source.python_code import (
    Definition,
    inner_statements,
    is_docstring,
    names_of,
    read_names,
)

Member = tuple[str, ...]
BROKEN_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)[ \t]*[(:\[]", re.MULTILINE)
BROKEN_METHOD = re.compile(r"^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\([ \t]*(?:self|cls)\b", re.MULTILINE)


def covers(code: str, original: str) -> bool:
    """Whether `code` still holds whatever `original` defines, so that it may take its place.

    Methods count, and so do a property's setter and every import that `code` goes on to use. A function whose
    body the model left out (`...`) does not count as held. Of an original that does not parse, the top-level
    functions and classes count, and the methods.
    """
    old, new = parsed(original), parsed(code)
    if new is None:
        return False
    if old is None:
        methods = set(BROKEN_METHOD.findall(original)) <= set(BROKEN_METHOD.findall(code))
        return methods and promised_names(original) <= promised_names(code)
    left_out = set(_members(new.body, empty=True)) - set(_members(old.body, empty=True))
    if not set(_members(old.body)) <= set(_members(new.body)) - left_out:
        return False
    # An import that only the old code used may go: it can be the very mistake. One that nothing here used
    # is there for other modules.
    dropped = _imported(old.body) - {name for node in new.body for name in names_of(node)} - {"annotations"}
    return not (dropped & read_names(new.body)) and dropped <= read_names(old.body)


def promised_names(code: str) -> frozenset[str]:
    """The names of a module's own top level, imports left out; read line by line where it does not parse."""
    tree = parsed(code)
    if tree is None:
        return frozenset(BROKEN_DEFINITION.findall(code))
    return frozenset(member[0] for member in _members(tree.body))


def _members(body: Iterable[ast.stmt], *, empty: bool = False) -> Iterator[Member]:
    """Each definition as (class, ..., name, role); with `empty` only functions that do nothing."""
    for node in body:
        if isinstance(node, Definition):
            if not empty or is_empty(node):
                yield node.name, role_of(node)
            if isinstance(node, ast.ClassDef):
                yield from () if empty else _header(node)
                yield from ((node.name, *member) for member in _members(node.body, empty=empty))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            continue
        elif inner := list(inner_statements(node)):
            yield from _members(inner, empty=empty)
        elif not empty:
            yield from ((name, "") for name in names_of(node))


def _header(node: ast.ClassDef) -> Iterator[Member]:
    """What a snippet of a class leaves out first; no name in it can be one of a member."""
    if node.bases or node.keywords:
        yield node.name, "(bases)", ""
    if node.decorator_list:
        yield node.name, "(decorators)", ""
    if is_docstring(node.body[0]):
        yield node.name, "(docstring)", ""


def _imported(body: Iterable[ast.stmt]) -> frozenset[str]:
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= names_of(node)
        else:
            names |= _imported(inner_statements(node))
    return frozenset(names)


def is_empty(node: ast.stmt) -> bool:
    """Whether it is a function that does nothing: a docstring, `pass`, `...`."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and all(
        isinstance(inner, ast.Pass)
        or is_docstring(inner)
        or (
            isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant) and inner.value.value is ...
        )
        for inner in node.body
    )


def role_of(node: ast.stmt) -> str:
    """What tells definitions of one name apart: setter, deleter, getter, overload, register, or nothing."""
    for decorator in node.decorator_list if isinstance(node, Definition) else ():
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in ("setter", "deleter", "getter", "overload", "register"):
            return str(name)
    return ""
