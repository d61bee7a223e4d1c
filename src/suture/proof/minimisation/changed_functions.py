"""What differs between a change and a part of it, as far as it could change what the code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from suture.pysource.parsing import parsed
from suture.records import Task
from suture.workspace import text_of

Function = tuple[str, str]
"""A path, and a function at the top level of that file."""
PROSE = frozenset((".md", ".rst"))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def changed_functions(whole: Mapping[str, bytes], part: Mapping[str, bytes]) -> frozenset[Function] | None:
    """The functions in which a part of a change differs from the whole.

    Comments and docstrings are no difference, nor is a new function that nothing names.

    Args:
        whole: The project with the change.
        part: The project with the part.

    Returns:
        `None` where more differs than functions that both have.
    """
    found: set[Function] = set()
    for path in sorted(whole.keys() | part.keys()):
        if whole.get(path) == part.get(path) or PurePosixPath(path).suffix in PROSE:
            continue
        names = _in_file(path, whole, part) if path in whole and path in part else None
        if names is None:
            return None
        found |= {(path, name) for name in names}
    return frozenset(found)


def _in_file(path: str, whole: Mapping[str, bytes], part: Mapping[str, bytes]) -> set[str] | None:
    trees = [parsed(text_of(files[path])) for files in (whole, part)] if path.endswith(".py") else [None]
    if any(tree is None for tree in trees):
        return None
    (full, plain), (less, plain_less) = (_pieces(tree) for tree in trees if tree is not None)
    names = {name for name in full.keys() | less.keys() if full.get(name) != less.get(name)}
    names -= {n for n in names if plain.get(n) and n not in less and not _is_named(n, part)}
    return names if all(plain.get(name) and plain_less.get(name) for name in names) else None


def _pieces(tree: ast.Module) -> tuple[dict[str, str], dict[str, bool]]:
    """Name -> the code of a definition, and whether it is a plain function; other code has no name."""
    pieces: dict[str, str] = {"": ""}
    plain: dict[str, bool] = {}
    for node in tree.body:
        name = node.name if isinstance(node, DEFINITIONS) else ""
        for inner in ast.walk(node):
            if isinstance(inner, DEFINITIONS):
                inner.body = _without_docstring(inner.body)
        if name:
            is_plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
            plain[name] = is_plain and name not in plain
        if name or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            pieces[name] = f"{pieces.get(name, '')}{ast.dump(node)}\n"
    return pieces, plain


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    has_one = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if has_one else body


def _is_named(name: str, files: Mapping[str, bytes]) -> bool:
    word = re.compile(rb"\b%s\b" % name.encode("utf-8", "surrogateescape"))
    return any(word.search(content) for content in files.values())


def asked_functions(task: Task) -> frozenset[str]:
    """The functions that a task's checks call by their names."""
    trees = [parsed(check.source) for check in task.checks]
    calls = (
        node for tree in trees if tree is not None for node in ast.walk(tree) if isinstance(node, ast.Call)
    )
    return frozenset(call.func.id for call in calls if isinstance(call.func, ast.Name))
