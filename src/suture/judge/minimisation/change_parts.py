"""Split a change into parts that are independent of each other.

A person or a model wrote the change as a whole, and tests seldom pin all of it. So a change is only cut
between parts that do not refer to each other: different functions, different files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.judge.tuning import MAX_NAME_CHARS
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import changed_ranges, decode_text

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
WORD = re.compile(r"\w+")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, kw_only=True, eq=False)  # equal lines may be inserted twice at one place
class ChangedLines:
    """Replaces lines `start` to `end` (from 0) of a file by others; a new file is one edit."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangePart:
    """Edits that are kept or dropped together.

    Attributes:
        name: The place of the edits, for people, such as `shop/prices.py (cheapest)`.
        edits: The edits, in the order of files and lines.
    """

    name: str
    edits: tuple[ChangedLines, ...]


@dataclass(kw_only=True)
class _Place:
    """A changed top-level definition of a file, or the changed code around the definitions.

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
        named = self.defined & other.used or other.defined & self.used
        return bool(named) or (self.path == other.path and bool(self.shared & other.shared))


def split_into_parts(before: Mapping[str, bytes], files: Mapping[str, str]) -> list[ChangePart]:
    """Return the independent parts of a change, in the order of the files."""
    places = [place for path in sorted(files) for place in _find_places(path, before.get(path), files[path])]
    groups: list[list[_Place]] = []
    for place in places:
        linked = [group for group in groups if any(place.belongs_to(other) for other in group)]
        unlinked = [group for group in groups if group not in linked]
        groups = [*unlinked, [*(other for group in linked for other in group), place]]
    groups.sort(key=lambda group: min(places.index(place) for place in group))
    return [_part(group) for group in groups]


def _part(group: Sequence[_Place]) -> ChangePart:
    by_path: dict[str, list[str]] = {}
    for place in group:
        by_path.setdefault(place.path, []).extend([place.name] if place.name else [])
    names = [f"{path} ({', '.join(inside)})" if inside else path for path, inside in by_path.items()]
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
        ChangedLines(path=path, start=start, end=end, lines=tuple(new[other:stop]))
        for start, end, other, stop in changed_ranges(old, new)
    ]


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their line ends; the last line may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _find_places(path: str, before: bytes | None, text: str) -> list[_Place]:
    """Return the changed places of a file; a file that is not Python is one place."""
    blocks = diff_blocks(path, before, text)
    old = parse_module(decode_text(before)) if before is not None else None
    new = parse_module(text)
    if not path.endswith(".py") or old is None or new is None:
        return [_whole_file(path, blocks, text)] if blocks else []
    old_lines, new_lines = split_lines(decode_text(before or b"")), split_lines(text)
    variables = _module_variables(old) | _module_variables(new)
    found: dict[str, _Place] = {}
    shift = 0
    for block in blocks:
        first = block.start + shift
        shift += len(block.lines) - (block.end - block.start)
        touched = [
            *_touched_statements(old, old_lines, block.start, block.end),
            *_touched_statements(new, new_lines, first, first + len(block.lines)),
        ]
        place = _place_for(path, touched, found)
        place.edits.append(block)
        for node in touched:
            names = set(_names_in(node))
            place.used |= names
            place.shared |= names & variables
            place.defined |= set(_defined_names(node))
    return list({id(place): place for place in found.values()}.values())


def _whole_file(path: str, blocks: list[ChangedLines], text: str) -> _Place:
    """Return a file as one place: other code depends on it if it names the file or what it defines."""
    tree = parse_module(text) if path.endswith(".py") else None
    used = set(_names_in(tree)) if tree is not None else set(WORD.findall(text))
    defined = {PurePosixPath(path).name, PurePosixPath(path).stem}
    for node in tree.body if tree is not None else ():
        defined |= set(_defined_names(node))
    return _Place(path=path, name="", edits=blocks, defined=defined, used=used - defined)


def _place_for(path: str, touched: Sequence[ast.stmt], found: dict[str, _Place]) -> _Place:
    """Return the place of a block; a block that spans several definitions joins them."""
    names = [node.name if isinstance(node, DEFINITIONS) else "" for node in touched] or [""]
    named = list(dict.fromkeys(names))
    known = list({id(found[name]): found[name] for name in named if name in found}.values())
    place = known[0] if known else _Place(path=path, name=", ".join(filter(None, named)))
    for other in known[1:]:
        place.name = ", ".join(filter(None, (place.name, other.name)))
        place.edits += other.edits
        place.edits.sort(key=lambda edit: edit.start)
        place.defined |= other.defined
        place.used |= other.used
        place.shared |= other.shared
    for name in [*named, *(key for key, value in found.items() if value in known)]:
        found[name] = place
    return place


def _touched_statements(tree: ast.Module, lines: Sequence[str], start: int, end: int) -> list[ast.stmt]:
    """Return the top-level statements that have a line from `start` to `end`, counted from 0."""
    return [node for node in tree.body if _first_line(node, lines) < end and start < (node.end_lineno or 0)]


def _first_line(node: ast.stmt, lines: Sequence[str]) -> int:
    """Return the first line of a statement, from 0, with its decorators and the comment above it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first


def _defined_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement defines in its module."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def _module_variables(tree: ast.Module) -> set[str]:
    kinds = (*DEFINITIONS, ast.Import, ast.ImportFrom)
    return {name for node in tree.body if not isinstance(node, kinds) for name in _defined_names(node)}


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if len(text) <= MAX_NAME_CHARS:
                yield from WORD.findall(
                    text
                )  # such as a method that is looked up by name, or a file that is opened
            case _:
                pass
