"""Merge a snippet of Python, such as a model writes, into a file.

The definitions of the snippet (the patch) replace those of the same name in the file (the original), and
everything else in the file stays. The module works on lines: the syntax trees say which lines to replace.

`module_definitions` says what a stub and the role of a definition are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from suture.project.python_source.module_definitions import (
    Function,
    QualifiedClass,
    definition_role,
    find_classes,
    find_nested_functions,
    is_stub,
    preserves_definitions,
)
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statement_edits import (
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

Import = ast.Import | ast.ImportFrom


class NoPlaceError(Exception):
    """A part of the patch has no unique place in the original.

    Attributes:
        candidates: Qualified names of the definitions that it may mean, such as `Cart.total`; empty if none.
    """

    def __init__(self, candidates: Iterable[str] = ()) -> None:
        super().__init__()
        self.candidates = tuple(candidates)


def splice(original: str, patch: str) -> str | None:
    """Return what `merge_snippet` returns, or `None` if a part of the patch has no unique place."""
    try:
        return merge_snippet(original, patch)
    except NoPlaceError:
        return None


def merge_snippet(original: str, patch: str, context: str = "") -> str:
    """Return `original` with the definitions of `patch` merged into it, and everything else as it was.

    A function, class or assignment replaces the one of the same name. A method without its class replaces
    the only method of that name; of several, the one in the class that the context names, or that has the
    other methods of the patch. A class that omits members is merged member by member. New definitions are
    inserted before the first replaced one, and imports at the top. Examples of use are dropped: statements
    that call the code, and variables that no definition of the patch reads.

    Args:
        patch: A part of a module. An indented part belongs to a class or a function.
        context: Text about the patch that may name the class, as in "`Cart.total` is wrong".

    Raises:
        NoPlaceError: Either source is invalid, or a part of the patch has no unique place.
    """
    margin, patch = move_to_margin(patch)
    old_tree, new_tree = parse_module(original), parse_module(patch)
    if old_tree is None or new_tree is None or _is_too_large(new_tree):
        raise NoPlaceError
    merge = _Merge(
        old_lines=split_lines(original),
        new_lines=split_lines(patch),
        patch=new_tree,
        context=context,
        margin=margin,
    )
    merge.merge_modules(old_tree.body)
    text = merge.apply_edits()
    if not is_valid_python(text):
        raise NoPlaceError
    return text


def move_to_margin(code: str) -> tuple[int, str]:
    """Return `(width of its indentation, code at the left margin)`, also if only the first line lacks it."""
    if is_valid_python(code):
        return 0, code
    for added in ("", "    ", "        ", "\t"):
        indented = f"{added}{code}"
        first = next((line for line in indented.split("\n") if line.strip()), "")
        margin = len(first) - len(first.lstrip())
        if margin and is_valid_python(moved := reindent(indented, "", drop=margin)):
            return margin, moved
    return 0, code


def _is_too_large(patch: ast.Module) -> bool:
    """Return whether a patch has too many statements in one scope to compare them with each other."""
    return any(len(getattr(node, "body", ())) > MAX_SPLICED_STATEMENTS for node in (patch, *patch.body))


MEMBER_DECORATORS = frozenset(
    {
        "staticmethod",
        "classmethod",
        "property",
        "cached_property",
        "setter",
        "deleter",
        "getter",
        "abstractmethod",
    }
)
"""Decorators that only the members of a class have."""


def _is_method(node: ast.stmt) -> bool:
    """Return whether a function looks like a method: by its first parameter, or by its decorators."""
    if not isinstance(node, Function):
        return False
    decorators = {getattr(d, "attr", getattr(d, "id", "")) for d in node.decorator_list}
    return bool(decorators & MEMBER_DECORATORS) or _first_parameter(node) in ("self", "cls")


def _first_parameter(node: ast.stmt) -> str:
    """Return the name of a function's first parameter; empty if it has none."""
    parameters = [*node.args.posonlyargs, *node.args.args] if isinstance(node, Function) else []
    return parameters[0].arg if parameters else ""


def _binds_one_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign) and len(bound_names(node)) == 1


def _names(context: str, name: str) -> bool:
    """Return whether some prose names a definition."""
    return re.search(rf"(?<![\w]){re.escape(name)}(?!\w)", context) is not None


