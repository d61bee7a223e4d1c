"""Split source files into units: functions with their classes, and values at the top level of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from suture.core.records import Language
from suture.mutation import has_grammar
from suture.mutation.tree_sitter.syntax_tree import get_field, walk
from suture.mutation.tree_sitter.value_kinds import CALLS, FUNCTIONS, STRINGS, parse_source_tree
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.scopes import Function
from suture.project.python_source.statement_edits import (
    Definition,
    bound_names,
    inner_statements,
)

if TYPE_CHECKING:
    from tree_sitter import Node

UnitKind = Literal["function", "class", "value", "import"]
MAX_CACHED_FILES = 2048
"""Number of files whose units are cached: the context of a later patch has mostly the same ones."""
MAX_SPLIT_LINES = 120
"""Maximum lines of a function that is one unit. A longer one is split into the functions inside it, as in a module that
one function wraps. Chosen by judgement; not measured."""
NAME_NODES = frozenset((
    "identifier", "property_identifier", "field_identifier", "type_identifier",
    "shorthand_property_identifier", "private_property_identifier",
))  # fmt: skip
CLASSES = frozenset(("class_declaration", "abstract_class_declaration", "class", "interface_declaration"))
IMPORTS = frozenset(("import_statement", "import_declaration", "package_clause"))
TRANSPARENT = frozenset(("export_statement", "ambient_declaration"))
"""Nodes around a declaration that say nothing about its kind."""


@dataclass(frozen=True, kw_only=True)
class CodeUnit:
    """A part of a file that is shown whole or not at all.

    Attributes:
        name: Name with its class, as in `Cart.total`; the first of several names; may be empty.
        first: First line, from 1, with decorators.
        headers: The lines of the classes' headers around it.
        calls: Names that it calls, of methods without their object.
        binds: Names that an import or a value binds, or attributes that a function of Python assigns.
    """

    path: str
    name: str
    kind: UnitKind
    first: int
    last: int
    headers: tuple[range, ...] = ()
    names: frozenset[str] = field(default_factory=frozenset)
    calls: frozenset[str] = field(default_factory=frozenset)
    binds: frozenset[str] = field(default_factory=frozenset)

    @property
    def short_name(self) -> str:
        """The name without its class."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """The name of its class; empty if it has none."""
        return self.name.rpartition(".")[0]

    def contains(self, line: int) -> bool:
        """Whether a line is part of it."""
        return self.first <= line <= self.last


def list_units(path: str, text: str, language: Language) -> tuple[CodeUnit, ...]:
    """Return the units of a file, in order; none if it does not parse or has no grammar."""
    if LANGUAGES[language].parsed:
        return _list_python_units(path, text)
    return _list_tree_units(path, text, language) if has_grammar(language) else ()


def find_unit(units: Iterable[CodeUnit], line: int) -> CodeUnit | None:
    """Return the innermost unit that holds a line: a method rather than its class."""
    holding = [unit for unit in units if unit.contains(line)]
    return min(holding, key=lambda unit: unit.last - unit.first, default=None)


def group_by_name(units_by_path: Mapping[str, Sequence[CodeUnit]]) -> dict[str, list[CodeUnit]]:
    """Return the functions, classes and values by their names without classes."""
    groups: dict[str, list[CodeUnit]] = {}
    for units in units_by_path.values():
        for unit in units:
            if unit.kind != "import" and unit.short_name:
                groups.setdefault(unit.short_name, []).append(unit)
    return groups


@lru_cache(maxsize=MAX_CACHED_FILES)
def _list_python_units(path: str, text: str) -> tuple[CodeUnit, ...]:
    tree = parse_module(text)
    return tuple(_iter_python(path, tree.body, (), "")) if tree is not None else ()


def _iter_python(
    path: str, body: Iterable[ast.stmt], headers: tuple[range, ...], prefix: str
) -> Iterator[CodeUnit]:
    for node in body:
        first, last = first_line(node), node.end_lineno or node.lineno
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield CodeUnit(path=path, name="", kind="import", first=first, last=last, binds=bound_names(node))
        elif isinstance(node, ast.ClassDef):
            header = range(first, max(first_line(node.body[0]), node.lineno + 1))
            yield CodeUnit(
                path=path,
                name=prefix + node.name,
                kind="class",
                first=first,
                last=last,
                headers=headers,
                names=frozenset(name for base in node.bases for name in _used_names(base)),
            )
            yield from _iter_python(path, node.body, (*headers, header), f"{prefix}{node.name}.")
        elif isinstance(node, Function | ast.Assign | ast.AnnAssign | ast.AugAssign):
            is_function = isinstance(node, Function)
            bound = bound_names(node)
            yield CodeUnit(
                path=path,
                name=prefix + min(bound, default=""),
                kind="function" if is_function else "value",
                first=first,
                last=last,
                headers=headers,
                names=frozenset(_used_names(node)),
                calls=frozenset(_called_names(node)),
                binds=frozenset(_assigned_attributes(node)) if is_function else bound,
            )
        elif not isinstance(node, ast.Expr):
            yield from _iter_python(path, inner_statements(node), headers, prefix)


def _used_names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, Definition) and part is not node:
            yield part.name


def _assigned_attributes(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            yield part.attr


def _called_names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            if isinstance(part.func, ast.Name):
                yield part.func.id
            elif isinstance(part.func, ast.Attribute):
                yield part.func.attr


@lru_cache(maxsize=MAX_CACHED_FILES)
def _list_tree_units(path: str, text: str, language: Language) -> tuple[CodeUnit, ...]:
    return tuple(_TreeReader(path, text).read(parse_source_tree(text, path, language)))


class _TreeReader:
    """Reads the units of a JavaScript, TypeScript or Go file."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._raw = text.encode("utf-8", "surrogatepass")

    def read(self, root: Node) -> Iterator[CodeUnit]:
        """Yield the units of a file's top level."""
        for node in root.named_children:
            yield from self._read_statement(node, (), "")

    def _text(self, node: Node | None) -> str:
        return (
            self._raw[node.start_byte : node.end_byte].decode("utf-8", "replace") if node is not None else ""
        )

    def _read_statement(self, statement: Node, headers: tuple[range, ...], prefix: str) -> Iterator[CodeUnit]:
        node = statement
        while node.type in TRANSPARENT:
            inner = get_field(node, "declaration", "value")
            if inner is None:
                break
            node = inner
        if node.type == "comment":
            return
        if node.type in IMPORTS or self._is_require(node):
            # Go names a package by the end of its path.
            packages = (
                self._text(part).strip("\"'`").rpartition("/")[2]
                for part in walk(node)
                if part.type in STRINGS
            )
            binds = frozenset((*self._names(node), *packages))
            yield self._unit(statement, "import", "", headers, binds=binds)
            return
        if node.type in CLASSES:
            yield from self._read_class(statement, node, headers, prefix)
            return
        function = _find_outer_function(node)
        if function is None:
            is_type = node.type in ("type_declaration", "type_alias_declaration", "enum_declaration")
            yield self._unit(statement, "class" if is_type else "value", prefix + self._name(node), headers)
            return
        yield from self._read_function(statement, node, function, headers, prefix)

    def _read_function(
        self, statement: Node, node: Node, function: Node, headers: tuple[range, ...], prefix: str
    ) -> Iterator[CodeUnit]:
        body = get_field(function, "body")
        is_long = statement.end_point[0] - statement.start_point[0] > MAX_SPLIT_LINES
        inner = [
            child for child in (body.named_children if body is not None else ()) if _holds_function(child)
        ]
        yield self._unit(statement, "function", prefix + self._name(node), headers)
        if is_long and len(inner) > 1:
            for child in inner:
                yield from self._read_statement(child, headers, prefix)

    def _read_class(
        self, statement: Node, node: Node, headers: tuple[range, ...], prefix: str
    ) -> Iterator[CodeUnit]:
        name = prefix + self._text(get_field(node, "name"))
        yield self._unit(statement, "class", name, headers)
        body = get_field(node, "body")
        if body is None:
            return
        header = range(statement.start_point[0] + 1, body.start_point[0] + 2)
        for member in body.named_children:
            if member.type != "comment":
                kind: UnitKind = "function" if _holds_function(member) else "value"
                own_name = self._text(get_field(member, "name", "property"))
                yield self._unit(member, kind, f"{name}.{own_name}", (*headers, header))

    def _unit(
        self,
        node: Node,
        kind: UnitKind,
        name: str,
        headers: tuple[range, ...],
        binds: frozenset[str] = frozenset(),
    ) -> CodeUnit:
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        return CodeUnit(
            path=self._path,
            name=name,
            kind=kind,
            first=first - _count_comment_lines(node),
            last=last,
            headers=headers,
            names=frozenset(self._names(node)) if kind != "class" else frozenset(),
            calls=frozenset(self._calls(node)) if kind != "class" else frozenset(),
            binds=binds,
        )

    def _is_require(self, node: Node) -> bool:
        return (
            node.type in ("lexical_declaration", "variable_declaration")
            and "require(" in self._text(node)[:300]
        )

    def _name(self, node: Node) -> str:
        """Return the name that a statement declares or assigns; of a method of Go with its receiver's type."""
        name = get_field(node, "name")
        if node.type == "method_declaration":
            receiver = get_field(node, "receiver")
            types = [self._text(n) for n in walk(receiver) if n.type == "type_identifier"] if receiver else []
            return f"{types[0]}.{self._text(name)}" if types else self._text(name)
        if name is not None:
            return self._text(name)
        for part in walk(node):
            if part.type in ("variable_declarator", "type_spec", "const_spec", "var_spec", "type_alias"):
                return self._text(get_field(part, "name"))
            if part.type == "assignment_expression":
                left = self._text(get_field(part, "left"))
                return ".".join(
                    word for word in left.split(".") if word not in ("prototype", "exports", "module")
                )
            if part.type == "pair":
                return self._text(get_field(part, "key"))
        return ""

    def _names(self, node: Node) -> Iterator[str]:
        return (self._text(part) for part in walk(node) if part.type in NAME_NODES)

    def _calls(self, node: Node) -> Iterator[str]:
        for part in walk(node):
            if part.type in CALLS:
                function = get_field(part, "function", "constructor")
                yield self._text(function).rpartition(".")[2]


def _find_outer_function(node: Node) -> Node | None:
    return next((part for part in walk(node) if part.type in FUNCTIONS), None)


def _holds_function(node: Node) -> bool:
    return _find_outer_function(node) is not None


def _count_comment_lines(node: Node) -> int:
    """Return the lines of the comments directly above a node, which describe it."""
    first, above = node.start_point[0], node.prev_named_sibling
    while above is not None and above.type == "comment" and above.end_point[0] >= first - 1:
        if (
            above.prev_named_sibling is not None
            and above.prev_named_sibling.end_point[0] == above.start_point[0]
        ):
            break  # it follows another statement on its line
        first, above = above.start_point[0], above.prev_named_sibling
    return node.start_point[0] - first
