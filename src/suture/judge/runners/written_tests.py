"""The tests that files hold, found by reading: for code that pytest cannot collect yet."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from posixpath import basename, normpath

from suture.project.python_source.parsing import parsed


def tests_written_in(path: str, source: bytes) -> tuple[str, ...]:
    """The ids of the test functions that a file holds, found without running it; parameters unknown."""
    tree = parsed(source)
    if tree is None:
        return (path,)  # it can never be collected; the file itself must then be reported
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_test_case(node)):
            found += [f"{path}::{node.name}::{name}" for name in _test_names(node.body)]
    return (*(f"{path}::{name}" for name in _test_names(tree.body)), *found)


def tests_in_reach(
    files: Mapping[str, bytes], named: Sequence[str], patterns: Iterable[str], left_out: Iterable[str]
) -> tuple[str, ...]:
    """The tests that a pytest command would collect, by its arguments.

    Args:
        files: The project.
        named: The files, folders and test ids that the command names; everything where there is none.
        patterns: Names of test files, such as `test_*.py`.
        left_out: Names of folders that pytest does not enter.
    """
    starts = [normpath(word.partition("::")[0]) for word in named]
    chosen = {normpath(word.partition("::")[0]): word.partition("::")[2] for word in named if "::" in word}
    found: list[str] = []
    for path, source in sorted(files.items()):
        folders = path.split("/")[:-1]
        is_test = any(fnmatchcase(basename(path), pattern) for pattern in patterns)
        entered = not any(fnmatchcase(folder, name) for folder in folders for name in left_out)
        reached = not starts or any(within(path, start) for start in starts)
        if not path.endswith(".py") or not (path in starts or (is_test and entered and reached)):
            continue
        one = chosen.get(path, "").partition("[")[0]
        tests = tests_written_in(path, source)
        found += [t for t in tests if not one or f"{t}::".startswith(f"{path}::{one}::")]
    return tuple(found)


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it; `` and `.` are the project's root."""
    return folder in ("", ".") or path == folder or path.startswith(f"{folder}/")


def examples_written_in(text: str) -> list[tuple[str, str]]:
    """Each `>>>` line of a text and the line below it, for text that the doctest module cannot reach."""
    lines = [line.strip() for line in (*text.splitlines(), "")]
    return [(line, lines[at + 1]) for at, line in enumerate(lines[:-1]) if line.startswith(">>>")]


def _test_names(body: list[ast.stmt]) -> list[str]:
    functions = (node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [node.name for node in functions if node.name.startswith("test")]


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)
