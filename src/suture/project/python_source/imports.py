"""Find the files that the modules of a program load, by their imports."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.project.python_source.parsing import parse_module


def imported_paths(code: str, path: str) -> frozenset[str]:
    """Return the modules that a file imports, as paths without extension; empty if it is invalid.

    Args:
        code: Source of the file.
        path: Path of the file, relative to the root of absolute imports.
    """
    tree, found = parse_module(code), set[str]()
    folders = PurePosixPath(path).parents
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            found |= {alias.name.replace(".", "/") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "" if not node.level else folders[min(node.level, len(folders)) - 1].as_posix()
            inside = "/".join(
                part for part in ("" if base == "." else base, (node.module or "").replace(".", "/")) if part
            )
            found |= {inside, *("/".join(filter(None, (inside, alias.name))) for alias in node.names)}
    return frozenset(found)


def loaded_files(files: Mapping[str, str], roots: Collection[str]) -> frozenset[str]:
    """Return the files that are loaded with some files: what these import, and the packages that contain
    them.

    Args:
        files: Path -> source, of all files.
        roots: Paths of the files that are loaded first.
    """
    loaded: set[str] = set()
    waiting = [path for path in roots if path in files]
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded.add(path)
        around = [f"{folder.as_posix()}/__init__.py" for folder in PurePosixPath(path).parents]
        names = imported_paths(files[path], path)
        wanted = {*around, *(f"{name}{end}" for name in names for end in (".py", "/__init__.py"))}
        waiting += [other for other in wanted if other in files]
    return frozenset(loaded)
