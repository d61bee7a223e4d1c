"""Compare two versions of a test file in any language whose syntax is known."""

from __future__ import annotations

from suture.judge.test_changes.python_test_file import read_python_tests
from suture.judge.test_changes.test_case import TestFile, compare_test_files
from suture.judge.test_changes.test_change import TestFileChanges
from suture.judge.test_changes.tree_test_file import read_tree_tests
from suture.mutation import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages


def compare_tests(path: str, before: str, after: str) -> TestFileChanges:
    """Return what a change does to the tests of a file.

    Args:
        path: The test file.
        before: Its old source; empty for a new file.
        after: Its new source; empty for a removed file.
    """
    return compare_test_files(path, _read_tests(path, before), _read_tests(path, after))


def _read_tests(path: str, source: str) -> TestFile:
    language = next(iter(detect_file_languages((path,))), None)
    if language is None or not source.strip():
        return TestFile()
    if LANGUAGES[language].parsed:
        return read_python_tests(source)
    return read_tree_tests(source, path, language) if has_grammar(language) else TestFile()
