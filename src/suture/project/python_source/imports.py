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


def find_importers(files: Mapping[str, str], paths: Collection[str]) -> frozenset[str]:
    """Return the files whose import loads one of some files, directly or through other files.

    Whatever folder absolute imports begin at, a module is found by the end of its path. That is too much rather than
    too little.

    Args:
        files: Path -> source, of all Python files of the program.
    """
    by_module: dict[str, set[str]] = {}
    for path in files:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for start in range(len(parts)):
            by_module.setdefault("/".join(parts[start:]), set()).add(path)
    importers: dict[str, set[str]] = {}
    for path, source in files.items():
        loaded = {file for name in imported_paths(source, path) for file in by_module.get(name, ())}
        packages = {folder / "__init__.py" for file in loaded for folder in PurePosixPath(file).parents}
        for file in (*loaded, *map(str, packages)):
            importers.setdefault(file, set()).add(path)
    found: set[str] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        waiting += importers.get(path, set()) - found
        found |= importers.get(path, set())
    return frozenset(found)
