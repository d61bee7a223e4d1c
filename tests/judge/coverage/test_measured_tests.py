"""Which tests run when the coverage of a change is measured."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator

import pytest

from judge.conftest import PYTEST
from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.judge import prepare_suite
from suture.judge.coverage.coverage_run import measure_coverage
from suture.sandbox import BubblewrapSandbox, RunRequest, RunResult, Sandbox, discover_interpreter

CODE = b"def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a\n"
TESTS = (
    b"from calc import add, double\n\n"
    b"def test_add():\n    assert add(1, 2) == 3\n\n"
    b"def test_double():\n    assert double(2) == 4\n"
)
ADD, DOUBLE = "test_calc.py::test_add", "test_calc.py::test_double"


class RecordingSandbox(BubblewrapSandbox):
    """A sandbox that records which tests each run of pytest is restricted to."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen_tests: list[list[str]] = []

    async def run(self, request: RunRequest) -> RunResult:
        """Record the tests of a run, and run it."""
        if b'"only"' in request.stdin:
            self.chosen_tests.append(json.loads(request.stdin)["only"])
        return await super().run(request)


@pytest.fixture
async def recording(sandbox: Sandbox) -> AsyncIterator[RecordingSandbox]:
    recording = RecordingSandbox()
    yield recording
    await recording.close()


@pytest.mark.parametrize(
    ("fixed", "runs"), [([ADD, DOUBLE], [[ADD, DOUBLE]]), ([ADD], [[ADD], []]), ([], [[]])]
)
async def test_other_tests_run_only_if_the_fixed_ones_do_not_run_the_whole_change(
    recording: RecordingSandbox, fixed: list[str], runs: list[list[str]]
) -> None:
    task = Task(
        statement="",
        kind="heal",
        files={"calc.py": CODE, "test_calc.py": TESTS},
        test_command=tuple(PYTEST.split()),
    )
    interpreter = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    suite = await prepare_suite(task, recording, SandboxSettings(), interpreter)
    recording.chosen_tests.clear()
    after = CODE.replace(b"a - b", b"a + b").replace(b"return a\n", b"return 2 * a\n")

    result = await measure_coverage(suite, {**task.files, "calc.py": after}, fixed=fixed)

    assert result.covered == result.changed == {"calc.py": (2, 6)}
    assert recording.chosen_tests == runs
