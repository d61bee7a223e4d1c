"""Find the function or class around a line, which distinguishes equal diagnostics of a file even if its lines move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from suture.project.languages.language_table import LANGUAGES, detect_file_languages
from suture.project.languages.reports import parse_tree
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.tuning import MAX_NODE_DEPTH, MAX_SCANNED_FILE_CHARS

if TYPE_CHECKING:
    from tree_sitter import Node

PYTHON_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
TREE_DEFINITIONS = frozenset(
    (
        "function_declaration", "generator_function_declaration", "method_declaration", "method_definition",
        "class_declaration", "abstract_class_declaration", "interface_declaration", "type_alias_declaration",
        "enum_declaration", "type_spec", "variable_declarator", "public_field_definition",
    )
)  # fmt: skip
"""Nodes of JavaScript, TypeScript and Go that give a name to code."""
Definition = tuple[str, int, int]
"""The qualified name of a definition, and its first and last line."""


def find_enclosing_definition(path: str, text: str, line: int) -> str:
    """Return the qualified name of the innermost definition around a line; empty if there is none.

    Args:
        path: The file's path, whose extension gives its language.
        line: The line, from 1.
    """
    around = [found for found in find_definitions(path, text) if found[1] <= line <= found[2]]
    return min(around, key=lambda found: found[2] - found[1])[0] if around else ""


def find_definitions(path: str, text: str) -> tuple[Definition, ...]:
    """Return the functions, classes and named values of a file; none if its language is not parsed."""
    if len(text) > MAX_SCANNED_FILE_CHARS:
        return ()
    if path.endswith((".py", ".pyi")):
        tree = parse_module(text)
        return tuple(_iterate_python(tree, "")) if tree is not None else ()
    language = next(iter(detect_file_languages((path,))), None)
    grammars = LANGUAGES[language].grammars if language is not None else {}
    if not grammars:
        return ()
    return tuple(_iterate_tree(parse_tree(text, path, grammars), "", 0))


def _iterate_python(parent: ast.AST, prefix: str) -> Iterator[Definition]:
    for node in ast.iter_child_nodes(parent):
        name = prefix
        if isinstance(node, PYTHON_DEFINITIONS):
            name = f"{prefix}.{node.name}".lstrip(".")
            yield name, first_line(node), node.end_lineno or node.lineno
        yield from _iterate_python(node, name)


def _iterate_tree(parent: Node, prefix: str, depth: int) -> Iterator[Definition]:
    if depth > MAX_NODE_DEPTH:
        return
    for node in parent.named_children:
        name = prefix
        named = node.child_by_field_name("name") if node.type in TREE_DEFINITIONS else None
        if (
            named is not None
            and named.text is not None
            and (node.type != "variable_declarator" or not prefix)
        ):
            name = f"{prefix}.{named.text.decode('utf-8', 'replace')}".lstrip(".")
            yield name, node.start_point[0] + 1, node.end_point[0] + 1
        yield from _iterate_tree(node, name, depth + 1)
