"""Reports of a user's pytest: real runs in the sandbox, and the checks of forged reports."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from bare_pytest import BARE_PYTEST
from judge.runners.signed import sign_event
from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.runners.collection import find_written_tests
from suture.judge.runners.pytest_report import make_test_outcome, read_report
from suture.sandbox import Sandbox, discover_interpreter

TESTS = b"""
import pytest
from calc import add, div

def test_add():
    assert add(1, 2) == 3

@pytest.mark.parametrize("a", [4, 6])
def test_div(a):
    half = div(a, 2)
    assert half == a / 2

@pytest.mark.xfail
def test_not_yet():
    assert add(1, 1) == 3

@pytest.mark.skip
def test_elsewhere():
    pass
"""
RIGHT = "def add(a, b):\n    return a + b\n\ndef div(a, b):\n    return a / b\n"
WRONG = "def add(a, b):\n    return a - b\n\ndef div(a, b):\n    return a / (b - 2)\n"
COMMAND = tuple(BARE_PYTEST.split())


PYTHON = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


def make_task(code: str = WRONG, tests: bytes = TESTS, command: tuple[str, ...] = COMMAND) -> Task:
    files = {"calc.py": code.encode(), "tests/test_calc.py": tests}
    return Task(statement="", kind="heal", files=files, test_command=command)


def make_candidate(code: str, **files: str) -> Candidate:
    return Candidate(files={"calc.py": code, **files}, origin="sample")


def get_statuses(verdict: Verdict) -> dict[str, str]:
    return {o.check_id.removeprefix("tests/test_calc.py::"): o.status for o in verdict.outcomes}


@pytest.fixture
async def suite(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> Suite:
    return await prepare_suite(make_task(), sandbox, sandbox_settings, PYTHON)


async def test_each_test_has_an_outcome_and_failures_have_facts(suite: Suite) -> None:
    verdict = await check_candidate(make_candidate(WRONG), suite)
    assert get_statuses(verdict) == {
        "test_add": "failed",
        "test_div[4]": "failed",
        "test_div[6]": "failed",
        "test_not_yet": "skipped",
        "test_elsewhere": "skipped",
    }

    add, div, _ = verdict.counterexamples
    assert (add.call, add.expected, add.actual) == ("add(1, 2)", "3", "-1")
    assert (div.call, div.exception) == ("half = div(a, 2)", "ZeroDivisionError: division by zero")
    assert (div.file, div.line) == ("calc.py", 5)
    assert verdict.evidence == "nonce"
    assert verdict.notes
    assert "ZeroDivisionError" in verdict.output


async def test_tracebacks_are_short_unless_the_command_asks_for_long_ones(sandbox: Sandbox) -> None:
    tests = b"""from calc import add

def test_add():
    with open(__file__) as text:
        got = add(
            1, 2
        )
        raise ValueError(f"no {got}",
                         text)
