"""One verdict: the suite run on a candidate, a pass confirmed by a second run; what the state keeps of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateRefused,
    CandidateRegressed,
    CandidateUnconfirmed,
)
from suture.core.records import Candidate, CheckOutcome, Counterexample, Verdict, VerdictNote
from suture.errors import BudgetExceeded
from suture.judge import Suite, check_candidate
from suture.loop.context import RunContext
from suture.loop.evaluation.two_runs import Runs, run_twice
from suture.loop.policy.attempts import Attempt, count_deciding_checks, failure_signature
from suture.loop.policy.stagnation import code_fingerprint
from suture.loop.services.safety_gate import is_refusal

T = TypeVar("T")


async def judge(
    candidate: Candidate,
    suite: Suite,
    context: RunContext,
    *,
    confirm: bool = True,
    tried_s: float | None = None,
) -> Verdict:
    """Run the suite on one candidate and write its verdict down.

    A candidate that passes a test command is run once more, from nothing: a pass that came by chance proves
    nothing. Only where both runs pass is it written down as one that passes. Where the time was up before the
    second run, the verdict is not written down at all; but for one that has passed a trial before: its tests
    have passed twice then, and the verdict says that only one of them was a whole run.

    Args:
        candidate: The files that are judged.
        suite: What decides.
        context: The run.
        confirm: Whether a pass is run once more; not where the same files have passed just before.
        tried_s: For one that has passed a trial, the wall-clock seconds of one run of the suite: the second
            need not wait for the first then, if there is time for both.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    threshold = context.settings.loop.trust_threshold

    def run() -> Coroutine[Any, Any, Verdict]:
        return check_candidate(candidate, suite)

    def passes(verdict: Verdict) -> bool:
        return confirm and _must_repeat(candidate, verdict, suite, threshold)

    async with context.budget.time_limit():
        if tried_s is not None and confirm and suite.command is not None:
            left_s = context.budget.remaining_s()
            walled = (await suite.sandbox.capabilities()).meets_level("namespace")
            both = await run_twice(run, passes, left_s=left_s, takes_s=tried_s, is_walled=walled)
        else:
            first = await run()
            again = await run() if passes(first) else None
            both = Runs(first=first, again=again)
        verdict, runs = both.first, 1
        if both.again is not None:
            lost = unrepeated(verdict, both.again)
            verdict, runs = confirmed(verdict, both.again), 2
            if lost:
                context.ledger.append(CandidateUnconfirmed(candidate=candidate.hash, checks=tuple(lost[:50])))
    if is_refusal(verdict):
        reasons = tuple(verdict.output.splitlines())
        context.ledger.append(CandidateRefused(candidate=candidate.hash, reasons=reasons))
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    checked = CandidateChecked(
        candidate=candidate.hash,
        label=candidate.label,
        passed=passed,
        failed=failed,
        evidence=verdict.evidence,
        verdict=context.keep(verdict),
        seconds=round(verdict.wall_s, 3),
        runs=runs,
        unreached=unreached_in(verdict),
    )
    context.ledger.append(checked)
    return verdict


def unreached_in(verdict: Verdict) -> int:
    """Checks that were not run to their end, because the run of all of them ended before."""
    return sum(outcome.status == "missing" for outcome in verdict.outcomes)


def _must_repeat(candidate: Candidate, verdict: Verdict, suite: Suite, threshold: float) -> bool:
    """Checks of single calls say the same each time; a user's command may do anything."""
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    return suite.command is not None and candidate.origin != "user" and bool(passed) and not failed


async def gather_verdicts(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What several verdicts bring, side by side; all have ended when this ends, whatever becomes of one.

    A verdict that came is in the ledger, and so not lost where another met a fault.

    Raises:
        BudgetExceeded: The time was up before any of them was there. Where some are, they are the answer: one
            of them may have solved the task.
        Exception: The first other fault; what else went wrong stands in its notes.
    """
    answers = await asyncio.gather(*work, return_exceptions=True)
    found = [answer for answer in answers if not isinstance(answer, BaseException)]
    faults = [answer for answer in answers if isinstance(answer, BaseException)]
    late = [fault for fault in faults if isinstance(fault, BudgetExceeded)]
    worse = [fault for fault in faults if not isinstance(fault, BudgetExceeded)]
    if not worse and (found or not late):
        return found
    ordered: list[BaseException] = [*worse, *late]
    first = ordered[0]
    for fault in ordered[1:]:
        first.add_note(f"beside it: {type(fault).__name__}: {fault}")
    raise first


def judged_attempt(attempt: Attempt, verdict: Verdict, base: Verdict | None, context: RunContext) -> Attempt:
    """An attempt with its verdict; a regression is written down."""
    judged = with_verdict(attempt, verdict, base, context)
    if judged.regressed:
        lost = sorted((base.passed if base else frozenset()) - verdict.passed)
        context.ledger.append(CandidateRegressed(candidate=attempt.candidate, checks=tuple(lost[:50])))
    return replace(judged, fingerprint=code_fingerprint(context.candidate(attempt.blob).files))


async def judge_again(attempt: Attempt, suite: Suite, context: RunContext) -> Attempt:
    """A candidate of a `write` task under the checks of now, which may be others than before.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    verdict = await judge(context.candidate(attempt.blob), suite, context)
    return with_verdict(attempt, verdict, None, context)


def with_verdict(attempt: Attempt, verdict: Verdict, base: Verdict | None, context: RunContext) -> Attempt:
    """An attempt with what its verdict says in numbers; the verdict is kept."""
    threshold = context.settings.loop.trust_threshold
    passed, failed, regressed = count_deciding_checks(verdict, base, threshold)
    return replace(
        attempt,
        verdict=context.keep(verdict),
        passed=passed,
        failed=failed,
        regressed=regressed,
        signature=failure_signature(verdict, threshold),
        blocked=is_refusal(verdict),
    )


NOT_REPEATED = "passed in one run and not in the next, on the same files"


def unrepeated(first: Verdict, again: Verdict) -> tuple[str, ...]:
    """Ids of the checks that passed in the first run and not in the second, sorted."""
    return tuple(sorted(first.passed - again.passed))


def confirmed(first: Verdict, again: Verdict) -> Verdict:
    """The verdict of two runs: a check has passed where it passed in both of them.

    Args:
        first: Of one run, on code that passes it.
        again: Of a fresh run on the same files. What it says is kept, but a check that passed only in the
            first run has failed, also where the second skipped it or did not come to it.
    """
    wall_s = max(first.wall_s, again.wall_s)
    lost = unrepeated(first, again)
    if not lost:
        return replace(again, wall_s=wall_s)
    failed = {o.check_id: _failed(o) for o in (*first.outcomes, *again.outcomes) if o.check_id in lost}
    outcomes = [failed.pop(outcome.check_id, outcome) for outcome in again.outcomes]
    return replace(
        again,
        outcomes=(*outcomes, *failed.values()),
        evidence=first.evidence,
        wall_s=wall_s,
        notes=(*again.notes, VerdictNote(code="not_repeated", subjects=lost)),
    )


def _failed(outcome: CheckOutcome) -> CheckOutcome:
    """What a check said where it did not pass; where it is not known, that it failed."""
    if outcome.status not in ("passed", "skipped"):
        return outcome
    fact = Counterexample(check_id=outcome.check_id, actual=f"no steady result: it {NOT_REPEATED}", code="not_repeated")
    return replace(outcome, status="failed", counterexample=fact)
