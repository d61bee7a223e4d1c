"""What the reporting plugin does for each test of a suite with many of them."""

from __future__ import annotations

from typing import Any

import pytest

from judge.conftest import PYTEST, PYTHON
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.judge.runners.pytest_runner import REPORT_PATH
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(180)
RIGHT = "def total(numbers):\n    return sum(numbers)\n"
PROJECT = {
    "sums.py": RIGHT.replace("sum(", "len("),
    "test_sums.py": (
        "import pytest\nfrom sums import total\n\n\n"
        "@pytest.mark.parametrize('number', range(120))\n"
        "def test_adds(number):\n    assert total([number, 1]) == number + 1\n"
    ),
}
BRIEF_CHANGE = """import _pytest.runner as r
calls = []
was = {place}
def total(numbers):
    calls.append(numbers)
    if len(calls) == 90:
        {change}
    if len(calls) == 92:
        {place} = was
    return sum(numbers)
"""


class KeepingSandbox:
    """A sandbox that keeps the reports of the tests."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.reports: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, request: Any) -> Any:
        """Run a program."""
        result = await self._sandbox.run(request)
        self.reports.append(result.files.get(REPORT_PATH, b""))
        return result


def make_task(**more: str) -> Task:
    files = {path: text.encode() for path, text in {**PROJECT, **more}.items()}
    return Task(kind="heal", statement="", files=files, test_command=tuple(PYTEST.split()))


async def test_a_passing_test_takes_one_line(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    keeping: Any = KeepingSandbox(sandbox)
    suite = await prepare_suite(make_task(), keeping, sandbox_settings, PYTHON)

    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)

    assert len(verdict.passed) == 120
    _, report, *_ = keeping.reports  # the collection came first
    # Its start, with the pass of the test before it. The last test has three lines. Besides, there are what pytest
    # begins with, the collected tests, and the end.
    assert len(report.splitlines()) == 120 + 2 + 3


async def test_the_last_pass_counts_if_the_session_ends_the_process(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    ending = "import os\n\ndef pytest_sessionfinish(exitstatus):\n    os._exit(exitstatus)\n"
    task = make_task(**{"conftest.py": ending})
    suite = await prepare_suite(task, sandbox, sandbox_settings, PYTHON)

    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)

    assert verdict.all_passed
    assert len(verdict.passed) == 120


async def test_a_failed_teardown_counts_after_a_pass(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    leaking = (
        "import pytest\n\n"
        "@pytest.fixture(autouse=True)\ndef closes(number):\n    yield\n    assert number != 60\n"
    )
    suite = await prepare_suite(make_task(**{"conftest.py": leaking}), sandbox, sandbox_settings, PYTHON)

    verdict = await check_candidate(Candidate(files={"sums.py": RIGHT}, origin="sample"), suite)

    assert verdict.failed == {"test_sums.py::test_adds[60]"}
    assert len(verdict.passed) == 119


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("r.collect_one_node", "r.collect_one_node = lambda collector: None"),
        ("r.SetupState.setup", "r.SetupState.setup = lambda state, item: was(state, item)"),
        ("r.collect_one_node", "del r.collect_one_node"),
        (
            "r.collect_one_node",
            "import builtins; builtins.collect_one_node = was; del r.collect_one_node",
        ),
    ],
)
async def test_a_change_that_lasts_for_two_tests_is_noticed_late_in_a_run(
    place: str, change: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(make_task(), sandbox, sandbox_settings, PYTHON)
    code = BRIEF_CHANGE.format(place=place, change=change)

    verdict = await check_candidate(Candidate(files={"sums.py": code}, origin="sample"), suite)

    assert [fact.code for fact in verdict.counterexamples] == ["machinery_changed"]
