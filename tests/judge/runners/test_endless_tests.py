"""Tests that never end are stopped one by one, and the tests after them run."""

from __future__ import annotations

from typing import Any

import pytest

from judge.conftest import PYTEST, PYTHON, Prepare
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import check_candidate, prepare_suite
from suture.sandbox import Sandbox

LOOP = "def spin(n):\n    while n:\n        n = n\n    return n\n"


async def run_tests(prepare: Prepare, tests: str, wall_s: float = 18.0) -> dict[str, Any]:
    suite = await prepare({"loop.py": LOOP, "tests/test_loop.py": tests})
    ids = suite.command._collected.all_ids
    outcomes = await suite.command.run_selected(suite.task.files, ids, wall_s=wall_s)
    return {outcome.check_id.partition("::")[2]: outcome for outcome in outcomes}


async def test_tests_after_an_endless_test_run(prepare: Prepare) -> None:
    tests = (
        "import unittest\nimport pytest\nfrom loop import spin\n\n"
        "@pytest.mark.parametrize('n', [1, 0, 2, 0.0])\ndef test_spin(n):\n    assert spin(n) == 0\n\n"
        "class TestCase(unittest.TestCase):\n"
        "    def test_own(self):\n        self.assertEqual(spin(3), 0)\n\n"
        "    def test_rest(self):\n        self.assertEqual(spin(0), 0)\n"
    )
    outcomes = await run_tests(prepare, tests)
    assert {name: outcome.status for name, outcome in outcomes.items()} == {
        "test_spin[1]": "timeout",
        "test_spin[0]": "passed",
        "test_spin[2]": "timeout",
        "test_spin[0.0]": "passed",
        "TestCase::test_own": "timeout",
        "TestCase::test_rest": "passed",
    }

    for name in ("test_spin[1]", "test_spin[2]", "TestCase::test_own"):
        fact = outcomes[name].counterexample
        assert fact.exception.startswith("no end within ")
        assert (fact.file, fact.line in (2, 3)) == ("loop.py", True)


async def test_a_test_that_catches_every_exception_ends_with_the_run(prepare: Prepare) -> None:
    stubborn = (
        "def test_stubborn():\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass\n\n"
    )
    outcomes = await run_tests(prepare, stubborn + "def test_other():\n    pass\n", wall_s=6.0)

    assert outcomes["test_stubborn"].status == "timeout"
    assert outcomes["test_other"].status == "missing"


async def test_a_test_keeps_its_own_alarm(prepare: Prepare) -> None:
    tests = (
        "import signal\nimport pytest\n\n"
        "class Rung(Exception):\n    pass\n\n"
        "def ring(number, frame):\n    raise Rung\n\n"
        "def test_alarm():\n"
        "    signal.signal(signal.SIGALRM, ring)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
        "    with pytest.raises(Rung):\n        signal.pause()\n\n"
        "def test_its_handler_is_still_there():\n"
        "    assert signal.getsignal(signal.SIGALRM) is ring\n"
    )
    outcomes = await run_tests(prepare, tests)

    assert {outcome.status for outcome in outcomes.values()} == {"passed"}


async def test_the_last_test_of_an_interrupted_run_is_not_blamed(prepare: Prepare) -> None:
    tests = (
        "import time\nimport pytest\n\n"
        "@pytest.mark.parametrize('n', range(200))\ndef test_slow(n):\n    time.sleep(0.1)\n"
    )
    outcomes = await run_tests(prepare, tests, wall_s=6.0)
    assert {outcome.status for outcome in outcomes.values()} == {"passed", "missing"}


BINDS_BY_STAR = (
    "from loop import *\nfrom loop import spin\nimport pytest\n\n"
    "@pytest.mark.parametrize('n', range(1, 9))\ndef test_spin(n):\n    assert sum([spin(n)]) == 0\n"
)
REPAIRED = LOOP.replace("n = n", "n -= 1")


@pytest.mark.parametrize(
    ("more", "fault"),
    [("", []), ("\n\ndef sum(numbers):\n    return 0\n", ["machinery_changed"])],
    ids=["repair", "replaced-builtin"],
)
async def test_what_test_modules_bind_is_compared_with_a_base_run_that_was_stopped(
    more: str, fault: list[str], sandbox: Sandbox
) -> None:
    files = {"loop.py": LOOP.encode(), "test_loop.py": BINDS_BY_STAR.encode()}
    task = Task(kind="heal", statement="", files=files, test_command=tuple(PYTEST.split()))
    suite = await prepare_suite(task, sandbox, SandboxSettings(test_timeout_s=6), PYTHON)
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    assert {outcome.status for outcome in base.outcomes} == {"timeout", "missing"}

    verdict = await check_candidate(Candidate(files={"loop.py": REPAIRED + more}, origin="sample"), suite)

    assert [fact.code for fact in verdict.counterexamples] == fault
