"""Finding the functions and classes of a file that a change leaves as they were."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.project.python_source.parsing import first_line, parse_module

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def find_unchanged_definitions(before: bytes, after: bytes) -> list[tuple[int, int]]:
    """Return the first and last line, in the new source, of functions and classes that are unchanged.

    Functions inside functions are a part of these.
    """
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return []
    old_lines, new_lines = before.splitlines(), after.splitlines()
    old_definitions = {
        (name, *old_lines[first - 1 : last]) for name, first, last in _list_definitions(old_tree)
    }
    return [
        (first, last)
        for name, first, last in _list_definitions(new_tree)
        if (name, *new_lines[first - 1 : last]) in old_definitions
    ]


def _list_definitions(owner: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (full name, first line, last line) of the functions and classes of a module or a class."""
    for node in owner.body:
        if isinstance(node, Definition):
            yield prefix + node.name, first_line(node), node.end_lineno or node.lineno
        if isinstance(node, ast.ClassDef):
            yield from _list_definitions(node, f"{prefix}{node.name}.")
