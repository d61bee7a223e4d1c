"""What the tests take from the environment; a new file of that name would come first and decide for them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from suture.project.languages import Interpreter
from suture.project.python_source.parsing import parsed
from suture.project.workspace import is_test_file


def libraries_of(
    files: Mapping[str, bytes], tests: Iterable[str], interpreter: Interpreter
) -> frozenset[str]:
    """Installed packages and modules that tests import.

    Args:
        files: The project.
        tests: Its files that hold tests; those that look like test files count too.
        interpreter: What the tests run on.
    """
    looked_at = {*tests, *(path for path in files if path.endswith(".py") and is_test_file(path))}
    imported: set[str] = set()
    for path in looked_at & files.keys():
        tree = parsed(files[path])
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    return frozenset(imported & _installed(interpreter))


def _installed(interpreter: Interpreter) -> set[str]:
    found: set[str] = set()
    for folder in map(Path, interpreter.site_packages):
        if folder.is_dir():
            found |= {entry.name.partition(".")[0] for entry in folder.iterdir() if "-" not in entry.name}
    return found


def takes_a_librarys_place(
    path: str, files: Iterable[str], libraries: frozenset[str], roots: Iterable[str]
) -> bool:
    """Whether a file would be imported in the place of a library that the tests import.

    Args:
        path: The file's, in the project.
        files: The paths of the project's own files: a library that is developed here is the project's.
        libraries: The libraries.
        roots: Folders of the project that are imported from.
    """
    starts = {"", *(f"{root.strip('./')}/" for root in roots if root.strip("./"))}
    for start in starts:
        name = path.removeprefix(start).partition("/")[0].partition(".")[0]
        if path.startswith(start) and path.endswith(".py") and name in libraries:
            own = (f"{start}{name}/", f"{start}{name}.py")
            return not any(other.startswith(own) for other in files)
    return False
