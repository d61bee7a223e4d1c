"""A repair is not lost to the time limit. If there is time for only one run, the verdict records it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import Candidate, CheckOutcome, Verdict, VerdictNote
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import PASSED_ONCE_TEXT, ChangeWarnings, find_warnings
from suture.loop.evaluation.repeated_runs import merge_runs, passed_only_once, run_twice
from suture.loop.tuning import REPORTING_RESERVE_S

LONG_TIME_S = 600.0


def make_verdict(status: str) -> Verdict:
    outcome = CheckOutcome(check_id="t", status=cast(Any, status), evidence="nonce")
    return Verdict(candidate="c", outcomes=(outcome,), evidence="nonce")


class ScriptedSuite:
    """A test suite whose runs end with given statuses.

    Args:
        statuses: The status of each run in the order of their starts. A run with `None` never ends.
    """

    def __init__(self, *statuses: str | None) -> None:
        self._statuses = list(statuses)
        self.running = self.max_running = 0

    def run(self) -> Coroutine[Any, Any, Verdict]:
        return self._run(self._statuses.pop(0))

    async def _run(self, status: str | None) -> Verdict:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            await asyncio.sleep(0.01 if status else LONG_TIME_S)
        finally:
            self.running -= 1
        return make_verdict(status or "")


def has_passed(verdict: Verdict) -> bool:
    return bool(verdict.passed)


@pytest.mark.parametrize(
    ("left_s", "run_s", "max_running"), [(None, 50.0, 2), (200.0, 50.0, 2), (99.0, 50.0, 1)]
)
async def test_runs_are_parallel_if_there_is_enough_time(
    left_s: float | None, run_s: float, max_running: int
) -> None:
    suite = ScriptedSuite("passed", "passed")
    first, second = await run_twice(suite.run, has_passed, left_s=left_s, run_s=run_s)
    assert second is not None
    assert not passed_only_once(first)
    assert (suite.max_running, suite.running) == (max_running, 0)


@pytest.mark.parametrize("statuses", [("passed", None), (None, "passed")])
async def test_a_verdict_of_one_run_is_marked_when_the_time_is_up(statuses: tuple[str | None, ...]) -> None:
    suite = ScriptedSuite(*statuses)
    first, second = await run_twice(suite.run, has_passed, left_s=REPORTING_RESERVE_S + 0.5, run_s=0.1)
    assert second is None
    assert first.notes == (VerdictNote(code="passed_once"),)
    assert suite.running == 0


async def test_runs_without_isolation_are_sequential() -> None:
    """Without a sandbox, parallel runs could use the same port or folder."""
    suite = ScriptedSuite("passed", "passed")
    _, second = await run_twice(suite.run, has_passed, left_s=None, run_s=0.1, is_isolated=False)
    assert second is not None
    assert (suite.max_running, suite.running) == (1, 0)


@pytest.mark.parametrize("statuses", [("passed", None), (None, "passed")])
async def test_a_second_run_that_hangs_counts_as_a_timeout(
    statuses: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate that sometimes hangs had enough time, so its one pass is chance."""
    monkeypatch.setattr("suture.loop.evaluation.repeated_runs.STUCK_RUN_EXTRA_S", 0.2)
    suite = ScriptedSuite(*statuses)

    first, second = await run_twice(suite.run, has_passed, left_s=REPORTING_RESERVE_S + 1.0, run_s=0.1)

    assert second is not None
    assert first.notes == ()
    assert [outcome.status for outcome in merge_runs(first, second).outcomes] == ["timeout"]
    assert suite.running == 0


async def test_a_failing_candidate_is_not_run_again() -> None:
    suite = ScriptedSuite("failed", None)
    first, second = await run_twice(suite.run, has_passed, left_s=LONG_TIME_S, run_s=0.1)
    assert (second, first.notes, suite.running) == (None, (), 0)


async def test_there_is_no_verdict_if_no_run_ends() -> None:
    suite = ScriptedSuite(None, None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await run_twice(suite.run, has_passed, left_s=0.1, run_s=0.01)
    assert suite.running == 0


def test_a_verdict_of_one_run_causes_a_warning() -> None:
    no_proposals = SimpleNamespace(find_proposal=lambda candidate: None)
    context = cast(
        RunContext,
        SimpleNamespace(
            task=SimpleNamespace(kind="write"), candidates=no_proposals, ledger=SimpleNamespace(events=())
        ),
    )
    candidate = Candidate(files={}, origin="mutation")
    verdict = make_verdict("passed")

    assert find_warnings(candidate, verdict, context) == ChangeWarnings()
    single_run_verdict = Verdict(
        candidate="c", outcomes=verdict.outcomes, evidence="nonce", notes=(VerdictNote(code="passed_once"),)
    )
    assert find_warnings(candidate, single_run_verdict, context).texts == (PASSED_ONCE_TEXT,)
