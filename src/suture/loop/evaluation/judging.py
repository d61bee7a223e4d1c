"""Judge a candidate: run the suite on it, confirm a pass by a second run, and record the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from suture.agents.context.failure_causes import count_deciding_checks
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
from suture.loop.evaluation.flaky_repairs import confirm_flaky_repair
from suture.loop.evaluation.flaky_tests import excuse_flaky_tests, reject_broken_flaky_tests
from suture.loop.evaluation.repeated_runs import merge_runs, run_twice
from suture.loop.policy.attempts import Attempt, code_fingerprint, failure_signature
from suture.loop.services.candidate_store import Lineage
from suture.loop.services.safety_gate import is_refusal
from suture.loop.state import LoopState
from suture.loop.tuning import MAX_LISTED_CHECKS
from suture.project.workspace import overlay_candidate, unified_diff

T = TypeVar("T")


async def judge(
    candidate: Candidate,
    suite: Suite,
    context: RunContext,
    *,
    confirm: bool = True,
    known: Verdict | None = None,
    trial_run_s: float | None = None,
) -> Verdict:
    """Run the suite on one candidate, and record the verdict.

    A candidate that passes a test command is run a second time. Only if both runs pass is it recorded as one
    that passes. If the time is up before the second run has ended, no verdict is recorded. A candidate that
    has passed a trial is an exception, because its tests have passed twice by then: its verdict notes that
    only one of these was a complete run. In a run that repairs flaky tests, these also run under adverse conditions.

    Args:
        confirm: Whether a pass is repeated; not if the same files have just passed.
        known: The verdict of a run that has just been made, which takes the place of the first one.
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
        # The check of a single call gives the same result each time; a user's command may not.
        passed, failed, _ = count_deciding_checks(verdict, None, threshold)
        is_command = suite.command is not None and candidate.origin != "user"
        return confirm and is_command and bool(passed) and not failed

    async with context.budget.time_limit():
        if trial_run_s is not None and confirm and suite.command is not None:
            capabilities = await suite.sandbox.capabilities()
            first, second = await run_twice(
                run,
                needs_second_run,
                left_s=context.budget.remaining_s(),
                run_s=trial_run_s,
                is_isolated=capabilities.meets_level("namespace"),
            )
        else:
            first = known or await run()
            second = await run() if needs_second_run(first) else None
        merged = first if second is None else merge_runs(first, second)
        verdict = await excuse_flaky_tests(merged, candidate, suite, context)
        verdict = await reject_broken_flaky_tests(verdict, candidate, suite)
        verdict = await confirm_flaky_repair(verdict, candidate, suite, context)
    unrepeated = sorted((first.passed - second.passed) & verdict.failed) if second is not None else []
    if unrepeated:
        checks = tuple(unrepeated[:MAX_LISTED_CHECKS])
        context.ledger.append(CandidateUnconfirmed(candidate=candidate.hash, checks=checks))
    if is_refusal(verdict):
        reasons = tuple(verdict.output.splitlines())
        context.ledger.append(CandidateRefused(candidate=candidate.hash, reasons=reasons))
    passed, failed, _ = count_deciding_checks(verdict, None, threshold)
    tool_checks = {outcome.check_id for outcome in verdict.outcomes if outcome.provenance == "tool"}
    context.ledger.append(
        CandidateChecked(
            candidate=candidate.hash,
            label=candidate.label,
            passed=passed,
            failed=failed,
            evidence=verdict.evidence,
            verdict=context.candidates.save(verdict),
            seconds=round(verdict.wall_s, 3),
            runs=1 if second is None else 2,
            unreached=count_unreached(verdict),
            tool_checks=len(tool_checks),
            findings=len(tool_checks & verdict.failed),
        )
    )
    return verdict


def count_unreached(verdict: Verdict) -> int:
    """Return how many checks did not run to their end, because the whole run was cut off."""
    return sum(outcome.status == "missing" for outcome in verdict.outcomes)


async def gather_verdicts(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Judge several candidates at the same time, and return the results of those that did not fail.

    All of them have ended when this returns or raises.

    Raises:
        BudgetExceeded: The time was up before any of them had a result. If some have, they are returned,
            because one of them may have solved the task.
        Exception: The first other fault; the other faults are its notes.
    """
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    verdicts = [result for result in results if not isinstance(result, BaseException)]
    faults = [result for result in results if isinstance(result, BaseException)]
    faults.sort(key=lambda fault: isinstance(fault, BudgetExceeded))
    if not faults or (verdicts and isinstance(faults[0], BudgetExceeded)):
        return verdicts
    for fault in faults[1:]:
        faults[0].add_note(f"at the same time: {type(fault).__name__}: {fault}")
    raise faults[0]


def record_verdict(
    attempt: Attempt, verdict: Verdict, baseline: Verdict | None, context: RunContext
) -> Attempt:
    """Return an attempt with its verdict, and record its regressions."""
    judged = with_verdict(attempt, verdict, baseline, context)
    if judged.regressed:
        regressed = sorted((baseline.passed if baseline else frozenset()) - verdict.passed)
        checks = tuple(regressed[:MAX_LISTED_CHECKS])
        context.ledger.append(CandidateRegressed(candidate=attempt.candidate, checks=checks))
    files = context.candidates.load(attempt.blob).files
    changed_lines = count_changed_lines(context.task.files, files) if context.task.kind == "heal" else 0
    return replace(judged, fingerprint=code_fingerprint(files), changed_lines=changed_lines)


def count_changed_lines(before: Mapping[str, bytes], files: Mapping[str, str]) -> int:
    """Return the number of lines that a candidate adds and removes.

    Args:
        before: The files of the task: path -> content.
        files: The files of the candidate: path -> text.
    """
    old = {path: before[path] for path in files if path in before}
    lines = unified_diff(old, overlay_candidate(old, files)).splitlines()
    return sum(line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) for line in lines)


async def judge_at_once(
    candidate: Candidate, lineage: Lineage, suite: Suite, state: LoopState, context: RunContext
) -> Attempt:
    """Propose a candidate outside the moves of a round, judge it, and return its attempt."""
    proposal = context.candidates.propose(context.candidates.make_proposal(candidate), lineage)
    verdict = await judge(candidate, suite, context)
    return record_verdict(proposal, verdict, context.candidates.baseline_verdict(state), context)


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
