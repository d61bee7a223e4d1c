"""Experiments show why a test is flaky: three small projects, whose tests run in the real sandbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from prepared_suites import prepare_python_suite
from project_files import write_files
from suture.core.records import Candidate
from suture.core.records.flakiness import FlakyDiagnosis
from suture.judge import check_candidate
from suture.judge.triage import (
    FlakyTestRunner,
    diagnose_flaky_test,
    make_flaky_test_runner,
    make_quarantine_patch,
)
from suture.judge.triage.flaky_conditions import RunConditions, list_condition_settings, shuffle_tests
from suture.judge.triage.quarantine import mark_test
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(900)
MAX_TEST_S = 800.0
QUIET_TESTS = "".join(f"\n\ndef test_quiet_{n}():\n    assert {n} >= 0\n" for n in range(6))

SHARED_STATE = {
    "test_a.py": "import os\n"
    + QUIET_TESTS
    + "\n\ndef test_mode():\n    os.environ['MODE'] = 'fast'\n    assert os.environ['MODE']\n",
    "test_b.py": "import os\n"
    + QUIET_TESTS
    + "\n\ndef test_default():\n    assert 'MODE' not in os.environ\n",
}
TWO_POLLUTERS = {
    "test_a.py": "STATE = []\n"
    + QUIET_TESTS
    + "\n\ndef test_one():\n    STATE.append(1)\n\n\ndef test_two():\n    STATE.append(2)\n"
    + "\n\ndef test_short():\n    assert len(STATE) < 2\n",
}
NEEDS_SETUP = {
    "test_a.py": "STATE = []\n"
    + QUIET_TESTS
    + "\n\ndef test_fill():\n    STATE.append(1)\n\n\ndef test_full():\n    assert STATE\n",
}
RANDOM_NUMBERS = {
    "dice.py": "import random\n\n\ndef roll():\n    return random.randrange(2)\n",
    "test_dice.py": "from dice import roll\n\n\ndef test_roll():\n    assert roll() == 1\n",
}
HASH_SEED = {
    "tags.py": "def unique(tags):\n    return list(set(tags))\n",
    "test_tags.py": "from tags import unique\n\n\ndef test_two():\n    assert unique(['a', 'b']) == ['a', 'b']\n",
}
CLOCK = {
    "shop.py": "from datetime import datetime, timezone\n\n\n"
    "def is_open():\n    return datetime.now(timezone.utc).hour < 12\n",
    "test_shop.py": "from shop import is_open\n\n\ndef test_open():\n    assert is_open()\n",
}
SLOW = {
    "test_speed.py": "import time\n\n\ndef test_fast():\n    began = time.monotonic()\n"
    "    sum(range(1000))\n    assert time.monotonic() - began < 5\n",
}


async def open_runs(
    folder: Path, files: dict[str, str], sandbox: Sandbox, command: str = BARE_PYTEST
) -> tuple[FlakyTestRunner, list[str]]:
    """Return what runs the tests of a project, and the ids of all of them."""
    suite, _ = await prepare_python_suite(
        write_files(folder, {"some_code.py": "", **files}), sandbox, command
    )
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    return make_flaky_test_runner(suite, base, MAX_TEST_S), [outcome.check_id for outcome in base.outcomes]


async def diagnose(folder: Path, files: dict[str, str], test: str, sandbox: Sandbox) -> FlakyDiagnosis:
    runs, tests = await open_runs(folder, files, sandbox)
    return await diagnose_flaky_test(test, tests, runs, seed=1)


async def test_the_test_that_leaves_state_behind_is_found_among_the_tests_before(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    diagnosis = await diagnose(tmp_path, SHARED_STATE, "test_b.py::test_default", sandbox)
    assert (diagnosis.cause, diagnosis.other_tests) == ("shared_state", ("test_a.py::test_mode",))
    assert diagnosis.statement == "os.environ['MODE'] = 'fast'"
    in_suite, alone = diagnosis.experiments[:2]
    assert (in_suite.condition, in_suite.passed, alone.condition) == ("suite", 0, "alone")
    assert alone.passed == alone.runs > 1


async def test_two_tests_that_disturb_another_one_together_are_found(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    diagnosis = await diagnose(tmp_path, TWO_POLLUTERS, "test_a.py::test_short", sandbox)
    assert diagnosis.cause == "shared_state"
    assert diagnosis.other_tests == ("test_a.py::test_one", "test_a.py::test_two")


async def test_a_test_that_needs_another_one_is_told_from_one_that_is_disturbed(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    diagnosis = await diagnose(tmp_path, NEEDS_SETUP, "test_a.py::test_full", sandbox)
    assert (diagnosis.cause, diagnosis.other_tests) == ("missing_setup", ("test_a.py::test_fill",))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "test", "cause"),
    [
        (RANDOM_NUMBERS, "test_dice.py::test_roll", "random_numbers"),
        (HASH_SEED, "test_tags.py::test_two", "hash_seed"),
        (CLOCK, "test_shop.py::test_open", "clock"),
        (SLOW, "test_speed.py::test_fast", "slow_machine"),
    ],
)
async def test_the_condition_that_decides_how_a_test_ends_is_its_cause(
    files: dict[str, str], test: str, cause: str, tmp_path: Path, sandbox: Sandbox
) -> None:
    diagnosis = await diagnose(tmp_path, files, test, sandbox)
    assert diagnosis.cause == cause
    endings: dict[str, set[int]] = {}
    for experiment in diagnosis.experiments:
        if experiment.condition == cause:
            endings.setdefault(experiment.value, set()).add(experiment.passed)
    assert len(endings) > 1
    assert all(len(of_value) == 1 for of_value in endings.values())


@pytest.mark.parametrize(
    ("files", "condition"),
    [(RANDOM_NUMBERS, "random_numbers"), (CLOCK, "clock"), (SLOW, "slow_machine")],
)
async def test_a_fixed_condition_gives_the_same_ending_each_time(
    files: dict[str, str], condition: str, tmp_path: Path, sandbox: Sandbox
) -> None:
    runs, tests = await open_runs(tmp_path, files, sandbox)
    endings: list[bool] = []
    for _, conditions in list_condition_settings(condition):  # type: ignore[arg-type]  # of a parameter
        first, second = [await runs.run(tests, conditions) for _ in range(2)]
        assert first == second
        endings += first.values()
    assert set(endings) == {True, False}


async def test_tests_run_in_the_order_that_is_set(tmp_path: Path, sandbox: Sandbox) -> None:
    runs, tests = await open_runs(tmp_path, NEEDS_SETUP, sandbox)
    ended = await runs.run((), RunConditions(order=tuple(reversed(tests))))
    assert [test for test, passed in ended.items() if not passed] == ["test_a.py::test_full"]
    assert list(ended) == tests[::-1]
    assert shuffle_tests(tests, 1) == shuffle_tests(tests, 1) != shuffle_tests(tests, 2)


@pytest.mark.parametrize("addopts", ["", "-x --maxfail=1"])
@pytest.mark.parametrize("command", [BARE_PYTEST, f"{BARE_PYTEST} -x"])
async def test_a_failing_test_does_not_keep_others_from_running(
    command: str, addopts: str, tmp_path: Path, sandbox: Sandbox
) -> None:
    files = {**NEEDS_SETUP, "pytest.ini": f"[pytest]\naddopts = {addopts}\n"}
    runs, tests = await open_runs(tmp_path, files, sandbox, command)
    ended = await runs.run((), RunConditions(order=tuple(reversed(tests))))
    assert list(ended) == tests[::-1]


async def test_a_quarantined_test_runs_on_and_decides_nothing(tmp_path: Path, sandbox: Sandbox) -> None:
    runs, _ = await open_runs(tmp_path, SHARED_STATE, sandbox)
    test = "test_b.py::test_default"
    diagnosis = FlakyDiagnosis(test=test, cause="shared_state", other_tests=("test_a.py::test_mode",))
    patch = await make_quarantine_patch([diagnosis], runs)
    assert patch.startswith(f"{test}: it fails after test_a.py::test_mode")
    subprocess.run(["git", "apply"], cwd=tmp_path, input=patch, text=True, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "1 xfailed" in run.stdout


async def test_a_test_that_cannot_be_marked_is_named_above_the_patch(
    tmp_path: Path, sandbox: Sandbox
) -> None:
    parametrised = (
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1\n"
    )
    runs, _ = await open_runs(tmp_path, {"test_n.py": parametrised}, sandbox)
    names = ["test_n.py::test_elsewhere", "test_n.py::test_n[1]", "test_n.py::test_n[2]"]
    diagnoses = [FlakyDiagnosis(test=name, cause="unknown") for name in names]
    patch = await make_quarantine_patch(diagnoses, runs)
    assert patch.count("+@pytest.mark.xfail") == 1
    assert "test_n.py::test_elsewhere is flaky as well, but the patch cannot mark it" in patch
    assert await make_quarantine_patch(diagnoses[:1], runs) == ""


def test_a_test_that_is_not_in_its_file_gets_no_mark() -> None:
    text = "class TestA(Base):\n    @staticmethod\n    def test_b(): ...\n\n\ndef test_b(): ...\n"
    marked = mark_test(text, ["TestA", "test_b"], "why")
    assert marked is not None
    assert marked.splitlines()[1] == '    @pytest.mark.xfail(strict=False, reason="why")'
    assert mark_test(text, ["TestA", "test_inherited"], "why") is None
