"""Find functions that lose type annotations, so that a type checker sees less of them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.project.languages.language_table import LANGUAGES
from suture.project.languages.reports import parse_tree
from suture.project.python_source.parsing import parse_module
from suture.project.tuning import MAX_NODE_DEPTH, MAX_SCANNED_FILE_CHARS

if TYPE_CHECKING:
    from tree_sitter import Node

SCRIPT_ENDINGS = (".ts", ".tsx", ".mts", ".cts")
SCRIPT_FUNCTIONS = ("function_declaration", "method_definition", "arrow_function", "function_expression")
PARAMETERS = ("required_parameter", "optional_parameter")
Slot = tuple[str, bool]
"""`(function, whether it has an annotation)` for one parameter or result of the function."""


def find_lost_annotations(path: str, before: str, after: str) -> tuple[str, ...]:
    """Return the functions of a Python or TypeScript file that a change leaves with fewer annotations.

    A parameter may go together with its annotation.
    """
    old, new = Counter(_find_slots(path, before)), Counter(_find_slots(path, after))
    return tuple(
        name
        for name, _ in sorted(old)
        if old[name, True] > new[name, True] and new[name, False] > old[name, False]
    )


def count_assertions(path: str, text: str) -> int:
    """Return how often a TypeScript file asserts by `!` that a value is not null."""
    return sum(node.type == "non_null_expression" for node, _ in _iterate_tree(path, text))


def _find_slots(path: str, text: str) -> Iterator[Slot]:
    if path.endswith((".py", ".pyi")):
        module = parse_module(text) if len(text) <= MAX_SCANNED_FILE_CHARS else None
        yield from _find_python_slots(module, "") if module is not None else ()
    for node, name in _iterate_tree(path, text):
        if node.type in SCRIPT_FUNCTIONS:
            yield name, node.child_by_field_name("return_type") is not None
        elif node.type in PARAMETERS:
            yield name, node.child_by_field_name("type") is not None


def _find_python_slots(parent: ast.AST, prefix: str) -> Iterator[Slot]:
    for node in ast.iter_child_nodes(parent):
        name = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}.{node.name}".lstrip(".")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield name, node.returns is not None
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield name, node.annotation is not None
        yield from _find_python_slots(node, name)


def _iterate_tree(path: str, text: str) -> Iterator[tuple[Node, str]]:
    """Yield the nodes of a TypeScript file with the qualified name of the function or class around each."""
    if not path.endswith(SCRIPT_ENDINGS) or len(text) > MAX_SCANNED_FILE_CHARS:
        return
    waiting = [(parse_tree(text, path, LANGUAGES["typescript"].grammars), "", 0)]
    while waiting:
        node, prefix, depth = waiting.pop()
        named = node.child_by_field_name("name")
        name = (
            f"{prefix}.{named.text.decode('utf-8', 'replace')}"
            if named is not None and named.text
            else prefix
        )
        yield node, name.lstrip(".")
        if depth < MAX_NODE_DEPTH:
            waiting += [(child, name, depth + 1) for child in node.named_children]
