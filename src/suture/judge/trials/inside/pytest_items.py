"""Running pytest's items as pytest itself does, and reading what its reports say.

The hooks of the project and of its plugins are all asked: what fails, is expected to fail or is skipped is
their decision, as in the user's own run. The rule is that of `pytest_report.outcome_of`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

LONGEST_FAULT = 800
"""Characters: what an assertion compares may be whole files."""
MOST_PLACES = 24
"""Of a traceback, the innermost: a recursion has a thousand that say one thing."""


def words_of(fault: BaseException) -> str:
    """The class of an exception and what it says, cut where it is long."""
    try:
        said = str(fault)
    except Exception:
        said = ""
    return f"{type(fault).__name__}: {said[:LONGEST_FAULT]}"


def way_of(fault: BaseException, root: str, here: str) -> list[tuple[str, int]]:
    """Where an exception went through the project, its tests included, the outermost first."""
    found = []
    trace = fault.__traceback__
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename
        if place.startswith(root) and not place.startswith(here) and "site-packages" not in place:
            found.append((os.path.relpath(place, root), trace.tb_lineno))
        trace = trace.tb_next
    return found[-MOST_PLACES:]


class Outcomes:
    """Listens to the reports of one test after another.

    Attributes:
        faults: What gets each exception of a test, where anybody wants them.
    """

    def __init__(self) -> None:
        self.faults: Callable[[BaseException], None] | None = None
        self._status = ""
        self._finished = False

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Note where an exception came from."""
        # Not among the first: pytest hands on a unittest's exception by a hook of its own that is.
        if self.faults is not None and call.excinfo is not None:
            self.faults(call.excinfo.value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """What one phase, or one part of a test, said: the first failure stands."""
        if self._status == "failed":
            return
        self._finished = self._finished or report.when == "teardown"
        if report.outcome == "failed":
            self._status = "failed"
        elif report.outcome == "rerun":  # by pytest-rerunfailures: it begins anew
            self._status, self._finished = "", False
        elif report.outcome == "skipped":
            self._status = "skipped"
        elif report.when == "call":
            self._status = "passed"

    def run(self, item: Any, following: Any) -> str:
        """Run one test: `passed`, `failed` or `skipped`.

        Args:
            item: The test.
            following: The test that comes after it: what both use is kept until then.
        """
        self._status, self._finished = "", False
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException as fault:  # a test that ends pytest itself
            if self.faults is not None:
                self.faults(fault)
            return "failed"
        if self._status == "passed" and not self._finished:
            return "failed"
        return self._status or "failed"


class Items:
    """The collected tests, by their ids seen from the project's root.

    Args:
        session: Pytest's.
        root: The project's root.
    """

    def __init__(self, session: Any, root: str) -> None:
        config = session.config
        self._prefix = os.path.relpath(str(getattr(config, "rootpath", None) or config.rootdir), root)
        self.in_order = [(self._id(item.nodeid), item) for item in session.items]
        self._by_id: dict[str, list[tuple[int, str, Any]]] = {}
        for number, (test, item) in enumerate(self.in_order):
            for name in {test, test.partition("[")[0], test.partition("::")[0]}:
                self._by_id.setdefault(name, []).append((number, test, item))

    def _id(self, nodeid: str) -> str:
        path, separator, name = nodeid.partition("::")
        if self._prefix == "." or not path:
            return nodeid
        return os.path.normpath(os.path.join(self._prefix, path)) + separator + name

    @property
    def ids(self) -> list[str]:
        """All of them, in the order of the run."""
        return [test for test, _ in self.in_order]

    def named(self, tests: Iterable[str]) -> list[tuple[str, Any]]:
        """Those of some ids, in the order given; a name without parameters, or a file, means all of it."""
        found: dict[int, tuple[str, Any]] = {}
        for name in tests:
            own = self._by_id.get(name, ())
            exact = [entry for entry in own if entry[1] == name]
            found.update((number, (test, item)) for number, test, item in exact or own)
        return list(found.values())

    def sorted(self, tests: Iterable[str]) -> list[tuple[str, Any]]:
        """Those of some ids, in the order of the run."""
        wanted = set(tests)
        return [entry for entry in self.in_order if entry[0] in wanted]
