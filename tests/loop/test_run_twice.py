"""A repair is not lost to the time limit: if there is time for one run only, the verdict says so."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import Candidate, CheckOutcome, Verdict, VerdictNote
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import PASSED_ONCE_TEXT, find_warnings
from suture.loop.evaluation.repeated_runs import merge_runs, passed_only_once, run_twice
from suture.loop.tuning import REPORTING_RESERVE_S

FAR_S = 600.0


def make_verdict(status: str) -> Verdict:
    outcome = CheckOutcome(check_id="t", status=cast(Any, status), evidence="nonce")
    return Verdict(candidate="c", outcomes=(outcome,), evidence="nonce")


class Suite:
    """Runs that end with a given status; a run without a status never ends.

    Args:
        statuses: How each run ends, in the order in which they begin; `None` for one without an end.
    """

    def __init__(self, *statuses: str | None) -> None:
        self._statuses = list(statuses)
        self.running = self.most = 0

    def run(self) -> Coroutine[Any, Any, Verdict]:
        return self._run(self._statuses.pop(0))

    async def _run(self, status: str | None) -> Verdict:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.01 if status else FAR_S)
        finally:
            self.running -= 1
        return make_verdict(status or "")


def passed(verdict: Verdict) -> bool:
    return bool(verdict.passed)


@pytest.mark.parametrize(("left_s", "takes_s", "most"), [(None, 50.0, 2), (200.0, 50.0, 2), (99.0, 50.0, 1)])
async def test_two_runs_are_side_by_side_where_there_is_time_for_both(
    left_s: float | None, takes_s: float, most: int
) -> None:
    suite = Suite("passed", "passed")
    first, second = await run_twice(suite.run, passed, left_s=left_s, run_s=takes_s)
    assert second is not None
    assert not passed_only_once(first)
    assert (suite.most, suite.running) == (most, 0)


@pytest.mark.parametrize("statuses", [("passed", None), (None, "passed")])
async def test_one_run_is_reported_as_one_where_the_time_is_up(statuses: tuple[str | None, ...]) -> None:
    suite = Suite(*statuses)
    first, second = await run_twice(suite.run, passed, left_s=REPORTING_RESERVE_S + 0.5, run_s=0.1)
    assert second is None
    assert first.notes == (VerdictNote(code="passed_once"),)
    assert suite.running == 0


async def test_two_runs_that_could_meet_are_one_after_the_other() -> None:
    """A port, or a folder of the machine: without a sandbox between them, both runs would use it."""
    suite = Suite("passed", "passed")
    _, second = await run_twice(suite.run, passed, left_s=None, run_s=0.1, is_isolated=False)
    assert second is not None
    assert (suite.most, suite.running) == (1, 0)


@pytest.mark.parametrize("statuses", [("passed", None), (None, "passed")])
async def test_a_run_that_does_not_end_is_not_one_that_had_no_time(
    statuses: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate that waits for itself now and then had its time: it has passed by chance."""
    monkeypatch.setattr("suture.loop.evaluation.repeated_runs.STUCK_RUN_EXTRA_S", 0.2)
    suite = Suite(*statuses)
    first, second = await run_twice(suite.run, passed, left_s=REPORTING_RESERVE_S + 1.0, run_s=0.1)
    assert second is not None
    assert first.notes == ()
    assert [outcome.status for outcome in merge_runs(first, second).outcomes] == ["timeout"]
    assert suite.running == 0


async def test_what_fails_is_not_run_again() -> None:
    suite = Suite("failed", None)
    first, second = await run_twice(suite.run, passed, left_s=FAR_S, run_s=0.1)
    assert (second, first.notes, suite.running) == (None, (), 0)


async def test_where_no_run_ends_there_is_no_verdict() -> None:
    suite = Suite(None, None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await run_twice(suite.run, passed, left_s=0.1, run_s=0.01)
    assert suite.running == 0


def test_one_run_is_a_sign_of_doubt() -> None:
    context = cast(RunContext, SimpleNamespace(task=SimpleNamespace(kind="write")))
    candidate = Candidate(files={}, origin="mutation")
    verdict = make_verdict("passed")
    assert find_warnings(candidate, verdict, context) == ()
    from_one = Verdict(
        candidate="c", outcomes=verdict.outcomes, evidence="nonce", notes=(VerdictNote(code="passed_once"),)
    )
    assert find_warnings(candidate, from_one, context) == (PASSED_ONCE_TEXT,)
