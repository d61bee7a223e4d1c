"""Finds the statement, or head of a statement, that holds an edit in a Python source, and the blocks of a statement.

The head of a statement is what precedes its block, such as `if a < b:`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from suture.mutation.edits import Edit, EditLocation, apply_edits, encode_source, select_smallest
from suture.mutation.python.python_tree import PythonTree, parse_python_tree
from suture.project.python_source.scopes import FUNCTIONS

BLOCK_FIELDS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Fields of a statement's node that hold a list of statements, or of clauses that hold some."""
UNDEFINED_NAME = "suture_unreached"
"""A name that no source defines, so that reading it raises."""
STOP_STATEMENT = "raise BaseException"
"""Raises an exception that handlers for `Exception` do not catch."""


@lru_cache(maxsize=16)
def _locations(text: str) -> tuple[EditLocation, ...]:
    tree = parse_python_tree(text)
    if tree is None:
        return ()
    nodes = [node for node in tree.nodes if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    return tuple(_build_location(node, tree) for node in nodes)


def _build_location(node: ast.stmt | ast.ExceptHandler, tree: PythonTree) -> EditLocation:
    """Return the location of a statement or handler. It begins with the indentation, if it begins its line."""
    start, end = tree.span(node)
    line_start = tree.offset(node.lineno, 0)
    begins_line = not tree.raw[line_start:start].strip()
    firsts = [child for _, block in iter_blocks(node) for child in block[:1] if hasattr(child, "lineno")]
    block_starts = (tree.offset(child.lineno, child.col_offset) for child in firsts)
    return EditLocation(
        start=line_start if begins_line else start,
        end=min(block_starts, default=end),
        statement_end=end,
        in_function=any(isinstance(above, FUNCTIONS) for above in tree.ancestors(node)),
        is_handler=isinstance(node, ast.ExceptHandler),
    )


def iter_blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the non-empty blocks of a statement, each with its field name."""
    for name in BLOCK_FIELDS:
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield name, block


def find_location(text: str, edits: Sequence[Edit]) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several."""
    return select_smallest(_locations(text), edits)


def constants_near_edit(text: str, edits: Sequence[Edit]) -> list[object]:
    """Return the constants of the statement that a change is in, before and after the change."""
    location = find_location(text, edits)
    if location is None:
        return []
    added_bytes = sum(len(encode_source(edit.text)) - (edit.end - edit.start) for edit in edits)
    constants: list[object] = []
    for source, end in ((text, location.end), (apply_edits(text, edits), location.end + added_bytes)):
        tree = parse_python_tree(source)
        for node in tree.nodes if tree is not None else ():
            # Bytes are left out: by judgement.
            if isinstance(node, ast.Constant) and tree is not None and not isinstance(node.value, bytes):
                node_start, node_end = tree.span(node)
                if location.start <= node_start and node_end <= end and node.value not in constants:
                    constants.append(node.value)
    return constants


def find_statement_span(text: str, edits: Sequence[Edit]) -> tuple[int, int]:
    """Return the span of the smallest statement with its blocks that holds all edits, or of the whole file."""
    spans = [(location.start, location.statement_end) for location in _locations(text)]
    holding = [(start, end) for start, end in spans if all(start <= e.start and e.end <= end for e in edits)]
    whole_text = (0, len(encode_source(text)))
    return min(holding, key=lambda span: span[1] - span[0], default=whole_text)


def build_tripwire(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return edits that raise an exception wherever changed code runs; empty where that is not possible.

    An expression that the change edits becomes an undefined name. Before a statement, a `raise` is inserted.
    Code outside of functions has no tripwire: it runs on import, before any call.
    """
    location, tree = find_location(text, edits), parse_python_tree(text)
    if location is None or tree is None or not location.in_function:
        return ()
    start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
    spans = [(tree.span(n), n) for n in tree.nodes if isinstance(n, ast.expr) and _is_read(n, tree)]
    holding = [span for span, _ in spans if span[0] <= start and end <= span[1]]
    if holding:
        span_start, span_end = min(holding, key=lambda span: span[1] - span[0])
        return (Edit(start=span_start, end=span_end, text=UNDEFINED_NAME),)
    line = tree.raw[location.start : location.end]
    indent = line[: len(line) - len(line.lstrip())].decode("ascii", "replace")
    is_clause = line.lstrip().startswith((b"elif", b"except", b"else", b"case"))
    if is_clause or not indent.isspace():
        return ()  # no statement can precede a clause, nor a statement that shares its line
    return (Edit(start=location.start, end=location.start, text=f"{indent}{STOP_STATEMENT}\n"),)


def _is_read(node: ast.expr, tree: PythonTree) -> bool:
    """Return whether an expression is read, outside of f-strings and patterns (see `UNEDITABLE`)."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not any(
        isinstance(above, (ast.JoinedStr, ast.pattern)) for above in tree.ancestors(node)
    )


def find_block_stops(text: str, start: int) -> tuple[Edit, ...]:
    """Return, for each block of the statement that begins at an offset, an edit that raises in the block.

    Args:
        start: The `EditLocation.start` of the statement, or of an exception handler.
    """
    tree = parse_python_tree(text)
    if tree is None:
        return ()
    stops = []
    for node in tree.nodes:
        if not isinstance(node, (ast.If, ast.While, ast.For, ast.ExceptHandler)):
            continue
        if _build_location(node, tree).start != start:
            continue
        for _, block in iter_blocks(node):
            block_start = tree.span(block[0])[0]
            before = tree.raw[tree.offset(block[0].lineno, 0) : block_start]
            if tree.raw[block_start : block_start + 4] == b"elif":
                continue  # an `elif` is a statement of its own in the tree
            # `if a: b` on one line becomes `if a: raise ...; b`.
            separator = f"\n{before.decode('ascii', 'replace')}" if not before.strip() else "; "
            stops.append(Edit(start=block_start, end=block_start, text=f"{STOP_STATEMENT}{separator}"))
    return tuple(stops)
