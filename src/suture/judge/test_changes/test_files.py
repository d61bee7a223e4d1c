"""Compare two versions of a test file in any language whose syntax is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from suture.judge.test_changes.python_test_file import read_python_tests
from suture.judge.test_changes.test_case import TestFile, asks_as_much, compare_test_files
from suture.judge.test_changes.test_change import TestFileChanges
from suture.judge.test_changes.tree_test_file import read_tree_tests
from suture.mutation import has_grammar
from suture.project.languages import LANGUAGES, detect_file_languages


def compare_tests(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, TestFileChanges]:
    """Return path -> what a change does to the tests of a file; tests that another place has now are no new ones.

    Args:
        before: Path -> old source of the changed test files.
        after: Path -> new source.
    """
    paths = sorted({*before, *after})
    old = {path: _read_tests(path, before.get(path, "")) for path in paths}
    new = {path: _read_tests(path, after.get(path, "")) for path in paths}
    compared = {path: compare_test_files(path, old[path], new[path]) for path in paths}
    added = [(path, new[path].tests[name]) for path in paths for name in compared[path].new_tests]
    for path in paths:
        moved: dict[str, tuple[str, str]] = {}
        for name in compared[path].removed_tests:
            found = next((place for place in added if asks_as_much(old[path].tests[name], place[1])), None)
            if found is not None:
                added.remove(found)
                moved[name] = (found[0], found[1].name)
        compared[path] = replace(compared[path], moved_tests=moved)
    for path in paths:
        left = tuple(test.name for place, test in added if place == path)
        compared[path] = replace(compared[path], new_tests=left)
    return compared


def _read_tests(path: str, source: str) -> TestFile:
    language = next(iter(detect_file_languages((path,))), None)
    if language is None or not source.strip():
        return TestFile()
    if LANGUAGES[language].parsed:
        return read_python_tests(source)
    return read_tree_tests(source, path, language) if has_grammar(language) else TestFile()
