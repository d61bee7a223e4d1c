"""Learning which tests a pytest command runs, on the task's own files and before any candidate exists.

A file that cannot be imported yet, for example because it imports a function that the candidate must still
write, cannot be collected. Its tests are found by parsing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import basename, normpath

from suture.judge.runners.pytest_report import PytestReport
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text

FOLDER_FILES = ("conftest.py", "__init__.py")
"""Files that pytest imports for all tests in their folder."""
INTERNAL_ERROR_CODE = 3
"""The exit code of pytest after an error outside of all tests."""


@dataclass(frozen=True, kw_only=True)
class CollectionResult:
    """The tests that every run must report.

    Attributes:
        parsed_ids: Ids found by parsing the files that pytest could not collect; without parameters.
        examples: Id of a docstring's test -> its examples, each as `[source, expected output]`.
        unimportable_examples: Path of a file that cannot be imported yet -> the docstring examples in its source, as
            `find_written_examples` returns them.
        files: The project's files that hold tests other than docstrings.
    """

    ids: tuple[str, ...] = ()
    parsed_ids: tuple[str, ...] = ()
    examples: Mapping[str, list[list[str]]] = field(default_factory=dict)
    unimportable_examples: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def all_ids(self) -> tuple[str, ...]:
        """Every id once."""
        return tuple(dict.fromkeys((*self.ids, *self.parsed_ids)))

    def restrict(self, only: Collection[str]) -> CollectionResult:
        """Return the same tests without those of no given test function and no given file."""

        def belongs(test: str) -> bool:
            return not {test, test.partition("[")[0], _get_file(test)}.isdisjoint(only)

        return replace(
            self,
            ids=tuple(filter(belongs, self.ids)),
            parsed_ids=tuple(filter(belongs, self.parsed_ids)),
            examples={test: examples for test, examples in self.examples.items() if belongs(test)},
            unimportable_examples={
                path: examples for path, examples in self.unimportable_examples.items() if path in only
            },
        )


def read_collection(report: PytestReport, files: Mapping[str, bytes]) -> CollectionResult:
    """Return the tests of a collection report, completed by parsing where pytest could not import.

    Args:
        report: The report of a collection. If it names neither a test nor a fault, every test file is parsed.
    """
    unimportable_examples: dict[str, list[tuple[str, str]]] = {}
    parsed_ids: list[str] = []
    uncollectable = list(report.uncollectable)
    if not report.items and not report.uncollectable and report.exit_code in (None, INTERNAL_ERROR_CODE):
        uncollectable = [""]  # a conftest.py failed to import, or the code ended the pytest process
    tests_in_reach = (
        find_tests_in_reach(files, report.named, report.patterns, report.left_out) if uncollectable else ()
    )
    tests_by_file: dict[str, list[str]] = {}
    for test in tests_in_reach:
        tests_by_file.setdefault(_get_file(test), []).append(test)
    for path in uncollectable:
        if path not in files or basename(path) in FOLDER_FILES:
            folder = path.rpartition("/")[0] if basename(path) in FOLDER_FILES else path
            parsed_ids += [test for test in tests_in_reach if is_in_folder(_get_file(test), folder)]
        elif _holds_tests(path, report):
            parsed_ids += tests_by_file.get(path) or find_written_tests(path, files[path])
        elif examples := find_written_examples(decode_text(files[path])):
            unimportable_examples[path] = examples
    test_files = {*report.files, *map(_get_file, parsed_ids)}
    return CollectionResult(
        ids=report.items,
        parsed_ids=tuple(parsed_ids),
        examples=report.examples,
        unimportable_examples=unimportable_examples,
        files=tuple(sorted(test_files & files.keys())),
    )


def _get_file(test_id: str) -> str:
    return test_id.partition("::")[0]


def _holds_tests(path: str, report: PytestReport) -> bool:
    return path in map(_get_file, report.named) or any(
        fnmatchcase(basename(path), pattern) for pattern in report.patterns
    )


def find_written_tests(path: str, source: bytes) -> tuple[str, ...]:
    """Return the ids of the test functions in a file's source, without parameters."""
    tree = parse_module(source)
    if tree is None:
        return (path,)  # pytest can never collect it, and reports on the file itself
    ids = [f"{path}::{name}" for name in _list_test_functions(tree.body)]
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        is_test_case = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
        if is_test_case or node.name.startswith("Test"):
            ids += [f"{path}::{node.name}::{name}" for name in _list_test_functions(node.body)]
    return tuple(ids)


def find_tests_in_reach(
    files: Mapping[str, bytes], named: Sequence[str], patterns: Iterable[str], left_out: Iterable[str]
) -> tuple[str, ...]:
    """Return the tests that a pytest command would collect, judged by its arguments.

    Args:
        named: Files, folders and test ids that the command names; empty means the whole project.
        patterns: Name patterns of test files, such as `test_*.py`.
        left_out: Names of folders that pytest does not enter.
    """
    start_paths = [normpath(_get_file(argument)) for argument in named]
    chosen_tests = {
        normpath(_get_file(argument)): argument.partition("::")[2] for argument in named if "::" in argument
    }
    ids: list[str] = []
    for path, source in sorted(files.items()):
        folders = path.split("/")[:-1]
        has_test_name = any(fnmatchcase(basename(path), pattern) for pattern in patterns)
        is_entered = not any(fnmatchcase(folder, name) for folder in folders for name in left_out)
        is_below_start = not start_paths or any(is_in_folder(path, start) for start in start_paths)
        is_collected = path in start_paths or (has_test_name and is_entered and is_below_start)
        if not path.endswith(".py") or not is_collected:
            continue
        chosen_test = chosen_tests.get(path, "").partition("[")[0]
        ids += [
            test
            for test in find_written_tests(path, source)
            if not chosen_test or f"{test}::".startswith(f"{path}::{chosen_test}::")
        ]
    return tuple(ids)


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a path is a folder or is in it; an empty folder and `.` mean the project's root."""
    return folder in ("", ".") or path == folder or path.startswith(f"{folder}/")


def find_written_examples(text: str) -> list[tuple[str, str]]:
    """Return (`>>>` line, line below it) for each example of a file, for code that doctest cannot import."""
    lines = [line.strip() for line in (*text.splitlines(), "")]
    return [(line, next_line) for line, next_line in pairwise(lines) if line.startswith(">>>")]


def _list_test_functions(body: list[ast.stmt]) -> list[str]:
    functions = (node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return [node.name for node in functions if node.name.startswith("test") and not _is_fixture(node)]


def _is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
