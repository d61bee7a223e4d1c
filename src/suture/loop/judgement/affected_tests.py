"""Which tests a change can affect, as far as a run on the files before it shows.

A test is affected if it ran a changed function, if its file or what decides about it changed, or if its file imports
what changed where no run shows more. A value that an earlier test left in the process is not seen.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from suture.core.records import Verdict
from suture.judge import Suite
from suture.judge.coverage.reached_functions import Place, TestReach
from suture.judge.runners.pytest_report import get_function
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.changed_functions import ChangedFunctions, find_changed_functions
from suture.project.python_source.parsing import find_importers
from suture.project.workspace import decode_text, is_test_file

TEST_MODULE_NAME = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
DOCUMENT_SUFFIXES = (".md", ".rst")
"""Suffixes of documents, which no test reads unless it was seen to open them."""


@dataclass(frozen=True, kw_only=True)
class AffectedTests:
    """The tests that a change can affect.

    Attributes:
        functions: Ids of test functions, without parameters.
        files: Test files that are new or changed, all of whose tests are affected.
    """

    functions: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()

    @property
    def only(self) -> frozenset[str]:
        """What a test command is restricted to."""
        return self.functions | self.files

    def contain(self, test: str) -> bool:
        """Return whether a test is among them."""
        return get_function(test) in self.functions or get_file(test) in self.files


def get_file(test: str) -> str:
    """Return the file of a test, by its id."""
    return test.partition("::")[0]


def find_affected_tests(
    change: ProposedChange, suite: Suite, before: Verdict, reach: TestReach
) -> AffectedTests | None:
    """Return the tests that a change can affect; `None` if all tests may be affected.

    Args:
        suite: The tests before the change.
        before: How they ended on the files before the change.
        reach: What they ran there.
    """
    tests = [outcome.check_id for outcome in before.outcomes if "::" in outcome.check_id]
    test_modules = find_test_modules(change, suite)
    places: set[Place] = set()
    imported: set[str] = set(test_modules)
    folders: list[str] = []
    has_code = False
    for path in sorted({*change.changed} - test_modules):
        if posixpath.basename(path) == "conftest.py":
            folders.append(posixpath.dirname(path))
        elif path.endswith(".py"):
            has_code = True
            changed = _find_changes(change, path)
            altered = {(path, line) for line in changed.lines}
            places |= altered
            if changed.alters_import or altered & reach.importing:
                imported.add(path)
                places |= {*reach.list_places(path)}
        elif not _is_unread(path, suite):
            return None
    chosen = set(reach.find_tests(places))
    chosen |= {test for test in tests if any(_is_below(test, folder) for folder in folders)}
    chosen |= {*reach.starting_processes} if has_code else set()
    chosen |= _find_importing(tests, imported, change)
    unknown = [test for test in tests if test not in reach.known]
    if has_code and unknown:
        chosen |= _find_importing(unknown, change.changed, change)
    return AffectedTests(
        functions=frozenset(map(get_function, chosen)) & frozenset(map(get_function, tests)),
        # Examples in changed modules and documents are tests of these files.
        files=test_modules | ({*change.changed} & {*map(get_file, tests)}),
    )


def find_test_modules(change: ProposedChange, suite: Suite) -> frozenset[str]:
    """Return the changed files that hold tests, before or after the change."""
    return frozenset(
        path
        for path in change.changed
        if path in suite.test_files
        or (path.endswith(".py") and TEST_MODULE_NAME.search(path) and is_test_file(path))
    )


def _find_changes(change: ProposedChange, path: str) -> ChangedFunctions:
    if path not in change.before:
        return ChangedFunctions()  # nothing imports it without another change
    if path not in change.after:
        return ChangedFunctions(alters_import=True)
    return find_changed_functions(change.old_text(path), change.new_text(path))


def _is_unread(path: str, suite: Suite) -> bool:
    """Return whether no test reads a file that is no Python code."""
    opened = suite.command.opened_data if suite.command is not None else ()
    return path.endswith(DOCUMENT_SUFFIXES) and path not in opened


def _is_below(test: str, folder: str) -> bool:
    return not folder or test.startswith(f"{folder}/")


def _find_importing(tests: Iterable[str], paths: Collection[str], change: ProposedChange) -> set[str]:
    """Return the tests whose file imports one of some files, or that a `conftest.py` which does so prepares."""
    importers = {*find_importers_of(paths, change), *paths}
    folders = [
        str(PurePosixPath(path).parent) for path in importers if posixpath.basename(path) == "conftest.py"
    ]
    return {
        test
        for test in tests
        if get_file(test) in importers
        or any(_is_below(test, "" if folder == "." else folder) for folder in folders)
    }


def find_importers_of(paths: Collection[str], change: ProposedChange) -> frozenset[str]:
    """Return the files before a change that import one of some files, directly or through other files."""
    names = {PurePosixPath(path.removesuffix("/__init__.py")).stem.encode() for path in paths}
    others = [text for path, text in change.before.items() if path.endswith(".py") and path not in paths]
    if not any(name in text for name in names for text in others):
        return frozenset()  # parsing a large project takes seconds
    sources = {path: decode_text(text) for path, text in change.before.items() if path.endswith(".py")}
    return find_importers(sources, paths)
