"""Split a change into parts that are independent of each other.

A person or a model wrote the change as a whole, and tests seldom cover all of it. So a change is only cut
between parts that do not refer to each other: different functions, different files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.judge.tuning import MAX_NAME_CHARS
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import changed_ranges, decode_text
from suture.project.workspace.diffs import split_lines

WORD = re.compile(r"\w+")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, kw_only=True, eq=False)  # equal lines may be inserted twice at one place
class ChangedLines:
    """An edit that replaces lines `start` to `end` (from 0) of a file by others. A new file is one edit."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangePart:
    """Edits that are kept or dropped together.

    Attributes:
        name: Where the edits are, for people, such as `shop/prices.py (cheapest)`.
    """

    name: str
    edits: tuple[ChangedLines, ...]


@dataclass(kw_only=True)
class _Place:
    """A changed top-level definition of a file, or all changed code of the file outside of definitions.

    Attributes:
        defined: Names that it defines for other code.
        used: Names that occur in it.
        shared: Module variables that occur in it. Through them, functions that do not name each other can
            still depend on each other.
    """

    path: str
    name: str
    edits: list[ChangedLines] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def belongs_to(self, other: _Place) -> bool:
        """Return whether one place may depend on the other, or both on one module variable."""
        names = self.defined & other.used or other.defined & self.used
        return bool(names) or (self.path == other.path and bool(self.shared & other.shared))

    def absorb(self, other: _Place) -> None:
        """Add another place of the same file to this one."""
        self.name = ", ".join(filter(None, (self.name, other.name)))
        self.edits += other.edits
        self.edits.sort(key=lambda edit: edit.start)
        self.defined |= other.defined
        self.used |= other.used
        self.shared |= other.shared


def split_into_parts(before: Mapping[str, bytes], files: Mapping[str, str]) -> list[ChangePart]:
    """Return the independent parts of a change, in the order of the files."""
    places = [place for path in sorted(files) for place in _find_places(path, before.get(path), files[path])]
    groups: list[list[_Place]] = []
    for place in places:
        linked = [group for group in groups if any(place.belongs_to(other) for other in group)]
        unlinked = [group for group in groups if group not in linked]
        groups = [*unlinked, [*(other for group in linked for other in group), place]]
    groups.sort(key=lambda group: min(places.index(place) for place in group))
    return [_make_part(group) for group in groups]


def _make_part(group: Sequence[_Place]) -> ChangePart:
    by_path: dict[str, list[str]] = {}
    for place in group:
        by_path.setdefault(place.path, []).extend([place.name] if place.name else [])
    names = [f"{path} ({', '.join(places)})" if places else path for path, places in by_path.items()]
    return ChangePart(name=", ".join(names), edits=tuple(edit for place in group for edit in place.edits))


def diff_blocks(path: str, before: bytes | None, text: str) -> list[ChangedLines]:
    """Return the blocks of lines in which a file changes.

    Args:
        before: The file's content; `None` for a new file.
    """
    if before is None:
        return [ChangedLines(path=path, start=0, end=0, lines=tuple(split_lines(text)))]
    old, new = split_lines(decode_text(before)), split_lines(text)
    return [
        ChangedLines(path=path, start=start, end=end, lines=tuple(new[new_start:new_end]))
        for start, end, new_start, new_end in changed_ranges(old, new)
    ]


def _find_places(path: str, before: bytes | None, text: str) -> list[_Place]:
    """Return the changed places of a file; a file that is not Python is one place."""
    blocks = diff_blocks(path, before, text)
    old = parse_module(decode_text(before)) if before is not None else None
    new = parse_module(text)
    if not path.endswith(".py") or old is None or new is None:
        return [_make_file_place(path, blocks, text)] if blocks else []
    old_lines, new_lines = split_lines(decode_text(before or b"")), split_lines(text)
    variables = _find_module_variables(old) | _find_module_variables(new)
    place_by_name: dict[str, _Place] = {}
    added_lines = 0
    for block in blocks:
        new_start = block.start + added_lines
        added_lines += len(block.lines) - (block.end - block.start)
        touched = [
            *_find_touched_statements(old, old_lines, block.start, block.end),
            *_find_touched_statements(new, new_lines, new_start, new_start + len(block.lines)),
        ]
        place = _get_place(path, touched, place_by_name)
        place.edits.append(block)
        for node in touched:
            names = set(_iter_used_names(node))
            place.used |= names
            place.shared |= names & variables
            place.defined |= set(_iter_defined_names(node))
    return list({id(place): place for place in place_by_name.values()}.values())


def _make_file_place(path: str, blocks: list[ChangedLines], text: str) -> _Place:
    """Return a file as one place: other code depends on it if it names the file or what it defines."""
    tree = parse_module(text) if path.endswith(".py") else None
    used = set(_iter_used_names(tree)) if tree is not None else set(WORD.findall(text))
    defined = {PurePosixPath(path).name, PurePosixPath(path).stem}
    for node in tree.body if tree is not None else ():
        defined |= set(_iter_defined_names(node))
    return _Place(path=path, name="", edits=blocks, defined=defined, used=used - defined)


def _get_place(path: str, touched: Sequence[ast.stmt], place_by_name: dict[str, _Place]) -> _Place:
    """Return the place of a block; a block that spans several definitions joins their places."""
    names = list(dict.fromkeys(node.name if isinstance(node, DEFINITIONS) else "" for node in touched)) or [
        ""
    ]
    known = {id(place_by_name[name]): place_by_name[name] for name in names if name in place_by_name}
    places = list(known.values())
    place = places[0] if places else _Place(path=path, name=", ".join(filter(None, names)))
    for other in places[1:]:
        place.absorb(other)
    for name in [*names, *(key for key, value in place_by_name.items() if id(value) in known)]:
        place_by_name[name] = place
    return place


def _find_touched_statements(tree: ast.Module, lines: Sequence[str], start: int, end: int) -> list[ast.stmt]:
    """Return the top-level statements that have a line from `start` to `end`, counted from 0."""
    return [node for node in tree.body if _get_start(node, lines) < end and start < (node.end_lineno or 0)]


def _get_start(node: ast.stmt, lines: Sequence[str]) -> int:
    """Return the first line of a statement, from 0, with its decorators and the comment above it."""
    index = first_line(node) - 1
    while index and lines[index - 1].startswith("#"):
        index -= 1
    return index


def _iter_defined_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement defines in its module."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def _find_module_variables(tree: ast.Module) -> set[str]:
    others = (*DEFINITIONS, ast.Import, ast.ImportFrom)
    return {name for node in tree.body if not isinstance(node, others) for name in _iter_defined_names(node)}


def _iter_used_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if len(text) <= MAX_NAME_CHARS:
                # An example is a method that is looked up by name, or a file that is opened.
                yield from WORD.findall(text)
            case _:
                pass
