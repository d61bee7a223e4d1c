"""A repair of a flaky test is refused only if that test fails in a run under adverse conditions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from suture.core.ledger.kinds import FlakyRepairTried, FlakyTestsInvestigated
from suture.core.records import Candidate, CheckOutcome, CheckStatus, Task, Verdict, content_hash
from suture.core.records.flakiness import FlakyDiagnosis
from suture.core.settings import SandboxSettings
from suture.judge import Suite
from suture.judge.triage import FlakyTestRunner, diagnose_flaky_test
from suture.loop.evaluation.flaky_repairs import confirm_flaky_repair
from suture.project.languages import Interpreter
from suture.sandbox import get_own_interpreter

REPAIR = Candidate(files={"code.py": "new"}, origin="mutation")


@dataclass
class ScriptedCommand:
    """A test command in whose runs of the whole suite the tests end in a scripted way; alone they pass."""

    status: CheckStatus
    is_cut_off: bool = False
    opened_data: frozenset[str] = frozenset()
    search_path: frozenset[str] = frozenset()
    loaded_modules: frozenset[tuple[str, str]] = frozenset()
    interpreter: Interpreter = field(default_factory=get_own_interpreter)

    async def run_until(
        self, files: object, tests: Collection[str], wall_s: float, *, addition: object
    ) -> tuple[tuple[CheckOutcome, ...], bool]:
        if tests:
            return tuple(make_outcome(test, "passed") for test in tests), False
        return (make_outcome("flaky", self.status), make_outcome("other", "failed")), self.is_cut_off


def make_outcome(test: str, status: CheckStatus) -> CheckOutcome:
    return CheckOutcome(check_id=test, status=status, evidence="nonce", trust=0.9)


async def confirm(command: ScriptedCommand, left_s: float | None = None) -> tuple[Verdict, FlakyRepairTried]:
    """Confirm a repair of the test `flaky`, and return the verdict and what was recorded."""
    diagnosis = FlakyDiagnosis(test="flaky", cause="test_order")
    recorded: list[Any] = []
    events = [SimpleNamespace(payload=FlakyTestsInvestigated(diagnoses=(diagnosis,)))]
    context: Any = SimpleNamespace(
        ledger=SimpleNamespace(events=events, append=recorded.append),
        budget=SimpleNamespace(remaining_s=lambda: left_s),
        settings=SimpleNamespace(repair=SimpleNamespace(seed=1)),
    )
    task = Task(statement="", kind="heal", files={"code.py": b"old"}, test_command=("pytest",))
    parts: Any = {"command": command, "sandbox": None}
    suite = Suite(task=task, settings=SandboxSettings(), **parts)
    outcomes = tuple(make_outcome(test, "passed") for test in ("flaky", "other"))
    verdict = Verdict(candidate=content_hash({}), outcomes=outcomes, evidence="nonce")
    confirmed = await confirm_flaky_repair(verdict, REPAIR, suite, context)
    (tried,) = recorded
    return confirmed, tried


async def test_a_repair_that_holds_in_every_run_passes_whatever_other_tests_do() -> None:
    verdict, tried = await confirm(ScriptedCommand("passed"))
    assert not verdict.failed
    assert tried.clean == tried.runs > 0


@pytest.mark.parametrize("status", ["failed", "missing", "timeout"])
async def test_a_flaky_test_that_does_not_pass_in_a_random_order_has_failed(status: CheckStatus) -> None:
    verdict, tried = await confirm(ScriptedCommand(status))
    assert [(outcome.check_id, outcome.status, outcome.trust) for outcome in verdict.outcomes] == [
        ("flaky", status, 0.9),
        ("other", "passed", 0.9),
    ]
    assert (tried.condition, tried.tests) == ("random_order", ("flaky",))
    assert tried.clean < tried.runs


async def test_a_run_that_its_time_limit_ends_before_the_test_shows_nothing() -> None:
    verdict, tried = await confirm(ScriptedCommand("missing", is_cut_off=True))
    assert not verdict.failed
    assert tried.condition is None
    assert 0 < tried.clean < tried.runs


async def test_a_test_that_failed_before_the_time_limit_has_failed() -> None:
    verdict, _ = await confirm(ScriptedCommand("failed", is_cut_off=True))
    assert verdict.failed == {"flaky"}


async def test_a_repair_without_time_for_half_of_its_runs_has_not_been_confirmed() -> None:
    verdict, tried = await confirm(ScriptedCommand("passed"), left_s=0.0)
    assert {outcome.check_id: outcome.status for outcome in verdict.outcomes}["flaky"] == "missing"
    assert (tried.clean, tried.condition, tried.tests) == (0, None, ("flaky",))


async def test_a_test_that_is_not_among_those_of_the_command_is_investigated() -> None:
    command: Any = ScriptedCommand("failed")
    runs = FlakyTestRunner(command=command, files={}, timeout_s=1.0, end_s=float("inf"))
    diagnosis = await diagnose_flaky_test("flaky", ["first", "other"], runs, seed=1)
    assert diagnosis.cause == "test_order"
