"""Run the suite twice on a candidate, because an accidental pass proves nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from suture.core.records import CheckOutcome, Counterexample, Verdict, VerdictNote
from suture.loop.tuning import CONCURRENT_RUNS_TIME, REPORTING_RESERVE_S, STUCK_RUN_EXTRA_S, STUCK_RUN_FACTOR


class _SuiteRun:
    """A run of the suite that has started."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, Verdict]]) -> None:
        self.started_s, self.duration_s = time.monotonic(), 0.0
        self.task = asyncio.create_task(self._run(run))

    async def _run(self, run: Callable[[], Coroutine[Any, Any, Verdict]]) -> Verdict:
        try:
            return await run()
        finally:
            self.duration_s = time.monotonic() - self.started_s

    def is_stuck(self, ended_run: _SuiteRun) -> bool:
        """Return whether the run has had more time than it can need, given a run that has ended."""
        limit_s = STUCK_RUN_FACTOR * ended_run.duration_s + STUCK_RUN_EXTRA_S
        return time.monotonic() - self.started_s > limit_s


async def run_twice(
    run: Callable[[], Coroutine[Any, Any, Verdict]],
    passes: Callable[[Verdict], bool],
    *,
    left_s: float | None,
    run_s: float,
    is_isolated: bool = True,
) -> tuple[Verdict, Verdict | None]:
    """Run the suite on a candidate that has passed a trial, and a second time if the first run passes.

    Return `(verdict of the run that ended first, verdict of the other run)`. There is no other run if the first
    does not pass, or there was no time.

    Args:
        run: Runs the suite on the candidate once.
        passes: Returns whether a verdict needs the second run.
        left_s: Wall-clock seconds that are left; `None` for no limit.
        run_s: Wall-clock seconds of one run of the suite, as measured before.
        is_isolated: Whether two runs at the same time share no port and no folder of the machine.
    """
    end_s = None if left_s is None else time.monotonic() + left_s - REPORTING_RESERVE_S
    runs = [_SuiteRun(run)]
    if is_isolated and (left_s is None or left_s >= CONCURRENT_RUNS_TIME * run_s):
        runs.append(_SuiteRun(run))
    try:
        await asyncio.wait([runs[0].task], timeout=_seconds_until(end_s))
        if not runs[0].task.done() and runs[1:] and runs[1].task.done():
            runs.reverse()  # From now on, the first is the run that ended first.
        first = await runs[0].task
        if not passes(first):
            return first, None
        if not runs[1:]:
            runs.append(_SuiteRun(run))
        await asyncio.wait([runs[1].task], timeout=_seconds_until(end_s))
        if runs[1].task.done():
            return first, runs[1].task.result()
        if runs[1].is_stuck(runs[0]):
            return first, _as_timed_out(first)
        return replace(first, notes=(*first.notes, VerdictNote(code="passed_once"))), None
    finally:
        for suite_run in runs:
            suite_run.task.cancel()
        await asyncio.gather(*(suite_run.task for suite_run in runs), return_exceptions=True)


def _as_timed_out(verdict: Verdict) -> Verdict:
    """Return the verdict of a run that hangs: every check that passed in the other run has timed out."""
    outcomes = (
        replace(outcome, status="timeout") if outcome.passed else outcome for outcome in verdict.outcomes
    )
    return replace(verdict, outcomes=tuple(outcomes))


def passed_only_once(verdict: Verdict | None) -> bool:
    """Return whether a pass was not repeated because there was no time."""
    return verdict is not None and any(note.code == "passed_once" for note in verdict.notes)


def _seconds_until(end_s: float | None) -> float | None:
    return None if end_s is None else max(0.0, end_s - time.monotonic())


def merge_runs(first: Verdict, second: Verdict) -> Verdict:
    """Return the verdict of two runs: a check has passed if it passed in both of them.

    A check that passed only in the first run has failed, even if the second run skipped it or did not reach
    it.
    """
    wall_s = max(first.wall_s, second.wall_s)
    unrepeated = first.passed - second.passed
    if not unrepeated:
        return replace(second, wall_s=wall_s)
    failed = {
        outcome.check_id: _as_failed(outcome)
        for outcome in (*first.outcomes, *second.outcomes)
        if outcome.check_id in unrepeated
    }
    outcomes = [failed.pop(outcome.check_id, outcome) for outcome in second.outcomes]
    note = VerdictNote(code="not_repeated", subjects=tuple(sorted(unrepeated)))
    return replace(
        second,
        outcomes=(*outcomes, *failed.values()),
        evidence=first.evidence,
        wall_s=wall_s,
        notes=(*second.notes, note),
    )


def _as_failed(outcome: CheckOutcome) -> CheckOutcome:
    """Return the outcome of a check as a failure; with its own counterexample if it has one."""
    if outcome.status not in ("passed", "skipped"):
        return outcome
    text = "no steady result: it passed in one run and not in the next, on the same files"
    fact = Counterexample(check_id=outcome.check_id, actual=text, code="not_repeated")
    return replace(outcome, status="failed", counterexample=fact)
