"""The records of what a change does to the tests of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TestChangeCode = Literal[
    "test_removed",
    "test_skipped",
    "assertion_removed",
    "assertion_loosened",
    "assertion_guarded",
    "tolerance_widened",
    "exception_broadened",
    "expectation_changed",
    "cases_removed",
    "test_support_changed",
    "test_hook_added",
    "test_hook_changed",
    "asserts_nothing",
]
"""What a change does to a test. All but `expectation_changed`, `test_support_changed`, `test_hook_changed` and
`asserts_nothing` weaken it."""
WEAKENING_CODES: frozenset[TestChangeCode] = frozenset((
    "test_removed",
    "test_skipped",
    "assertion_removed",
    "assertion_loosened",
    "assertion_guarded",
    "tolerance_widened",
    "exception_broadened",
    "cases_removed",
    "test_hook_added",
))  # fmt: skip
"""Codes of changes after which a test accepts more than before."""


@dataclass(frozen=True, kw_only=True)
class TestChange:
    """One thing that a change does to a test.

    Attributes:
        path: The test file.
        line: Line in the new file, from 1; in the old file for something that was removed.
        test: The test as `Class::function` or `function`; empty if it concerns the whole file.
        before: The old source in one line, shortened; empty if there was none.
        after: The new source in one line, shortened; empty if it was removed.
        names: For a removed test, what it uses: names that it does not define itself, and texts.
    """

    __test__ = False  # keeps pytest from collecting this class

    code: TestChangeCode
    path: str
    line: int
    test: str = ""
    before: str = ""
    after: str = ""
    names: frozenset[str] = frozenset()

    @property
    def weakens(self) -> bool:
        """Whether the test accepts more than before."""
        return self.code in WEAKENING_CODES


@dataclass(frozen=True, kw_only=True)
class TestFileChanges:
    """What a change does to the tests of one file.

    Attributes:
        changes: The changes, in the order of their lines.
        new_tests: Tests that did not exist before.
        changed_tests: Tests that existed before and have another body now.
        removed_tests: Tests that no longer exist, renamed ones excepted.
        moved_tests: Those of the removed tests that another place has now -> its file and the test's name there. They
            may not run there.
    """

    __test__ = False

    changes: tuple[TestChange, ...] = ()
    new_tests: tuple[str, ...] = ()
    changed_tests: tuple[str, ...] = ()
    removed_tests: tuple[str, ...] = ()
    moved_tests: Mapping[str, tuple[str, str]] = field(default_factory=dict)
