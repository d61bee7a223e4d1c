"""Judge a candidate: run the suite on it, confirm a pass by a second run, and record the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from suture.agents.context.deciding_checks import count_deciding_checks
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateRefused,
    CandidateRegressed,
    CandidateUnconfirmed,
)
from suture.core.records import Candidate, Verdict
from suture.errors import BudgetExceeded
from suture.judge import Suite, check_candidate
from suture.loop.context import RunContext
from suture.loop.evaluation.repeated_runs import RepeatedVerdict, find_unrepeated, merge_runs, run_twice
from suture.loop.policy.attempts import Attempt, failure_signature
from suture.loop.policy.stagnation import code_fingerprint
from suture.loop.services.safety_gate import is_refusal
from suture.loop.tuning import MAX_LISTED_CHECKS

T = TypeVar("T")


async def judge(
    candidate: Candidate,
    suite: Suite,
    context: RunContext,
    *,
    confirm: bool = True,
    trial_run_s: float | None = None,
) -> Verdict:
    """Run the suite on one candidate, and record the verdict.

    A candidate that passes a test command is run a second time, from the start. Only if both runs pass is it
    recorded as one that passes. If there is no time for the second run, the verdict is not recorded at all;
    except for a candidate that has passed a trial, whose tests have passed twice by then. Its verdict says
    that only one of them was a complete run.

    Args:
        candidate: The candidate.
        suite: The suite that decides.
        context: The run.
        confirm: Whether a pass is repeated; not if the same files have just passed.
        trial_run_s: For a candidate that has passed a trial, wall-clock seconds of one run of the suite. The
            two runs may then start at the same time.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The sandbox failed.
    """
    threshold = context.trust_threshold

    def run() -> Coroutine[Any, Any, Verdict]:
        return check_candidate(candidate, suite)

    def needs_second_run(verdict: Verdict) -> bool:
        return confirm and _must_repeat(candidate, verdict, suite, threshold)

    async with context.budget.time_limit():
        if trial_run_s is not None and confirm and suite.command is not None:
            capabilities = await suite.sandbox.capabilities()
            runs = await run_twice(
                run,
                needs_second_run,
                left_s=context.budget.remaining_s(),
                run_s=trial_run_s,
                is_isolated=capabilities.meets_level("namespace"),
            )
        else:
            first = await run()
            second = await run() if needs_second_run(first) else None
            runs = RepeatedVerdict(first=first, second=second)
        verdict = _merge(candidate, runs, context)
    if is_refusal(verdict):
        reasons = tuple(verdict.output.splitlines())
        context.ledger.append(CandidateRefused(candidate=candidate.hash, reasons=reasons))
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    context.ledger.append(
        CandidateChecked(
            candidate=candidate.hash,
            label=candidate.label,
            passed=passed,
            failed=failed,
            evidence=verdict.evidence,
            verdict=context.candidates.save(verdict),
            seconds=round(verdict.wall_s, 3),
            runs=1 if runs.second is None else 2,
            unreached=count_unreached(verdict),
        )
    )
    return verdict


def _merge(candidate: Candidate, runs: RepeatedVerdict, context: RunContext) -> Verdict:
    if runs.second is None:
        return runs.first
    unrepeated = find_unrepeated(runs.first, runs.second)
    if unrepeated:
        checks = tuple(unrepeated[:MAX_LISTED_CHECKS])
        context.ledger.append(CandidateUnconfirmed(candidate=candidate.hash, checks=checks))
    return merge_runs(runs.first, runs.second)


def count_unreached(verdict: Verdict) -> int:
    """Return how many checks did not run to their end, because the run of all of them ended before."""
    return sum(outcome.status == "missing" for outcome in verdict.outcomes)


def _must_repeat(candidate: Candidate, verdict: Verdict, suite: Suite, threshold: float) -> bool:
    """Return whether a pass needs a second run. Checks of single calls repeat; a user's command may not."""
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    return suite.command is not None and candidate.origin != "user" and bool(passed) and not failed


async def gather_verdicts(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Wait for several verdicts side by side, and return those that came.

    All of them have ended when this returns. A verdict that came is in the ledger, and so is not lost where
    another one failed.

    Raises:
        BudgetExceeded: The time was up before any of them came. If some came, they are returned, because one
            of them may have solved the task.
        Exception: The first other fault; the other faults are its notes.
    """
    answers = await asyncio.gather(*work, return_exceptions=True)
    found = [answer for answer in answers if not isinstance(answer, BaseException)]
    faults = [answer for answer in answers if isinstance(answer, BaseException)]
    timed_out = [fault for fault in faults if isinstance(fault, BudgetExceeded)]
    other = [fault for fault in faults if not isinstance(fault, BudgetExceeded)]
    if not other and (found or not timed_out):
        return found
    ordered: list[BaseException] = [*other, *timed_out]
    first = ordered[0]
    for fault in ordered[1:]:
        first.add_note(f"at the same time: {type(fault).__name__}: {fault}")
    raise first


def record_verdict(
    attempt: Attempt, verdict: Verdict, baseline: Verdict | None, context: RunContext
) -> Attempt:
    """Return an attempt with its verdict, and record its regressions."""
    judged = with_verdict(attempt, verdict, baseline, context)
    if judged.regressed:
        lost = sorted((baseline.passed if baseline else frozenset()) - verdict.passed)
        checks = tuple(lost[:MAX_LISTED_CHECKS])
        context.ledger.append(CandidateRegressed(candidate=attempt.candidate, checks=checks))
    files = context.candidates.load(attempt.blob).files
    return replace(judged, fingerprint=code_fingerprint(files))


async def judge_again(attempt: Attempt, suite: Suite, context: RunContext) -> Attempt:
    """Return a candidate of a `write` task under the present checks, which may have changed.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The sandbox failed.
    """
    verdict = await judge(context.candidates.load(attempt.blob), suite, context)
    return with_verdict(attempt, verdict, None, context)


def with_verdict(
    attempt: Attempt, verdict: Verdict, baseline: Verdict | None, context: RunContext
) -> Attempt:
    """Return an attempt with the numbers of its verdict, and store the verdict."""
    threshold = context.trust_threshold
    passed, failed, regressed = count_deciding_checks(verdict, baseline, threshold)
    return replace(
        attempt,
        verdict=context.candidates.save(verdict),
        passed=passed,
        failed=failed,
        regressed=regressed,
        signature=failure_signature(verdict, threshold),
        blocked=is_refusal(verdict),
    )