"""
    for options, expected_text in (((), "Traceback (most"), (("--tb=short",), "in test_add")):
        suite = await prepare_suite(
            make_task(tests=tests, command=(*COMMAND, *options)), sandbox, SandboxSettings(), PYTHON
        )
        verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
        (outcome,) = verdict.outcomes
        assert outcome.counterexample is not None
        assert outcome.counterexample.call == 'raise ValueError(f"no {got}", text)'
        assert expected_text in verdict.output
        assert ("Traceback (most" in verdict.output) == (not options)


async def test_protected_files_of_a_candidate_are_ignored(suite: Suite) -> None:
    planted = {
        "conftest.py": "import os; os._exit(0)",
        "tests/conftest.py": "1/0",
        "json.py": "1/0",
        "pytest.ini": "[pytest]\naddopts = --nosuch",
        "tests/test_calc.py": "def test_add(): assert 0",
    }
    verdict = await check_candidate(make_candidate(RIGHT, **planted), suite)

    assert verdict.all_passed
    assert {note.subjects for note in verdict.notes if note.code == "protected_file"} == {
        (path,) for path in planted
    }


@pytest.mark.parametrize(
    "code",
    [
        "print('5 passed in 0.01s')\nimport sys\nsys.exit(0)",
        "import os\nos._exit(0)",
        "import os\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, b'x 0 {}\\n' * 9)\n    except OSError: pass\n"
        "def add(a, b): return 3\ndef div(a, b): os._exit(0)",
        "import os\nfor d, _, names in os.walk('_suture'):\n    for n in names:\n"
        "        if n == 'report': os.remove(os.path.join(d, n))\n" + RIGHT,
    ],
)
async def test_a_broken_run_is_no_pass(suite: Suite, code: str) -> None:
    verdict = await check_candidate(make_candidate(code), suite)
    assert not verdict.all_passed
    assert "missing" in get_statuses(verdict).values()
    assert verdict.counterexamples


async def test_tests_of_unparsable_code_are_known_by_name(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_suite(make_task("def add(a, b:\n"), sandbox, sandbox_settings, PYTHON)
    broken = await check_candidate(Candidate(files={}, origin="user"), suite)
    assert set(get_statuses(broken)) == {"test_add", "test_div", "test_not_yet", "test_elsewhere"}
    assert set(get_statuses(broken).values()) == {"error"}

    fact = broken.counterexamples[0]
    assert (fact.exception, fact.file, fact.line) == ("SyntaxError: '(' was never closed", "calc.py", 1)
    assert (await check_candidate(make_candidate(RIGHT), suite)).all_passed


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("nosuchprogram", "x"), "no program 'nosuchprogram'"),
        ((*COMMAND, "nothing_here.py"), "'nothing_here.py', which is not among the project's files"),
        ((*COMMAND, "-k", "nowhere"), "collects no tests"),
    ],
)
async def test_a_command_that_cannot_start_is_refused(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, command: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        await prepare_suite(make_task(command=command), sandbox, sandbox_settings, PYTHON)


async def test_a_command_other_than_pytest_is_judged_by_its_exit_status(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    command = ("python", "-c", "import calc; assert calc.add(1, 2) == 3")
    suite = await prepare_suite(make_task(command=command), sandbox, sandbox_settings, PYTHON)
    wrong = await check_candidate(make_candidate(WRONG), suite)

    right = await check_candidate(make_candidate(RIGHT), suite)

    assert [(o.check_id, o.status, o.evidence) for o in wrong.outcomes] == [
        (" ".join(command), "failed", "exit_status")
    ]
    assert wrong.counterexamples[0].exception == "exit code 1: AssertionError"
    assert right.all_passed
    assert right.notes


KEY = b"k" * 32


def test_a_report_ends_at_the_first_line_that_does_not_verify() -> None:
    good = sign_event(KEY, 0, event="items", ids=["a"]) + sign_event(KEY, 1, event="start", id="a")
    phase = {"event": "phase", "id": "a", "when": "call", "outcome": "passed"}
    assert read_report(good + sign_event(KEY, 2, event="end", exit=0), KEY).exit_code == 0

    for bad in (
        good + b"0" * 64 + b' 2 {"event": "end", "exit": 0}\n',
        good + sign_event(KEY, 1, event="end", exit=0),
        good + b"garbage\n" + sign_event(KEY, 3, event="end", exit=0),
        good + sign_event(KEY, 2, **phase)[:-9],
    ):
        report = read_report(bad, KEY)
        assert (report.started, report.exit_code, report.phases) == (["a"], None, {})
    assert read_report(good, b"other").items == ()


def test_a_line_says_that_the_test_before_it_passed() -> None:
    events: list[dict[str, object]] = [
        {"event": "start", "id": "a"},
        {"event": "start", "id": "b", "passed": "a"},
        {"event": "phase", "id": "b", "when": "call", "outcome": "passed"},
        {"event": "phase", "id": "b", "when": "teardown", "outcome": "failed"},
    ]
    content = b"".join(sign_event(KEY, number, **event) for number, event in enumerate(events))

    report = read_report(content, KEY)

    statuses = {test: make_test_outcome(test, phases).status for test, phases in report.phases.items()}
    assert statuses == {"a": "passed", "b": "error"}


@pytest.mark.parametrize(
    ("phases", "status"),
    [
        ([("setup", "passed"), ("call", "passed"), ("teardown", "passed")], "passed"),
        ([("setup", "passed"), ("call", "passed")], "missing"),
        ([("setup", "passed"), ("call", "failed"), ("teardown", "passed")], "failed"),
        ([("setup", "failed"), ("teardown", "passed")], "error"),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "failed")], "error"),
        ([("setup", "passed"), ("call", "skipped"), ("teardown", "passed")], "skipped"),
        ([("setup", "passed")], "missing"),
        ([("setup", "passed"), ("call", "rerun")], "missing"),
        ([("setup", "passed"), ("call", "rerun"), ("teardown", "passed")], "missing"),
        ([("setup", "rerun"), ("setup", "passed"), ("call", "passed"), ("teardown", "passed")], "passed"),
        ([("setup", "passed"), ("call", "rerun"), ("setup", "passed"), ("call", "failed")], "failed"),
        ([], "missing"),
    ],
)
def test_the_phases_of_a_test_give_its_status(phases: list[tuple[str, str]], status: str) -> None:
    assert make_test_outcome("t", [{"when": w, "outcome": o} for w, o in phases]).status == status


RERUN_CONFTEST = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for last in (False, True):
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.failed and not last:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
            if report.outcome == "rerun":
                break
        else:
            break
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""
"""Reruns failed tests as pytest-rerunfailures does."""
FLAKY_TESTS = """
from calc import add, div
count = [0]

def test_shaky():
    count[0] += 1
    assert add(count[0], 1) == 3

def test_behind():
    assert div(4, 2) == 2
"""


async def test_the_last_attempt_of_a_rerun_test_counts(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    task = make_task(tests=FLAKY_TESTS.encode())
    task = replace(task, files={**task.files, "conftest.py": RERUN_CONFTEST.encode()})
    suite = await prepare_suite(task, sandbox, sandbox_settings, PYTHON)
    right = await check_candidate(make_candidate(RIGHT), suite)
    assert get_statuses(right) == {"test_shaky": "passed", "test_behind": "passed"}

    wrong = await check_candidate(make_candidate(WRONG), suite)
    assert get_statuses(wrong) == {"test_shaky": "failed", "test_behind": "failed"}


def test_written_tests_are_found_by_parsing() -> None:
    methods = b"class TestB:\n    def test_c(self): ...\n    def help(self): ...\n"
    fixture = b"@pytest.fixture()\ndef test_env(): ...\n"
    source = b"def test_a(): ...\n" + methods + fixture + b"def other(): ..."
    assert find_written_tests("t.py", source) == ("t.py::test_a", "t.py::TestB::test_c")
    assert find_written_tests("t.py", b"def (") == ("t.py",)
