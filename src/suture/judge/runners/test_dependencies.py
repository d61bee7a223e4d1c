"""Finding the installed packages that the tests import.

A candidate must not add a file with the name of one, because Python would import it in place of the package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from suture.project.languages import Interpreter
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import is_test_file


def find_test_dependencies(
    files: Mapping[str, bytes], tests: Iterable[str], interpreter: Interpreter
) -> frozenset[str]:
    """Return the installed packages and modules that the tests import.

    Args:
        tests: Paths of the test files; files whose names look like test files are added.
    """
    test_files = {*tests, *(path for path in files if path.endswith(".py") and is_test_file(path))}
    imported: set[str] = set()
    for path in test_files & files.keys():
        tree = parse_module(files[path])
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    return frozenset(imported & _list_installed_names(interpreter))


def _list_installed_names(interpreter: Interpreter) -> set[str]:
    names: set[str] = set()
    for folder in map(Path, interpreter.site_packages):
        if folder.is_dir():
            names |= {entry.name.partition(".")[0] for entry in folder.iterdir() if "-" not in entry.name}
    return names


def shadows_dependency(
    path: str, files: Iterable[str], libraries: frozenset[str], roots: Iterable[str]
) -> bool:
    """Whether a file would be imported in place of a package that the tests import.

    Args:
        files: Paths of the project's own files. A package that is developed in the project may be changed.
    """
    prefixes = {"", *(f"{root.strip('./')}/" for root in roots if root.strip("./"))}
    for prefix in prefixes:
        name = path.removeprefix(prefix).partition("/")[0].partition(".")[0]
        if path.startswith(prefix) and path.endswith(".py") and name in libraries:
            own_package = (f"{prefix}{name}/", f"{prefix}{name}.py")
            return not any(file.startswith(own_package) for file in files)
    return False
