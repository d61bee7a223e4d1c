"""List the names by which tests can call what a change of a Python file alters."""

from __future__ import annotations

import ast

from suture.project.python_source.scopes import FUNCTIONS

MAX_CALL_LEVELS = 5
"""Levels of callers in the same file that are followed. Chosen by judgement."""


def list_changed_names(changed: ast.Module, tree: ast.Module) -> frozenset[str]:
    """Return the names of changed functions, of their classes, and of the functions of the file that use them.

    Args:
        changed: The statements, functions and class heads that the change alters or adds.
        tree: The whole file after the change.
    """
    names: set[str] = set()
    for node in changed.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        else:
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    classes: dict[ast.stmt, str] = {
        part: node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body
    }
    users: list[tuple[set[str], set[str]]] = []
    for node in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
        owners = {node.name, classes.get(node, node.name)}
        users.append((owners, _read_names(node)))
        names |= owners if node.name in names else set()
    for _ in range(MAX_CALL_LEVELS):
        names |= {name for owners, used in users if used & names for name in owners}
    return frozenset(names)


def _read_names(node: ast.AST) -> set[str]:
    """Return the variables and attributes in a function."""
    parts = ast.walk(node)
    return {
        getattr(part, "id", getattr(part, "attr", ""))
        for part in parts
        if isinstance(part, (ast.Name, ast.Attribute))
    }
