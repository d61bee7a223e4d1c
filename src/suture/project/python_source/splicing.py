"""Merge a snippet of Python into a file: its definitions replace those of the same name, everything else
stays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statements import (
    Definition,
    bound_names,
    count_preamble_lines,
    inner_statements,
    is_docstring,
    is_main_guard,
    is_valid_python,
    read_names,
    reindent,
    split_lines,
)
from suture.project.tuning import MAX_SPLICED_STATEMENTS

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom


class _NoPlaceError(Exception):
    """A part of the patch has no unique place in the file."""


def splice(original: str, patch: str) -> str | None:
    """Merge the definitions of `patch` into `original`, and keep everything else.

    A function, class or assignment replaces the one of the same name. A method without its class replaces
    the only method of that name. A class that omits members is merged member by member. New definitions are
    inserted before the first replaced one, and imports at the top. Examples of use are dropped.

    Returns:
        The new text; `None` if either text is invalid, or a part of the patch has no unique place.
    """
    old, new = parse_module(original), parse_module(patch)
    if old is None or new is None or _is_too_large(new):
        return None
    work = _Splice(old=split_lines(original), new=split_lines(patch), patch=new)
    try:
        work.module(old, new)
        text = work.text()
    except _NoPlaceError:
        return None
    return text if is_valid_python(text) else None


def _is_too_large(patch: ast.Module) -> bool:
    """Return whether a patch has too many statements side by side to compare them with each other."""
    return any(len(getattr(node, "body", ())) > MAX_SPLICED_STATEMENTS for node in (patch, *patch.body))


def _is_method(node: ast.stmt) -> bool:
    if not isinstance(node, Function):
        return False
    if any(getattr(decorator, "id", "") == "staticmethod" for decorator in node.decorator_list):
        return True
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return first[:1] != [] and first[0].arg in ("self", "cls")


def _one_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign) and len(bound_names(node)) == 1


@dataclass(kw_only=True)
class _Splice:
    """Collects edits of the old lines and applies them together, so that line numbers stay valid."""

    old: list[str]
    new: list[str]
    patch: ast.Module
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def text(self) -> str:
        edits = sorted(self.edits, key=lambda edit: edit[:2])
        parts: list[str] = []
        at = 0
        for start, end, source in edits:
            if start < at:
                raise _NoPlaceError
            parts += [*self.old[at:start], source]
            at = end
        return "".join([*parts, *self.old[at:]])

    def module(self, old: ast.Module, new: ast.Module) -> None:
        used = read_names(node for node in new.body if isinstance(node, Definition))
        known = frozenset(name for node in old.body for name in bound_names(node))
        wanted: list[ast.stmt] = []
        for node in new.body:
            if isinstance(node, Import):
                self._import(node, old.body, known)
            elif isinstance(node, ast.Return):
                raise _NoPlaceError  # the body of an unknown function
            elif isinstance(node, Definition):
                wanted.append(node)
            elif bound_names(node) & (known | used) and not is_main_guard(node):
                wanted.append(node)  # a new variable that no function reads is only an example of use
        methods = [node for node in wanted if _is_method(node) and not bound_names(node) & known]
        self._methods(methods, [node for node in old.body if isinstance(node, ast.ClassDef)])
        self._merge_scope(old.body, [node for node in wanted if node not in methods], prefix="")

    def _import(self, node: Import, body: Sequence[ast.stmt], known: frozenset[str]) -> None:
        source = self._source(node, self.patch.body, "")
        if not bound_names(node) <= known:
            at = count_preamble_lines(body)
            self.edits.append((at, at, source))
            return
        same = [old for old in body if isinstance(old, Import) and bound_names(old) == bound_names(node)]
        if len(same) == 1 and ast.dump(same[0]) != ast.dump(node):
            self._replace(same[0], body, source)

    def _methods(self, methods: Sequence[ast.stmt], classes: Sequence[ast.ClassDef]) -> None:
        """Merge methods that are given without their class."""
        owners: dict[str, ast.ClassDef] = {}
        for node in methods:
            having = [c for c in classes if any(bound_names(node) & bound_names(inner) for inner in c.body)]
            if len(having or classes) != 1:
                raise _NoPlaceError
            owners[(having or classes)[0].name] = (having or classes)[0]
        for owner in owners.values():
            mine = [n for n in methods if any(bound_names(n) & bound_names(inner) for inner in owner.body)]
            new = [
                n
                for n in methods
                if not any(bound_names(n) & bound_names(i) for c in classes for i in c.body)
            ]
            self._members(owner, [*mine, *new], self.patch.body)

    def _members(self, owner: ast.ClassDef, members: Sequence[ast.stmt], siblings: list[ast.stmt]) -> None:
        first = owner.body[0]
        if first.lineno == owner.lineno or first_line(first) <= owner.lineno:
            raise _NoPlaceError
        prefix = self.old[first.lineno - 1][: first.col_offset]
        self._merge_scope(owner.body, members, prefix=prefix, siblings=siblings)

    def _merge_scope(
        self,
        old: list[ast.stmt],
        new: Sequence[ast.stmt],
        *,
        prefix: str,
        siblings: list[ast.stmt] | None = None,
    ) -> None:
        """Merge the statements of one scope into those of another."""
        siblings = self.patch.body if siblings is None else siblings
        fresh: list[ast.stmt] = []
        replaced: list[ast.stmt] = []
        groups: dict[frozenset[str], list[ast.stmt]] = {}
        for node in new:
            groups.setdefault(bound_names(node), []).append(node)
        for names, nodes in groups.items():
            places = [node for node in old if names & bound_names(node) and not isinstance(node, Import)]
            if all(isinstance(node, Definition) for node in nodes):
                # Not the statements that import the name, or set it to None as a fallback.
                places = [node for node in places if isinstance(node, Definition)] or places
            if places:
                replaced += places
                self._group(nodes, places, old, siblings)
            else:
                fresh += nodes
        if fresh:
            self._insert(fresh, old, replaced, prefix, siblings)

    def _group(
        self,
        nodes: Sequence[ast.stmt],
        places: Sequence[ast.stmt],
        old: list[ast.stmt],
        siblings: list[ast.stmt],
    ) -> None:
        """Merge all statements that define one name, such as a property and its setter, or overloads."""
        if len(places) == 1 and len(nodes) == 1:
            self._single(nodes[0], places[0], old, siblings)
            return
        if not all(isinstance(node, Function) for node in (*nodes, *places)):
            raise _NoPlaceError
        roles, place_roles = (
            [definition_role(node) for node in nodes],
            [definition_role(node) for node in places],
        )
        prefix = self._margin(places[0])
        if roles == place_roles:
            pairs = list(zip(nodes, places, strict=True))
        elif len(set(roles)) == len(roles) and all(place_roles.count(role) <= 1 for role in roles):
            pairs = [
                (n, p) for n, r in zip(nodes, roles, strict=True) for p in places if definition_role(p) == r
            ]
        elif set(place_roles) <= set(roles) and "register" not in roles:
            text = "\n".join(self._source(node, siblings, prefix) for node in nodes)
            self._replace(places[0], old, text)
            for place in places[1:]:
                self._replace(place, old, "")
            return
        else:
            raise _NoPlaceError
        for node, place in pairs:
            if not (is_stub(node) and not is_stub(place)):
                self._replace(place, old, self._source(node, siblings, prefix))
        met = [node for node, _ in pairs]
        at = places[-1].end_lineno or 0
        for node in nodes:
            if node not in met:
                self.edits.append((at, at, "\n" + self._source(node, siblings, prefix)))

    def _single(self, node: ast.stmt, place: ast.stmt, old: list[ast.stmt], siblings: list[ast.stmt]) -> None:
        if is_stub(node) and not is_stub(place):
            return  # the model omitted the body; it did not mean to delete it
        prefix = self._margin(place)
        if isinstance(node, ast.ClassDef) and isinstance(place, ast.ClassDef):
            if preserves_definitions(self._source(node, siblings, ""), self._old_source(place)):
                self._replace(place, old, self._source(node, siblings, prefix))
            else:
                members = [n for n in node.body if bound_names(n)]
                self._members(place, members, node.body)
        elif isinstance(node, Function) and definition_role(node) != definition_role(place):
            at = place.end_lineno or 0  # a setter is inserted after its property
            self.edits.append((at, at, "\n" + self._source(node, siblings, prefix)))
        elif self._stands_for(node, place):
            self._replace(place, old, self._source(node, siblings, prefix))
        else:
            self._nested(node, place, siblings)

    def _stands_for(self, node: ast.stmt, place: ast.stmt) -> bool:
        if isinstance(node, Definition):
            same = isinstance(node, Function) and isinstance(place, Function)
            return same or (_one_name(place) and bound_names(place) == bound_names(node))
        plain = isinstance(place, ast.Assign | ast.AnnAssign) and isinstance(node, ast.Assign | ast.AnnAssign)
        compound = type(place) is type(node) and any(True for _ in inner_statements(place))
        return (plain or compound) and bound_names(place) <= bound_names(node)

    def _nested(self, node: ast.stmt, place: ast.stmt, siblings: list[ast.stmt]) -> None:
        """Replace the only definition of that name inside an `if` or `try`."""
        inner = [n for n in inner_statements(place) if bound_names(n) & bound_names(node)]
        if len(inner) != 1 or isinstance(inner[0], Import) or isinstance(place, Definition):
            raise _NoPlaceError
        self._single(node, inner[0], list(inner_statements(place)), siblings)

    def _insert(
        self,
        fresh: Sequence[ast.stmt],
        old: list[ast.stmt],
        replaced: Sequence[ast.stmt],
        prefix: str,
        siblings: list[ast.stmt],
    ) -> None:
        gap = "\n" if prefix else "\n\n"
        if prefix and (fields := [node for node in fresh if not isinstance(node, Definition)]):
            self._insert_fields(fields, old, prefix, siblings)
            fresh = [node for node in fresh if node not in fields]
        pieces = gap.join(self._source(node, siblings, prefix) for node in fresh)
        before = [*replaced] or [node for node in old if is_main_guard(node)]
        if pieces and before:
            at = min(first_line(node) for node in before) - 1
            while at and self.old[at - 1].strip().startswith("#"):
                at -= 1  # a comment stays with the statement below it
            self.edits.append((at, at, pieces + gap))
        elif pieces:
            at = (old[-1].end_lineno or 0) if old else len(self.old)
            newline = "" if at == 0 or self.old[at - 1].endswith("\n") else "\n"
            self.edits.append((at, at, newline + gap + pieces))

    def _insert_fields(
        self, fields: Sequence[ast.stmt], old: list[ast.stmt], prefix: str, siblings: list[ast.stmt]
    ) -> None:
        """Insert new variables of a class after the existing ones: in a dataclass, their order matters."""
        above = [node for node in old if isinstance(node, ast.Assign | ast.AnnAssign) or is_docstring(node)]
        at = (above[-1].end_lineno or 0) if above else first_line(old[0]) - 1
        self.edits.append((at, at, "".join(self._source(node, siblings, prefix) for node in fields)))

    def _replace(self, place: ast.stmt, siblings: Iterable[ast.stmt], source: str) -> None:
        start, end = first_line(place) - 1, place.end_lineno or place.lineno
        _require_own_lines(place, siblings)
        self.edits.append((start, end, source))

    def _margin(self, place: ast.stmt) -> str:
        return self.old[place.lineno - 1][: place.col_offset]

    def _old_source(self, node: ast.stmt) -> str:
        source = "".join(self.old[first_line(node) - 1 : node.end_lineno])
        return reindent(source, "", drop=node.col_offset)

    def _source(self, node: ast.stmt, siblings: Iterable[ast.stmt], prefix: str) -> str:
        _require_own_lines(node, siblings)
        source = "".join(self.new[first_line(node) - 1 : node.end_lineno])
        return reindent(source, prefix, drop=node.col_offset).rstrip("\n") + "\n"


def _require_own_lines(node: ast.stmt, siblings: Iterable[ast.stmt]) -> None:
    start, end = first_line(node), node.end_lineno or node.lineno
    for other in siblings:
        if other is not node and first_line(other) <= end and start <= (other.end_lineno or other.lineno):
            raise _NoPlaceError


Member = tuple[str, ...]
BROKEN_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)[ \t]*[(:\[]", re.MULTILINE)
BROKEN_METHOD = re.compile(r"^[ \t]+(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\([ \t]*(?:self|cls)\b", re.MULTILINE)


def preserves_definitions(code: str, original: str) -> bool:
    """Return whether `code` still contains everything that `original` defines, so that it may replace it.

    Methods count, and so do the setters of properties, and every import that `code` uses. A function whose
    body the model omitted (`...`) does not count as contained. If the original is invalid, only its
    top-level functions, classes and methods count.
    """
    old, new = parse_module(original), parse_module(code)
    if new is None:
        return False
    if old is None:
        methods = set(BROKEN_METHOD.findall(original)) <= set(BROKEN_METHOD.findall(code))
        return methods and top_level_names(original) <= top_level_names(code)
    left_out = set(_members(new.body, empty=True)) - set(_members(old.body, empty=True))
    if not set(_members(old.body)) <= set(_members(new.body)) - left_out:
        return False
    # An import that only the old code used may be dropped: it may be the mistake itself. An import that
    # nothing used is there for other modules.
    dropped = (
        _imported(old.body) - {name for node in new.body for name in bound_names(node)} - {"annotations"}
    )
    return not (dropped & read_names(new.body)) and dropped <= read_names(old.body)


def top_level_names(code: str) -> frozenset[str]:
    """Return the names that a module's top level defines, without imports. Invalid code is read line by
    line.
    """
    tree = parse_module(code)
    if tree is None:
        return frozenset(BROKEN_DEFINITION.findall(code))
    return frozenset(member[0] for member in _members(tree.body))


def _members(body: Iterable[ast.stmt], *, empty: bool = False) -> Iterator[Member]:
    """Yield each definition as (class, ..., name, role); with `empty`, only functions that do nothing."""
    for node in body:
        if isinstance(node, Definition):
            if not empty or is_stub(node):
                yield node.name, definition_role(node)
            if isinstance(node, ast.ClassDef):
                yield from () if empty else _header(node)
                yield from ((node.name, *member) for member in _members(node.body, empty=empty))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            continue
        elif inner := list(inner_statements(node)):
            yield from _members(inner, empty=empty)
        elif not empty:
            yield from ((name, "") for name in bound_names(node))


def _header(node: ast.ClassDef) -> Iterator[Member]:
    """Yield the parts of a class that partial snippets usually omit. None of their names can be a member."""
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
            names |= bound_names(node)
        else:
            names |= _imported(inner_statements(node))
    return frozenset(names)


def is_stub(node: ast.stmt) -> bool:
    """Return whether a statement is a function that does nothing: a docstring, `pass` or `...`."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and all(
        isinstance(inner, ast.Pass)
        or is_docstring(inner)
        or (
            isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant) and inner.value.value is ...
        )
        for inner in node.body
    )


def definition_role(node: ast.stmt) -> str:
    """Return what distinguishes definitions of one name: setter, deleter, getter, overload, register, or
    nothing.
    """
    for decorator in node.decorator_list if isinstance(node, Definition) else ():
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in ("setter", "deleter", "getter", "overload", "register"):
            return str(name)
    return ""
