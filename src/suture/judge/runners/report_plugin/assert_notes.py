"""What assertions of the tests send to the audit hook: that they failed or, on request, that they hold."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .assert_watch import CatchingLines
from .machinery import PLUGIN_FOLDER
from .origins import get_file

# The functions below use this copy, even if code changes the builtins. Type checkers expect a module.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
ASSERT_REQUESTS = frozenset(("failed_assert", "skipped_assert", "passed_assert"))
"""The requests that tests send. Code under test may send them too."""
get_traceback = vars(BaseException)["__traceback__"].__get__
"""Returns the traceback of an exception, whose class may define another attribute of that name."""


class AssertNotes:
    """The assertions of the current test.

    Args:
        is_test: Whether a file holds tests.
        is_candidate: Whether a file is the candidate's.

    Attributes:
        failed_at: Test id -> absolute path and line of the assertion at which the test failed before the change.
        noted_places: The paths and lines of assertions that send a request whenever they hold.
        passed: Those that did in the current test.
        unchanged_definitions: Absolute path, first and last line of functions and classes that are as they were before
            the change, in files that it changes.
    """

    def __init__(self, is_test: Callable[[str], bool], is_candidate: Callable[[str], bool]) -> None:
        self._is_test = is_test
        self._is_candidate = is_candidate
        self._catching_lines = CatchingLines()
        self._failed = []  # type: list[str]
        self.failed_at = {}  # type: dict[str, tuple[str, int]]
        self.noted_places = set()  # type: set[tuple[str, int]]
        self.passed = set()  # type: set[tuple[str, int]]
        self.unchanged_definitions = []  # type: list[tuple[str, int, int]]

    def receive(self, request: str, detail: Any = None, *, frame: Any) -> None:
        """Do what a request says.

        Args:
            detail: The line of an assertion that holds; the error that ended an iteration of a test; or where the
                manager is defined that swallowed an exception.
            frame: The innermost frame of Python code.
        """
        if request == "passed_assert":
            self._note_passed_assert(detail, frame)
        elif request == "skipped_assert":
            if type(detail) is not list or any(self._is_changed(place) for place in detail):
                self._note_failed_assert(frame)
        elif detail is None or self._is_raised_by_function(detail):
            self._note_failed_assert(frame)

    def take_failed(self) -> list[str]:
        """Return and forget the assertions that failed since the last phase of a test.

        Each is the candidate's file that called it, if one did, or the test's file.
        """
        failed, self._failed = self._failed, []
        return failed

    def lacks_assertion(self, test: str) -> bool:
        """Whether a test that passed did not reach the assertion at which it failed before the change."""
        place = self.failed_at.get(test)
        if place is None or place not in self.noted_places or place in self.passed:
            return False
        return not self._catching_lines.contain(*place)

    def _note_failed_assert(self, frame: Any) -> None:
        """Remember a failed assert, whose exception may get lost: in the candidate's code, a thread, a library.

        What the test itself catches is left out.
        """
        test_file, caller = "", ""
        while frame is not None:
            file = get_file(frame)
            if self._is_test(file):
                test_file = test_file or file
                if self._catching_lines.contain(file, frame.f_lineno):
                    return
            elif test_file and not caller and self._is_candidate(file):
                caller = file
            frame = frame.f_back
        if test_file:
            self._failed.append(caller or test_file)

    def _note_passed_assert(self, line: Any, frame: Any) -> None:
        """Remember that an assertion holds, if it holds according to its test."""
        while frame is not None and get_file(frame).startswith(PLUGIN_FOLDER):
            frame = frame.f_back
        if type(line) is int and frame is not None and self._is_test(get_file(frame)):
            self.passed.add((get_file(frame), line))

    def _is_changed(self, place: Any) -> bool:
        """Whether the candidate wrote what is defined at a place, a path and a line.

        A manager that is as it was catches some exceptions on purpose, and tests may rely on that.
        """
        # Code under test could send objects whose methods would run inside of the audit hook.
        if not (type(place) is tuple and len(place) == 2 and type(place[0]) is str and type(place[1]) is int):
            return True
        file, line = place
        return self._is_candidate(file) and not any(
            path == file and first <= line <= last for path, first, last in self.unchanged_definitions
        )

    def _is_raised_by_function(self, error: Any) -> bool:
        """Whether a function of the candidate raised an error, and not an iterator of the candidate that just ends."""
        trace = get_traceback(error) if issubclass(type(error), BaseException) else None
        while trace is not None:
            if self._is_candidate(get_file(trace.tb_frame)):
                return bool(trace.tb_frame.f_code.co_name != "__next__")
            trace = trace.tb_next
        return False
