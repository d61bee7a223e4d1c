"""Where a change stands: the statement, or the head of one, that holds it; and the blocks that it guards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from suture.mutation.edits import Edit, apply_edits
from suture.mutation.python.python_tree import PythonTree, parse_python_tree

BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
UNREACHED = "suture_unreached"
"""A name that nothing has: what runs it ends with an exception."""
STOP = "raise BaseException"


@dataclass(frozen=True, kw_only=True)
class EditLocation:
    """A statement without its blocks, by offsets in the UTF-8 bytes of its source.

    Attributes:
        start: Where its first line begins.
        end: Where it ends, or where its first block begins.
        last: Where the whole statement ends.
        in_function: Whether a function holds it.
        is_handler: Whether it is the head of an `except`.
    """

    start: int
    end: int
    statement_end: int
    in_function: bool
    is_handler: bool

    def contains(self, edits: Sequence[Edit]) -> bool:
        """Whether all of a change stands here."""
        return all(self.start <= edit.start and edit.end <= self.end for edit in edits)


@lru_cache(maxsize=16)
def _places(text: str) -> tuple[EditLocation, ...]:
    view = parse_python_tree(text)
    if view is None:
        return ()
    nodes = [node for node in ast.walk(view.tree) if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    return tuple(_place(node, view) for node in nodes)


def _place(node: ast.stmt | ast.ExceptHandler, view: PythonTree) -> EditLocation:
    start, last = view.span(node)
    line = view.offset(node.lineno, 0)
    begins_line = not view.raw[line:start].strip()
    inner = [child for _, block in iter_blocks(node) for child in block[:1] if hasattr(child, "lineno")]
    first = min((view.offset(child.lineno, child.col_offset) for child in inner), default=last)
    held = any(isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) for above in view.ancestors(node))
    begin = line if begins_line else start
    is_handler = isinstance(node, ast.ExceptHandler)
    return EditLocation(start=begin, end=first, statement_end=last, in_function=held, is_handler=is_handler)


def iter_blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a statement that are not empty, by their names."""
    for name in BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield name, block


def find_location(text: str, edits: Sequence[Edit]) -> EditLocation | None:
    """The smallest place that holds a change; `None` where it spans several."""
    holding = [place for place in _places(text) if place.contains(edits)]
    return min(holding, key=lambda place: place.end - place.start, default=None)


def constants_near_edit(text: str, edits: Sequence[Edit]) -> list[object]:
    """What is named where a change stands, before it and with it."""
    place = find_location(text, edits)
    if place is None:
        return []
    grown = sum(len(edit.text.encode("utf-8", "surrogatepass")) - (edit.end - edit.start) for edit in edits)
    found: list[object] = []
    for source, end in ((text, place.end), (apply_edits(text, edits), place.end + grown)):
        view = parse_python_tree(source)
        for node in ast.walk(view.tree) if view is not None else ():
            if isinstance(node, ast.Constant) and view is not None and not isinstance(node.value, bytes):
                first, last = view.span(node)
                if place.start <= first and last <= end and node.value not in found:
                    found.append(node.value)
    return found


def find_statement_span(text: str, edits: Sequence[Edit]) -> tuple[int, int]:
    """Where the smallest statement with its blocks begins and ends that holds some edits; else all of it."""
    spans = [(place.start, place.statement_end) for place in _places(text)]
    holding = [(a, b) for a, b in spans if all(a <= edit.start and edit.end <= b for edit in edits)]
    whole = (0, len(text.encode("utf-8", "surrogatepass")))
    return min(holding, key=lambda span: span[1] - span[0], default=whole)


def build_tripwire(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """A change with which nothing can reach a place unnoticed; empty where that cannot be told.

    It stands where the edits do: an expression that they change becomes a name that nothing has, a statement
    ends with an exception. What an import runs is not told apart from what a call does.

    Args:
        text: The source.
        edits: A change of it.
    """
    place, view = find_location(text, edits), parse_python_tree(text)
    if place is None or view is None or not place.in_function:
        return ()
    start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
    spans = [(view.span(n), n) for n in ast.walk(view.tree) if isinstance(n, ast.expr) and _is_read(n, view)]
    holding = [span for span, _ in spans if span[0] <= start and end <= span[1]]
    if holding:
        first, last = min(holding, key=lambda span: span[1] - span[0])
        return (Edit(start=first, end=last, text=UNREACHED),)
    line = view.raw[place.start : place.end]
    indent = line[: len(line) - len(line.lstrip())].decode("ascii", "replace")
    is_clause = line.lstrip().startswith((b"elif", b"except", b"else", b"case"))
    if is_clause or not indent.isspace():
        return ()
    return (Edit(start=place.start, end=place.start, text=f"{indent}{STOP}\n"),)


def _is_read(node: ast.expr, view: PythonTree) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not any(
        isinstance(above, (ast.JoinedStr, ast.pattern)) for above in view.ancestors(node)
    )


def find_block_stops(text: str, start: int) -> tuple[Edit, ...]:
    """For each block of the statement whose first line begins at an offset: an edit that stops what runs it.

    Args:
        text: The source.
        start: The `Place.start` of the statement, or of the handler of an exception.
    """
    view = parse_python_tree(text)
    if view is None:
        return ()
    kinds = (ast.If, ast.While, ast.For, ast.ExceptHandler)
    nodes = [node for node in ast.walk(view.tree) if isinstance(node, kinds)]
    stops = []
    for node in nodes:
        if _place(node, view).start == start:
            for _, block in iter_blocks(node):
                place = view.span(block[0])[0]
                line = view.offset(block[0].lineno, 0)
                indent = view.raw[line:place]
                if view.raw[place : place + 4] == b"elif":
                    continue
                behind = f"\n{indent.decode('ascii', 'replace')}" if not indent.strip() else "; "
                stops.append(Edit(start=place, end=place, text=f"{STOP}{behind}"))
    return tuple(stops)
