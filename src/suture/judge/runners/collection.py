"""Learning which tests a pytest command runs, on the task's own files and before any candidate exists."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import basename, normpath

from suture.judge.runners.pytest_report import PytestReport
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text

CONFTESTS = ("conftest.py", "__init__.py")


@dataclass(frozen=True, kw_only=True)
class CollectionResult:
    """The tests that every run must report.

    Attributes:
        ids: Ids of the tests that pytest collected.
        written: Ids found by parsing, where pytest could not collect; without parameters.
        examples: Id of a docstring's test -> its examples, each as source and expected output.
        torn: Path of a file that cannot be imported yet -> the docstring examples in its text.
        files: The project's files that hold tests other than docstrings.
    """

    ids: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    examples: Mapping[str, list[list[str]]] = field(default_factory=dict)
    torn: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def all_ids(self) -> tuple[str, ...]:
        """Every id once."""
        return tuple(dict.fromkeys((*self.ids, *self.written)))


def read_collection(report: PytestReport, files: Mapping[str, bytes]) -> CollectionResult:
    """Return the tests of a collection report, completed by parsing where pytest could not import.

    Args:
        report: The report of a collection. If it names neither a test nor a fault, every test file is parsed.
        files: The project's files.
    """
    torn: dict[str, list[tuple[str, str]]] = {}
    written: list[str] = []
    blocked = list(report.uncollectable)
    if not report.items and not report.uncollectable and report.exit_code in (None, 3):
        blocked = [""]  # a conftest.py failed to import, or the code ended the pytest process
    reach = find_tests_in_reach(files, report.named, report.patterns, report.left_out) if blocked else ()
    for place in blocked:
        if place not in files or basename(place) in CONFTESTS:
            folder = place.rpartition("/")[0] if basename(place) in CONFTESTS else place
            written += [test for test in reach if is_in_folder(test.partition("::")[0], folder)]
        elif _holds_tests(place, report):
            of_file = [test for test in reach if test.partition("::")[0] == place]
            written += of_file or find_written_tests(place, files[place])
        elif examples := find_written_examples(decode_text(files[place])):
            torn[place] = examples
    owners = {*report.files, *(test.partition("::")[0] for test in written)}
    return CollectionResult(
        ids=report.items,
        written=tuple(written),
        examples=report.examples,
        torn=torn,
        files=tuple(sorted(owners & files.keys())),
    )


def _holds_tests(path: str, report: PytestReport) -> bool:
    named = [name.partition("::")[0] for name in report.named]
    return path in named or any(fnmatchcase(basename(path), pattern) for pattern in report.patterns)


def find_written_tests(path: str, source: bytes) -> tuple[str, ...]:
    """Return the ids of the test functions in a file's text, without parameters."""
    tree = parse_module(source)
    if tree is None:
        return (path,)  # pytest can never collect it, and reports on the file itself
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_test_case(node)):
            found += [f"{path}::{node.name}::{name}" for name in _test_names(node.body)]
    return (*(f"{path}::{name}" for name in _test_names(tree.body)), *found)


def find_tests_in_reach(
    files: Mapping[str, bytes], named: Sequence[str], patterns: Iterable[str], left_out: Iterable[str]
) -> tuple[str, ...]:
    """Return the tests that a pytest command would collect, judged by its arguments.

    Args:
        files: The project's files.
        named: Files, folders and test ids that the command names; empty means the whole project.
        patterns: Name patterns of test files, such as `test_*.py`.
        left_out: Names of folders that pytest does not enter.
    """
    starts = [normpath(word.partition("::")[0]) for word in named]
    chosen = {normpath(word.partition("::")[0]): word.partition("::")[2] for word in named if "::" in word}
    found: list[str] = []
    for path, source in sorted(files.items()):
        folders = path.split("/")[:-1]
        is_test = any(fnmatchcase(basename(path), pattern) for pattern in patterns)
        entered = not any(fnmatchcase(folder, name) for folder in folders for name in left_out)
        reached = not starts or any(is_in_folder(path, start) for start in starts)
        if not path.endswith(".py") or not (path in starts or (is_test and entered and reached)):
            continue
        one = chosen.get(path, "").partition("[")[0]
        tests = find_written_tests(path, source)
        found += [t for t in tests if not one or f"{t}::".startswith(f"{path}::{one}::")]
    return tuple(found)


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; an empty folder and `.` mean the project's root."""
    return folder in ("", ".") or path == folder or path.startswith(f"{folder}/")


def find_written_examples(text: str) -> list[tuple[str, str]]:
    """Return each `>>>` line of a text with the line below it, for code that doctest cannot import."""
    lines = [line.strip() for line in (*text.splitlines(), "")]
    return [(line, lines[at + 1]) for at, line in enumerate(lines[:-1]) if line.startswith(">>>")]


def _test_names(body: list[ast.stmt]) -> list[str]:
    functions = (node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [node.name for node in functions if node.name.startswith("test")]


def _is_test_case(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in node.bases)
