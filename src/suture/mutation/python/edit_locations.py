"""Locates edits in a Python source: the statement or statement head that holds them, and its blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from suture.mutation.edits import Edit, apply_edits
from suture.mutation.python.python_tree import PythonTree, parse_python_tree

BLOCK_FIELDS = ("body", "orelse", "handlers", "finalbody", "cases")
UNDEFINED_NAME = "suture_unreached"
"""A name that no source defines, so that reading it raises."""
STOP_STATEMENT = "raise BaseException"


@dataclass(frozen=True, kw_only=True)
class EditLocation:
    """A statement without its blocks, by byte offsets in its source.

    Attributes:
        start: Where its first line begins.
        end: Where its head ends: at its first block, or at its end.
        statement_end: Where the whole statement ends.
        in_function: Whether it is inside a function.
        is_handler: Whether it is the head of an `except` clause.
    """

    start: int
    end: int
    statement_end: int
    in_function: bool
    is_handler: bool

    def contains(self, edits: Sequence[Edit]) -> bool:
        """Return whether all edits of a change are inside the statement's head."""
        return all(self.start <= edit.start and edit.end <= self.end for edit in edits)


@lru_cache(maxsize=16)
def _locations(text: str) -> tuple[EditLocation, ...]:
    tree = parse_python_tree(text)
    if tree is None:
        return ()
    nodes = [node for node in ast.walk(tree.module) if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    return tuple(_location_of(node, tree) for node in nodes)


def _location_of(node: ast.stmt | ast.ExceptHandler, tree: PythonTree) -> EditLocation:
    start, last = tree.span(node)
    line = tree.offset(node.lineno, 0)
    begins_line = not tree.raw[line:start].strip()
    inner = [child for _, block in iter_blocks(node) for child in block[:1] if hasattr(child, "lineno")]
    first = min((tree.offset(child.lineno, child.col_offset) for child in inner), default=last)
    held = any(isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) for above in tree.ancestors(node))
    begin = line if begins_line else start
    is_handler = isinstance(node, ast.ExceptHandler)
    return EditLocation(start=begin, end=first, statement_end=last, in_function=held, is_handler=is_handler)


def iter_blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the non-empty blocks of a statement, each with its field name."""
    for name in BLOCK_FIELDS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield name, block


def find_location(text: str, edits: Sequence[Edit]) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several."""
    holding = [place for place in _locations(text) if place.contains(edits)]
    return min(holding, key=lambda place: place.end - place.start, default=None)


def constants_near_edit(text: str, edits: Sequence[Edit]) -> list[object]:
    """Return the constants of the statement that a change is in, before and after the change."""
    place = find_location(text, edits)
    if place is None:
        return []
    grown = sum(len(edit.text.encode("utf-8", "surrogatepass")) - (edit.end - edit.start) for edit in edits)
    found: list[object] = []
    for source, end in ((text, place.end), (apply_edits(text, edits), place.end + grown)):
        tree = parse_python_tree(source)
        for node in ast.walk(tree.module) if tree is not None else ():
            if isinstance(node, ast.Constant) and tree is not None and not isinstance(node.value, bytes):
                first, last = tree.span(node)
                if place.start <= first and last <= end and node.value not in found:
                    found.append(node.value)
    return found


def find_statement_span(text: str, edits: Sequence[Edit]) -> tuple[int, int]:
    """Return the span of the smallest statement with its blocks that holds all edits, or of the text."""
    spans = [(place.start, place.statement_end) for place in _locations(text)]
    holding = [(a, b) for a, b in spans if all(a <= edit.start and edit.end <= b for edit in edits)]
    whole = (0, len(text.encode("utf-8", "surrogatepass")))
    return min(holding, key=lambda span: span[1] - span[0], default=whole)


def build_tripwire(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return edits that make any run of a changed place raise; empty where that is not possible.

    An expression that the change edits becomes an undefined name, and a statement gets a `raise` in front.
    Code that runs on import cannot be distinguished from code that a call runs, so that it gets none.

    Args:
        text: The source.
        edits: The change.
    """
    place, tree = find_location(text, edits), parse_python_tree(text)
    if place is None or tree is None or not place.in_function:
        return ()
    start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
    spans = [
        (tree.span(n), n) for n in ast.walk(tree.module) if isinstance(n, ast.expr) and _is_read(n, tree)
    ]
    holding = [span for span, _ in spans if span[0] <= start and end <= span[1]]
    if holding:
        first, last = min(holding, key=lambda span: span[1] - span[0])
        return (Edit(start=first, end=last, text=UNDEFINED_NAME),)
    line = tree.raw[place.start : place.end]
    indent = line[: len(line) - len(line.lstrip())].decode("ascii", "replace")
    is_clause = line.lstrip().startswith((b"elif", b"except", b"else", b"case"))
    if is_clause or not indent.isspace():
        return ()
    return (Edit(start=place.start, end=place.start, text=f"{indent}{STOP_STATEMENT}\n"),)


def _is_read(node: ast.expr, tree: PythonTree) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not any(
        isinstance(above, (ast.JoinedStr, ast.pattern)) for above in tree.ancestors(node)
    )


def find_block_stops(text: str, start: int) -> tuple[Edit, ...]:
    """Return, for each block of the statement that begins at an offset, an edit that makes the block raise.

    Args:
        text: The source.
        start: The `EditLocation.start` of the statement, or of an exception handler.
    """
    tree = parse_python_tree(text)
    if tree is None:
        return ()
    kinds = (ast.If, ast.While, ast.For, ast.ExceptHandler)
    nodes = [node for node in ast.walk(tree.module) if isinstance(node, kinds)]
    stops = []
    for node in nodes:
        if _location_of(node, tree).start == start:
            for _, block in iter_blocks(node):
                place = tree.span(block[0])[0]
                line = tree.offset(block[0].lineno, 0)
                indent = tree.raw[line:place]
                if tree.raw[place : place + 4] == b"elif":
                    continue
                separator = f"\n{indent.decode('ascii', 'replace')}" if not indent.strip() else "; "
                stops.append(Edit(start=place, end=place, text=f"{STOP_STATEMENT}{separator}"))
    return tuple(stops)
