"""What of a change belongs together: what was written in one function, and what names each other.

A model's or a person's edit was written as a whole, and tests seldom pin all of it. So a change is only ever
cut between parts that have nothing to do with each other: other functions, other files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.project.python_source.parsing import parsed
from suture.project.workspace import changed_ranges, text_of

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
WORD = re.compile(r"\w+")
LONGEST_NAME = 100
"""Characters of a text in code that may name a file or a function; longer ones are prose."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, kw_only=True, eq=False)  # two equal lines may be put in at one place
class ChangedLines:
    """Lines `start` to `end` (from 0) of a file give way to others; a file that is new is one edit."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangePart:
    """Edits that stand or fall together.

    Attributes:
        name: Where it is, for people, such as `shop/prices.py (cheapest)`.
        edits: The edits, in the order of files and lines.
    """

    name: str
    edits: tuple[ChangedLines, ...]


@dataclass(kw_only=True)
class _Place:
    """A top-level definition, or what stands around them, in one changed file.

    Attributes:
        defined: Names that it gives to others.
        used: Names that stand in it.
        shared: Variables of the module that stand in it: through them functions that name nothing of each
            other still have to do with each other.
    """

    path: str
    name: str
    edits: list[ChangedLines] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def belongs_to(self, other: _Place) -> bool:
        """Whether what is changed here may rest on what is changed there, or both on one variable."""
        named = self.defined & other.used or other.defined & self.used
        return bool(named) or (self.path == other.path and bool(self.shared & other.shared))


def split_into_parts(before: Mapping[str, bytes], files: Mapping[str, str]) -> list[ChangePart]:
    """The parts of a change that have nothing to do with each other, in the order of the files.

    Args:
        before: The project, path -> content.
        files: The change, path -> text.
    """
    places = [place for path in sorted(files) for place in _places(path, before.get(path), files[path])]
    groups: list[list[_Place]] = []
    for place in places:
        linked = [group for group in groups if any(place.belongs_to(other) for other in group)]
        apart = [group for group in groups if group not in linked]
        groups = [*apart, [*(other for group in linked for other in group), place]]
    groups.sort(key=lambda group: min(places.index(place) for place in group))
    return [_part(group) for group in groups]


def _part(group: Sequence[_Place]) -> ChangePart:
    by_path: dict[str, list[str]] = {}
    for place in group:
        by_path.setdefault(place.path, []).extend([place.name] if place.name else [])
    names = [f"{path} ({', '.join(inside)})" if inside else path for path, inside in by_path.items()]
    return ChangePart(name=", ".join(names), edits=tuple(edit for place in group for edit in place.edits))


def diff_blocks(path: str, before: bytes | None, text: str) -> list[ChangedLines]:
    """The stretches in which a file differs.

    Args:
        path: The file's path.
        before: What it holds; `None` where there is no such file.
        text: What it is to hold.
    """
    if before is None:
        return [ChangedLines(path=path, start=0, end=0, lines=tuple(lines_of(text)))]
    old, new = lines_of(text_of(before)), lines_of(text)
    return [
        ChangedLines(path=path, start=start, end=end, lines=tuple(new[other:stop]))
        for start, end, other, stop in changed_ranges(old, new)
    ]


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends; the last one may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _places(path: str, before: bytes | None, text: str) -> list[_Place]:
    """Where in a file something is changed; a file that is no Python is one place."""
    blocks = diff_blocks(path, before, text)
    old = parsed(text_of(before)) if before is not None else None
    new = parsed(text)
    if not path.endswith(".py") or old is None or new is None:
        return [_whole(path, blocks, text)] if blocks else []
    old_lines, new_lines = lines_of(text_of(before or b"")), lines_of(text)
    variables = _variables(old) | _variables(new)
    found: dict[str, _Place] = {}
    shift = 0
    for block in blocks:
        first = block.start + shift
        shift += len(block.lines) - (block.end - block.start)
        touched = [
            *_touched(old, old_lines, block.start, block.end),
            *_touched(new, new_lines, first, first + len(block.lines)),
        ]
        place = _place_of(path, touched, found)
        place.edits.append(block)
        for node in touched:
            names = set(_names_in(node))
            place.used |= names
            place.shared |= names & variables
            place.defined |= set(_bound_by(node))
    return list({id(place): place for place in found.values()}.values())


def _whole(path: str, blocks: list[ChangedLines], text: str) -> _Place:
    """A file in one piece: others rest on it where they name it, or what it defines."""
    tree = parsed(text) if path.endswith(".py") else None
    used = set(_names_in(tree)) if tree is not None else set(WORD.findall(text))
    defined = {PurePosixPath(path).name, PurePosixPath(path).stem}
    for node in tree.body if tree is not None else ():
        defined |= set(_bound_by(node))
    return _Place(path=path, name="", edits=blocks, defined=defined, used=used - defined)


def _place_of(path: str, touched: Sequence[ast.stmt], found: dict[str, _Place]) -> _Place:
    """The place of a block; one that reaches over several definitions makes them one."""
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


def _touched(tree: ast.Module, lines: Sequence[str], start: int, end: int) -> list[ast.stmt]:
    """Statements at the top level that have lines from `start` to `end`, counted from 0."""
    return [node for node in tree.body if _first(node, lines) < end and start < (node.end_lineno or 0)]


def _first(node: ast.stmt, lines: Sequence[str]) -> int:
    """The first line of a statement, counted from 0, with its decorators and the comment above it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first


def _bound_by(node: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top level gives to its module."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def _variables(tree: ast.Module) -> set[str]:
    kinds = (*DEFINITIONS, ast.Import, ast.ImportFrom)
    return {name for node in tree.body if not isinstance(node, kinds) for name in _bound_by(node)}


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if len(text) <= LONGEST_NAME:
                yield from WORD.findall(text)  # a method that is looked up by name, a file that is opened
            case _:
                pass