def _defines_member(owner: ast.ClassDef, node: ast.stmt) -> bool:
    """Return whether a class has a member of the same name as a statement."""
    return any(bound_names(node) & bound_names(member) for member in owner.body)


@dataclass(kw_only=True)
class _Merge:
    """Collects edits of the original's lines and applies them together, so that line numbers stay valid.

    In its methods, `old` statements come from the original and `new` ones from the patch. `old_scope` are all
    statements of the scope (a module, a class, an `if`) that contains an old statement, and `new_scope` those
    of the scope that contains a new one.

    Attributes:
        edits: (first old line to replace, from 0; line after the last one; new source).
        context: Prose about the patch, which may name a class.
        margin: The width of the indentation that the patch had.
    """

    old_lines: list[str]
    new_lines: list[str]
    patch: ast.Module
    context: str = ""
    margin: int = 0
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def apply_edits(self) -> str:
        """Return the original with all edits."""
        parts: list[str] = []
        copied = 0
        for start, end, source in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < copied:  # two edits overlap
                raise NoPlaceError
            parts += [*self.old_lines[copied:start], source]
            copied = end
        return "".join([*parts, *self.old_lines[copied:]])

    def merge_modules(self, old_scope: list[ast.stmt]) -> None:
        """Merge the statements of the patch into those of the original module."""
        read_by_definitions = read_names(node for node in self.patch.body if isinstance(node, Definition))
        old_names = frozenset(name for node in old_scope for name in bound_names(node))
        merged: list[ast.stmt] = []
        for node in self.patch.body:
            if isinstance(node, Import):
                self._merge_import(node, old_scope, old_names)
            elif isinstance(node, ast.Return):
                raise NoPlaceError  # the patch is the body of an unknown function
            elif isinstance(node, Definition):
                merged.append(node)
            elif bound_names(node) & (old_names | read_by_definitions) and not is_main_guard(node):
                merged.append(node)  # a new variable that no function reads is only an example of use
            elif self.margin and bound_names(node):
                merged.append(node)
        owners = list(find_classes(old_scope))
        members = [node for node in merged if self._is_member(node, old_scope, owners)]
        self._merge_methods(members, owners)
        others = [node for node in merged if node not in members]
        nested = {node: place for node in others if (place := self._find_nested(node, old_scope, old_names))}
        for node, old in nested.items():
            self._merge_statement(node, old, [old], self.patch.body)
        self._merge_scope(old_scope, [node for node in others if node not in nested], prefix="")

    def _is_member(
        self, new: ast.stmt, old_scope: Sequence[ast.stmt], owners: Sequence[QualifiedClass]
    ) -> bool:
        """Return whether a statement of the patch belongs to a class whose header the patch lacks."""
        if not owners:
            return False
        namesakes = [old for old in old_scope if bound_names(new) & bound_names(old)]
        is_known = any(_defines_member(owner.node, new) for owner in owners)
        if self.margin and not isinstance(new, ast.ClassDef):
            return is_known or _is_method(new) or not isinstance(new, Definition)
        if any(_is_method(old) for old in namesakes):
            return False
        if not _is_method(new):
            return is_known and not namesakes and self._has_signs_of_member(new, owners)
        return is_known or not namesakes

    def _has_signs_of_member(self, new: ast.stmt, owners: Sequence[QualifiedClass]) -> bool:
        """Return whether the context names a function with its class, or a member has its first parameter."""
        name = getattr(new, "name", "")
        return any(
            _names(self.context, f"{owner.node.name}.{name}")
            or (_first_parameter(new) and _first_parameter(member) == _first_parameter(new))
            for owner in owners
            for member in owner.node.body
            if getattr(member, "name", "") == name
        )

    def _find_nested(
        self, new: ast.stmt, old_scope: Sequence[ast.stmt], old_names: frozenset[str]
    ) -> ast.stmt | None:
        """Return the function inside another function that a function of the patch replaces, if any."""
        if not isinstance(new, Function) or (new.name in old_names and not self.margin):
            return None
        patch_names = {name for node in self.patch.body for name in bound_names(node)}
        nested = [
            (name, node)
            for name, node in find_nested_functions(old_scope)
            if node.name == new.name and not patch_names & set(name.split(".")[:-1])
        ]
        named = [(name, node) for name, node in nested if _names(self.context, name)] or nested
        if len(named) > 1:
            raise NoPlaceError(name for name, _ in named)
        return named[0][1] if named else None

    def _merge_import(self, new: Import, old_scope: Sequence[ast.stmt], old_names: frozenset[str]) -> None:
        """Add an import of new names, or replace the only one that binds the same names."""
        source = self._new_source(new, self.patch.body, "")
        if not bound_names(new) <= old_names:
            line = count_preamble_lines(old_scope)
            self.edits.append((line, line, source))
            return
        old_imports = [old for old in old_scope if isinstance(old, Import)]
        equivalents = [old for old in old_imports if bound_names(old) == bound_names(new)]
        if len(equivalents) == 1 and ast.dump(equivalents[0]) != ast.dump(new):
            self._replace(equivalents[0], old_scope, source)

    def _merge_methods(self, members: Sequence[ast.stmt], owners: Sequence[QualifiedClass]) -> None:
        """Merge members of classes that are given without their class."""
        choices: list[tuple[ast.stmt, list[QualifiedClass]]] = []
        for member in members:
            # A member that no class has yet belongs to the only class of the module, or to the one of the others.
            choices.append((member, [o for o in owners if _defines_member(o.node, member)] or list(owners)))
        certain = {possible[0].name for _, possible in choices if len(possible) == 1}
        groups: dict[str, list[ast.stmt]] = {}
        for member, possible in choices:
            owner = self._choose_owner(member, possible, certain)
            groups.setdefault(owner.name, []).append(member)
        for owner in owners:
            if group := groups.get(owner.name):
                replacing = [member for member in group if _defines_member(owner.node, member)]
                added = [member for member in group if member not in replacing]
                self._merge_members(owner.node, [*replacing, *added], self.patch.body)

    def _choose_owner(
        self, member: ast.stmt, possible: Sequence[QualifiedClass], certain: Collection[str]
    ) -> QualifiedClass:
        """Return the class of a member: the only one, or the one that the context or the other members name."""
        name = next(iter(sorted(bound_names(member))), "")
        matches = [
            [owner for owner in possible if _names(self.context, f"{owner.name}.{name}")],
            [owner for owner in possible if owner.name in certain],
            [owner for owner in possible if _names(self.context, owner.node.name)],
            [owner for owner in possible if owner.node.body[0].col_offset == self.margin],
        ]
        for match in [list(possible), *matches]:
            if len(match) == 1:
                return match[0]
        raise NoPlaceError(f"{owner.name}.{name}" for owner in possible)

    def _merge_members(
        self, owner: ast.ClassDef, members: Sequence[ast.stmt], new_scope: list[ast.stmt]
    ) -> None:
        """Merge statements of the patch into the body of a class of the original."""
        first_member = owner.body[0]
        if first_member.lineno == owner.lineno or first_line(first_member) <= owner.lineno:
            raise NoPlaceError  # the class is on one line
        self._merge_scope(owner.body, members, prefix=self._margin(first_member), new_scope=new_scope)

    def _merge_scope(
        self,
        old_scope: list[ast.stmt],
        new_statements: Sequence[ast.stmt],
        *,
        prefix: str,
        new_scope: list[ast.stmt] | None = None,
    ) -> None:
        """Merge statements of the patch into a scope of the original."""
        new_scope = self.patch.body if new_scope is None else new_scope
        added: list[ast.stmt] = []
        replaced: list[ast.stmt] = []
        groups: dict[frozenset[str], list[ast.stmt]] = {}
        for node in new_statements:
            groups.setdefault(bound_names(node), []).append(node)
        for names, news in groups.items():
            olds = [node for node in old_scope if names & bound_names(node) and not isinstance(node, Import)]
            if all(isinstance(node, Definition) for node in news):
                # Not the statements that import the name, or set it to None as a fallback.
                olds = [node for node in olds if isinstance(node, Definition)] or olds
            if olds:
                replaced += olds
                self._merge_group(news, olds, old_scope, new_scope)
            else:
                added += news
        if added:
            self._insert(added, old_scope, replaced, prefix, new_scope)

    def _merge_group(
        self,
        news: Sequence[ast.stmt],
        olds: Sequence[ast.stmt],
        old_scope: list[ast.stmt],
        new_scope: list[ast.stmt],
    ) -> None:
        """Merge all statements that define one name, such as a property and its setter, or overloads."""
        if len(olds) == 1 and len(news) == 1:
            self._merge_statement(news[0], olds[0], old_scope, new_scope)
            return
        if not all(isinstance(node, Function) for node in (*news, *olds)):
            raise NoPlaceError
        new_roles = [definition_role(node) for node in news]
        old_roles = [definition_role(node) for node in olds]
        prefix = self._margin(olds[0])
        if new_roles == old_roles:
            pairs = list(zip(news, olds, strict=True))
        elif len(set(new_roles)) == len(new_roles) and all(old_roles.count(role) <= 1 for role in new_roles):
            olds_by_role = dict(zip(old_roles, olds, strict=True))
            pairs = [
                (new, olds_by_role[role])
                for new, role in zip(news, new_roles, strict=True)
                if role in olds_by_role
            ]
        elif set(old_roles) <= set(new_roles) and "register" not in new_roles:
            # If the number of overloads differs, the new ones replace all old ones. Functions with the role `register`
            # (of `functools.singledispatch`) are left out, because each of them is a different function.
            sources = "\n".join(self._new_source(node, new_scope, prefix) for node in news)
            self._replace(olds[0], old_scope, sources)
            for old in olds[1:]:
                self._replace(old, old_scope, "")
            return
        else:
            raise NoPlaceError
        for new, old in pairs:
            if not (is_stub(new) and not is_stub(old)):
                self._replace(old, old_scope, self._new_source(new, new_scope, prefix))
        paired = [new for new, _ in pairs]
        for new in news:
            if new not in paired:
                self._insert_after(olds[-1], self._new_source(new, new_scope, prefix))

    def _merge_statement(
        self, new: ast.stmt, old: ast.stmt, old_scope: list[ast.stmt], new_scope: list[ast.stmt]
    ) -> None:
        """Merge a statement into the only one that defines the same name."""
        if is_stub(new) and not is_stub(old):
            return  # the model omitted the body; it did not mean to delete it
        prefix = self._margin(old)
        if isinstance(new, ast.ClassDef) and isinstance(old, ast.ClassDef):
            if preserves_definitions(self._new_source(new, new_scope, ""), self._old_source(old)):
                self._replace(old, old_scope, self._new_source(new, new_scope, prefix))
            else:
                self._merge_members(old, [node for node in new.body if bound_names(node)], new.body)
        elif isinstance(new, Function) and definition_role(new) != definition_role(old):
            self._insert_after(old, self._new_source(new, new_scope, prefix))  # a setter after its property
        elif self._may_replace(new, old):
            self._replace(old, old_scope, self._new_source(new, new_scope, prefix))
        else:
            self._merge_into_block(new, old, new_scope)

    def _may_replace(self, new: ast.stmt, old: ast.stmt) -> bool:
        """Return whether a new statement can take the place of an old one without losing other names."""
        if isinstance(new, Definition):
            are_functions = isinstance(new, Function) and isinstance(old, Function)
            return are_functions or (_binds_one_name(old) and bound_names(old) == bound_names(new))
        assignment = ast.Assign | ast.AnnAssign
        are_assignments = isinstance(old, assignment) and isinstance(new, assignment)
        are_equal_blocks = type(old) is type(new) and any(True for _ in inner_statements(old))
        return (are_assignments or are_equal_blocks) and bound_names(old) <= bound_names(new)

    def _merge_into_block(self, new: ast.stmt, block: ast.stmt, new_scope: list[ast.stmt]) -> None:
        """Merge a statement into the only one inside an `if` or `try` that defines the same name."""
        olds = [node for node in inner_statements(block) if bound_names(node) & bound_names(new)]
        if len(olds) != 1 or isinstance(olds[0], Import) or isinstance(block, Definition):
            raise NoPlaceError
        self._merge_statement(new, olds[0], list(inner_statements(block)), new_scope)

    def _insert(
        self,
        added: Sequence[ast.stmt],
        old_scope: list[ast.stmt],
        replaced: Sequence[ast.stmt],
        prefix: str,
        new_scope: list[ast.stmt],
    ) -> None:
        """Insert new definitions before the first replaced statement, or else at the end of the scope."""
        gap = "\n" if prefix else "\n\n"  # blank lines between members, and between definitions of a module
        if prefix and (fields := [node for node in added if not isinstance(node, Definition)]):
            self._insert_fields(fields, old_scope, prefix, new_scope)
            added = [node for node in added if node not in fields]
        source = gap.join(self._new_source(node, new_scope, prefix) for node in added)
        followers = [*replaced] or [node for node in old_scope if is_main_guard(node)]
        if source and followers:
            line = min(first_line(node) for node in followers) - 1
            while line and self.old_lines[line - 1].strip().startswith("#"):
                line -= 1  # a comment stays with the statement below it
            self.edits.append((line, line, source + gap))
        elif source:
            line = (old_scope[-1].end_lineno or 0) if old_scope else len(self.old_lines)
            newline = "" if line == 0 or self.old_lines[line - 1].endswith("\n") else "\n"
            self.edits.append((line, line, newline + gap + source))

    def _insert_fields(
        self, fields: Sequence[ast.stmt], old_scope: list[ast.stmt], prefix: str, new_scope: list[ast.stmt]
    ) -> None:
        """Insert new variables of a class after the existing ones: in a dataclass, their order matters."""
        assignment = ast.Assign | ast.AnnAssign
        above = [node for node in old_scope if isinstance(node, assignment) or is_docstring(node)]
        line = (above[-1].end_lineno or 0) if above else first_line(old_scope[0]) - 1
        source = "".join(self._new_source(node, new_scope, prefix) for node in fields)
        self.edits.append((line, line, source))

    def _insert_after(self, old: ast.stmt, source: str) -> None:
        """Insert source after a statement of the original, and a blank line between them."""
        line = old.end_lineno or 0
        self.edits.append((line, line, "\n" + source))

    def _replace(self, old: ast.stmt, old_scope: Iterable[ast.stmt], source: str) -> None:
        """Replace a statement of the original with source."""
        _require_own_lines(old, old_scope)
        self.edits.append((first_line(old) - 1, old.end_lineno or old.lineno, source))

    def _margin(self, old: ast.stmt) -> str:
        """Return the indentation of a statement of the original."""
        return self.old_lines[old.lineno - 1][: old.col_offset]

    def _old_source(self, old: ast.stmt) -> str:
        """Return a statement of the original without its indentation."""
        source = "".join(self.old_lines[first_line(old) - 1 : old.end_lineno])
        return reindent(source, "", drop=old.col_offset)

    def _new_source(self, new: ast.stmt, new_scope: Iterable[ast.stmt], prefix: str) -> str:
        """Return a statement of the patch with another indentation."""
        _require_own_lines(new, new_scope)
        lines = self.new_lines[first_line(new) - 1 : new.end_lineno]
        if not self.margin:
            for number in _docstring_lines(new):
                line = lines[number - first_line(new)]
                lines[number - first_line(new)] = prefix + line if line.strip() else line
        source = "".join(lines)
        return reindent(source, prefix, drop=new.col_offset).rstrip("\n") + "\n"


def _docstring_lines(node: ast.stmt) -> Iterator[int]:
    """Yield the numbers of the lines of docstrings that move with the code.

    The inner lines of other strings never move. A docstring moves if it belongs to code at the left margin, whose
    docstrings were moved there with it.
    """
    if node.col_offset or not isinstance(node, Definition):
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Expr) and is_docstring(inner):
            yield from range(inner.lineno + 1, (inner.end_lineno or 0) + 1)


def _require_own_lines(node: ast.stmt, scope: Iterable[ast.stmt]) -> None:
    """Check that a statement shares no line with another one of its scope, as in `a = 1; b = 2`."""
    start, end = first_line(node), node.end_lineno or node.lineno
    for sibling in scope:
        sibling_end = sibling.end_lineno or sibling.lineno
        if sibling is not node and first_line(sibling) <= end and start <= sibling_end:
            raise NoPlaceError
