"""A test that fails now and then whatever the code is does not decide about a candidate."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from suture.core.ledger.kinds import (
    CandidateChecked,
    NonCodeFailure,
    SearchFinished,
    TrialAgreement,
    TrialDisagreement,
)
from suture.core.records import Candidate, CheckOutcome, CheckStatus, FaultCause, Task, Verdict, content_hash
from suture.core.settings import SandboxSettings
from suture.judge import Suite
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.tuning import MAX_FLAKY_RERUNS
from suture.loop.evaluation.flaky_tests import excuse_flaky_tests, reject_broken_flaky_tests
from suture.loop.nodes.prepare import list_recorded_failures
from suture.loop.tuning import MAX_LISTED_TESTS
from suture.project.languages import Interpreter
from suture.sandbox import get_own_interpreter

CODE = {"code.py": b"old"}
CHANGED = Candidate(files={"code.py": "new"}, origin="mutation")


@dataclass
class AlternatingCommand:
    """A test command whose tests pass in every other run on some versions of the code, and else always or never."""

    alternates: Collection[bytes]
    passes: Collection[bytes] = ()
    is_pytest: bool = True
    opened_data: frozenset[str] = frozenset()
    search_path: frozenset[str] = frozenset()
    loaded_modules: frozenset[tuple[str, str]] = frozenset()
    interpreter: Interpreter = field(default_factory=get_own_interpreter)
    runs: list[bytes] = field(default_factory=list)

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], *, addition: RunAddition
    ) -> list[CheckOutcome]:
        code = files["code.py"]
        self.runs.append(code)
        passed = code in self.passes or (code in self.alternates and self.runs.count(code) % 2 == 0)
        return [make_outcome(test, "passed" if passed else "failed") for test in tests]


def make_outcome(test: str, status: CheckStatus) -> CheckOutcome:
    return CheckOutcome(check_id=test, status=status, evidence="nonce")


def make_verdict(*passed: str, failed: Collection[str] = ()) -> Verdict:
    outcomes = [make_outcome(test, "passed") for test in passed]
    outcomes += [make_outcome(test, "failed") for test in failed]
    return Verdict(candidate=content_hash({}), outcomes=tuple(outcomes), evidence="nonce")


async def judge(
    verdict: Verdict, base: Verdict, command: AlternatingCommand, *events: SearchFinished
) -> Verdict:
    """Excuse flaky tests in a verdict, in a run whose unchanged code had the verdict `base`."""
    user_code = Candidate(files={}, origin="user").hash
    checked = CandidateChecked(
        candidate=user_code, label="", passed=0, failed=0, evidence="nonce", verdict="base", seconds=0.0
    )
    context: Any = SimpleNamespace(
        ledger=SimpleNamespace(events=[SimpleNamespace(payload=payload) for payload in (checked, *events)]),
        candidates=SimpleNamespace(load_verdict=lambda blob: base),
    )
    task = Task(statement="", kind="heal", files=CODE, test_command=("pytest",))
    parts: Any = {"command": command, "sandbox": None}
    suite = Suite(task=task, settings=SandboxSettings(), **parts)
    return await excuse_flaky_tests(verdict, CHANGED, suite, context)


async def test_a_test_that_fails_now_and_then_with_and_without_the_change_does_not_decide() -> None:
    command = AlternatingCommand(alternates=(b"old", b"new"))
    base = make_verdict("a", "odd", failed=["b"])
    verdict = await judge(make_verdict("a", "b", failed=["odd"]), base, command)
    assert not verdict.failed
    assert [(note.code, note.subjects) for note in verdict.notes] == [("flaky_tests", ("odd",))]


async def test_a_test_that_failed_in_a_trial_of_the_unchanged_code_need_not_fail_there_again() -> None:
    command = AlternatingCommand(alternates=(b"new",), passes=(b"old",))
    base = make_verdict("a", "odd", failed=["b"])
    entry = TrialDisagreement(test="odd", run="passed", trial="failed")
    search = SearchFinished(agreement=TrialAgreement(compared=2, disagreements=1, disagreeing_tests=(entry,)))
    verdict = await judge(make_verdict("a", "b", failed=["odd"]), base, command, search)
    assert not verdict.failed
    assert b"old" not in command.runs


@pytest.mark.parametrize(
    "command",
    [
        AlternatingCommand(alternates=(b"new",), passes=(b"old",)),  # the change makes it flaky
        AlternatingCommand(alternates=(b"old",)),  # the change breaks it for good
    ],
)
async def test_a_test_that_the_change_breaks_decides(command: AlternatingCommand) -> None:
    base = make_verdict("a", "odd", failed=["b"])
    verdict = await judge(make_verdict("a", "b", failed=["odd"]), base, command)
    assert verdict.failed == {"odd"}
    assert len(command.runs) <= 2 * MAX_FLAKY_RERUNS


async def test_a_failing_test_that_the_change_must_mend_is_not_run_again() -> None:
    command = AlternatingCommand(alternates=(b"old", b"new"))
    base = make_verdict("a", failed=["b", "c"])
    verdict = await judge(make_verdict("a", "b", failed=["c"]), base, command)
    assert verdict.failed == {"c"}
    assert not command.runs


class AddedDependency:
    """Installs a package without which no test of the changed code can run."""

    def __init__(self) -> None:
        self.installed: list[Mapping[str, bytes]] = []

    async def install_for(self, files: Mapping[str, bytes], interpreter: Interpreter) -> None:
        self.installed.append(files)

    def allows_file(self, path: str, files: Mapping[str, object], interpreter: Interpreter) -> bool:
        return False


async def test_packages_are_installed_before_flaky_tests_run_on_a_candidate() -> None:
    command, packages = AlternatingCommand(alternates=(), passes=(b"new",)), AddedDependency()
    task = Task(statement="", kind="heal", files=CODE, test_command=("pytest",))
    parts: Any = {"command": command, "sandbox": None, "packages": packages}
    suite = Suite(task=task, settings=SandboxSettings(), flaky_tests=frozenset({"odd"}), **parts)
    verdict = await reject_broken_flaky_tests(make_verdict("a"), CHANGED, suite)
    assert not verdict.failed
    assert packages.installed == [{"code.py": b"new"}]


def test_the_ledger_records_all_flaky_tests_however_many_fail() -> None:
    def make_failure(number: int, cause: FaultCause) -> NonCodeFailure:
        return NonCodeFailure(test=str(number), cause=cause, explanation="")

    failures = [make_failure(number, "environment") for number in range(MAX_LISTED_TESTS + 1)]
    failures.append(make_failure(-1, "flaky"))
    recorded = list_recorded_failures(failures)
    assert len(recorded) == MAX_LISTED_TESTS + 1
    assert recorded[-1].test == "-1"
