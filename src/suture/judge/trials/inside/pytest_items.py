"""Run pytest's items as pytest itself does, and derive each test's outcome from the reports.

All hooks of the project and of its plugins are called. So they decide what fails, is expected to fail or is
skipped, as in the user's own run. The outcomes follow the same rule as those of the user's run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MAX_ERROR_CHARS = 800
"""Characters of an exception's message: an assertion may compare whole files."""
MAX_TRACEBACK_FRAMES = 24
"""Innermost frames of a traceback that are kept: those of a recursion are a thousand times the same."""


def describe_error(fault: BaseException) -> str:
    """Return the class of an exception and its message, cut if it is long."""
    try:
        message = str(fault)
    except Exception:
        message = ""
    return f"{type(fault).__name__}: {message[:MAX_ERROR_CHARS]}"


def get_traceback(fault: BaseException, root: str, own_folder: str) -> list[tuple[str, int]]:
    """Return (path, line) of an exception's frames in the project, tests included, outermost first.

    `root` is the project's folder with a slash at the end, and `own_folder` is Suture's folder in it.
    """
    frames = []
    trace = fault.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(root) and not file.startswith(own_folder) and "site-packages" not in file:
            frames.append((os.path.relpath(os.path.realpath(file), os.path.realpath(root)), trace.tb_lineno))
        trace = trace.tb_next
    return frames[-MAX_TRACEBACK_FRAMES:]


class Outcomes:
    """A pytest plugin that derives the outcome of one test after another from their reports.

    Attributes:
        on_error: Receives each exception of a test, if it is set.
    """

    def __init__(self) -> None:
        self.on_error: Callable[[BaseException], None] | None = None
        self._status = ""
        self._finished = False

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Report an exception."""
        # This hook must not be `tryfirst`: pytest itself sets a unittest's exception by a hook that is.
        if self.on_error is not None and call.excinfo is not None:
            self.on_error(call.excinfo.value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take in the report of one phase, or of one part of a test; the first failure stays."""
        if self._status == "failed":
            return
        self._finished = self._finished or report.when == "teardown"
        if report.outcome == "failed":
            self._status = "failed"
        elif report.outcome == "rerun":  # pytest-rerunfailures starts the test again
            self._status, self._finished = "", False
        elif report.outcome == "skipped":
            self._status = "skipped"
        elif report.when == "call":
            self._status = "passed"

    def run(self, item: Any, following: Any) -> str:
        """Run one test, and return `passed`, `failed` or `skipped`.

        Fixtures that the test shares with `following`, the next one, are kept until then.
        """
        self._status, self._finished = "", False
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException as fault:  # a test that ends pytest itself
            if self.on_error is not None:
                self.on_error(fault)
            return "failed"
        if self._status == "passed" and not self._finished:
            return "failed"
        return self._status or "failed"


def _describe_nothing(*_: Any, **__: Any) -> str:
    return ""


class Items:
    """The collected tests, by their ids relative to the project's root."""

    def __init__(self, session: Any, root: str) -> None:
        config = session.config  # pytest's ids are relative to its own root, which may be another folder
        self._prefix = os.path.relpath(str(getattr(config, "rootpath", None) or config.rootdir), root)
        self.in_order = [(self._get_id(item.nodeid), item) for item in session.items]
        self._by_id: dict[str, list[tuple[int, str, Any]]] = {}
        for number, (test, item) in enumerate(self.in_order):
            for name in {test, test.partition("[")[0], test.partition("::")[0]}:
                self._by_id.setdefault(name, []).append((number, test, item))

    def _get_id(self, nodeid: str) -> str:
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    def drop_failure_texts(self) -> None:
        """Fail without pytest's text of the failure: nobody reads it, and it takes half of a failing test's time."""
        for _, item in self.in_order:
            if isinstance(item, pytest.Function):
                item.repr_failure = _describe_nothing  # type: ignore[method-assign]

    @property
    def ids(self) -> list[str]:
        """The ids of all tests, in the order of the run."""
        return [test for test, _ in self.in_order]

    def select(self, tests: Iterable[str]) -> list[tuple[str, Any]]:
        """Return the tests of some ids, in the given order.

        An id without parameters selects all parameter sets, and a path selects all tests of the file.
        """
        selected: dict[int, tuple[str, Any]] = {}
        for name in tests:
            matches = self._by_id.get(name, ())
            exact_matches = [entry for entry in matches if entry[1] == name]
            selected.update((number, (test, item)) for number, test, item in exact_matches or matches)
        return list(selected.values())

    def select_in_order(self, tests: Iterable[str]) -> list[tuple[str, Any]]:
        """Return the tests of some ids, in the order of the run."""
        ids = set(tests)
        return [entry for entry in self.in_order if entry[0] in ids]
