"""Find the files that a Python program loads, by following its import statements. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from suture.project.python_source.parsing import parse_module


def imported_paths(code: str, path: str) -> frozenset[str]:
    """Return the modules that a file imports, as paths without extension; empty if the file is invalid.

    `from shop import cart` may import a module or a name that `shop` defines, so it gives both `shop` and
    `shop/cart`.

    Args:
        code: Source of the file.
        path: Path of the file, relative to the folder at which absolute imports begin.
    """
    tree = parse_module(code)
    folders = PurePosixPath(path).parents
    paths: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            paths |= {alias.name.replace(".", "/") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # One dot means the file's own folder, and each further dot the folder above it.
            base = folders[min(node.level, len(folders)) - 1] if node.level else PurePosixPath()
            module = base / (node.module or "").replace(".", "/")
            paths |= {module.as_posix(), *((module / alias.name).as_posix() for alias in node.names)}
    return frozenset(paths)


def loaded_files(files: Mapping[str, str], entry_paths: Collection[str]) -> frozenset[str]:
    """Return the files that Python loads when it imports some of a program's files.

    These are the imported files themselves, the files that they import (directly, or through other files),
    and the `__init__.py` of every folder around one of these.

    Args:
        files: Path -> source, of all files of the program.
        entry_paths: Paths of the files that are imported first. Paths that are not in `files` are ignored.
    """
    loaded: set[str] = set()
    waiting = [path for path in entry_paths if path in files]
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded.add(path)
        modules = imported_paths(files[path], path)
        packages = (*PurePosixPath(path).parents, *map(PurePosixPath, modules))
        possible_files = {
            *(f"{module}.py" for module in modules),
            *((package / "__init__.py").as_posix() for package in packages),
        }
        waiting += [file for file in possible_files if file in files]
    return frozenset(loaded)
