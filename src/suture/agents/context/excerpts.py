"""Cut a long Python file down to its imports and its suspicious functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from suture.agents.tuning import (
    MAX_EXCERPT_CHARS,
    MAX_EXCERPT_FUNCTION_CHARS,
    MAX_WHOLE_FILE_CHARS,
    SURROUNDING_LINES,
)
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.statements import Definition, split_lines


def make_excerpt(text: str, suspicious: Sequence[int]) -> str | None:
    """Return the suspicious parts of a long file; a comment line stands for each part that is left out.

    It is `None` if the file is short, or has no suspicious line: such a file is shown whole.

    Args:
        suspicious: Suspicious lines, counted from 1, the most suspicious first.
    """
    tree = parse_module(text) if len(text) > MAX_WHOLE_FILE_CHARS else None
    if tree is None:
        return None
    lines = split_lines(text)
    selected: set[int] = set()
    for line in suspicious:
        part = _lines_around(tree, line, lines)
        if part and (not selected or _size(selected | part, lines) <= MAX_EXCERPT_CHARS):
            selected |= part
    if not selected:
        return None
    imports = {n for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for n in _lines(node)}
    return "".join(_render_lines(sorted(selected | imports), lines))


def _lines_around(tree: ast.Module, line: int, lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines to show for a suspicious line: its function, or its surroundings."""
    function = set(_function_around(tree.body, line))
    if function and _size(function, lines) <= MAX_EXCERPT_FUNCTION_CHARS:
        return function
    near = set(range(max(1, line - SURROUNDING_LINES), min(line + SURROUNDING_LINES, len(lines)) + 1))
    return near | set(_headers_around(tree.body, line)) if line in near else set()


def _headers_around(body: Iterable[ast.stmt], line: int) -> Iterator[int]:
    """Yield the lines of the headers of all classes and functions that hold a line."""
    for node in body:
        if isinstance(node, Definition) and line in _lines(node):
            yield from range(first_line(node), first_line(node.body[0]))
            yield from _headers_around(node.body, line)


def _function_around(body: Iterable[ast.stmt], line: int) -> Iterator[int]:
    """Yield the lines of the outermost function that holds a line, and of the headers of its classes."""
    for node in body:
        if isinstance(node, Definition) and line in _lines(node):
            if not isinstance(node, ast.ClassDef):
                yield from _lines(node)
            elif method_lines := list(_function_around(node.body, line)):
                yield from range(first_line(node), first_line(node.body[0]))
                yield from method_lines


def _lines(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _size(numbers: Iterable[int], lines: Sequence[str]) -> int:
    return sum(len(lines[number - 1]) for number in numbers)


def _render_lines(numbers: Sequence[int], lines: Sequence[str]) -> Iterator[str]:
    previous = 0
    for number in [*numbers, len(lines) + 1]:
        next_line = lines[number - 1] if number <= len(lines) else ""
        if number > previous + 1:
            margin = next_line[: len(next_line) - len(next_line.lstrip())]
            yield f"{margin}# ... {number - previous - 1} lines are not shown here\n"
        yield next_line
        previous = number
