"""Repairs of flaky tests: what a model gets to know about them, and the runs in which a repair must hold."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace

from suture.core.ledger import last_payload
from suture.core.ledger.kinds import FlakyRepairTried, FlakyTestsInvestigated
from suture.core.records import Candidate, CheckOutcome, Verdict
from suture.core.records.flakiness import FlakyDiagnosis, render_flaky_cause, render_flaky_statistics
from suture.judge import Suite
from suture.judge.triage import AdverseRun, FlakyRuns, get_test_source, list_adverse_runs
from suture.judge.tuning import MIN_FRESH_RUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR
from suture.loop.context import RunContext
from suture.loop.evaluation.flaky_tests import overlay_unprotected

FLAKY_TASK = (
    "Correct the code so that this test passes in every run. Your change must pass in random orders, alone and "
    "together with other tests, and with other seeds. The tests must stay as they are."
)


def list_diagnoses(context: RunContext) -> tuple[FlakyDiagnosis, ...]:
    """Return the diagnoses of a run whose failing tests are all flaky; none for any other run."""
    investigated = last_payload(context.ledger.events, FlakyTestsInvestigated)
    return investigated.diagnoses if investigated is not None else ()


def describe_flaky_tests(context: RunContext) -> Iterator[str]:
    """Yield what a model gets to know about each flaky test: its cause, the experiments and the other tests."""
    for diagnosis in list_diagnoses(context):
        sources = (get_test_source(test, context.task.files) for test in diagnosis.other_tests)
        yield "\n\n".join(
            [
                f"{diagnosis.test} is flaky: {render_flaky_cause(diagnosis)}. "
                f"It passed {render_flaky_statistics(diagnosis)}. {FLAKY_TASK}",
                *filter(None, sources),
            ]
        )


async def confirm_flaky_repair(
    verdict: Verdict, candidate: Candidate, suite: Suite, context: RunContext
) -> Verdict:
    """Return the verdict on a candidate that passes, after runs of the flaky tests under adverse conditions.

    If a flaky test fails in one of them, it has failed in the verdict. Other tests do not decide here: their own
    dependence on an order, for example, is no fault of the candidate.
    """
    diagnoses, command = list_diagnoses(context), suite.command
    if not diagnoses or command is None or candidate.origin == "user" or verdict.failed:
        return verdict
    runs = FlakyRuns(
        command=command,
        files=overlay_unprotected(candidate, suite),
        timeout_s=max(MIN_FRESH_RUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR * verdict.wall_s),
        end_s=math.inf,
    )
    tests = [outcome.check_id for outcome in verdict.outcomes]
    adverse_runs = list_adverse_runs(tests, diagnoses, context.settings.repair.seed)
    failing: dict[str, CheckOutcome] = {}
    clean = 0
    for run in adverse_runs:
        failing = await _find_failing(run, runs, {diagnosis.test for diagnosis in diagnoses})
        if failing:
            break
        clean += 1
    context.ledger.append(
        FlakyRepairTried(
            candidate=candidate.hash,
            runs=len(adverse_runs),
            clean=clean,
            condition=adverse_runs[clean].condition if failing else None,
            tests=tuple(sorted(failing)),
        )
    )
    outcomes = tuple(failing.get(outcome.check_id, outcome) for outcome in verdict.outcomes)
    return replace(verdict, outcomes=outcomes)


async def _find_failing(run: AdverseRun, runs: FlakyRuns, targets: set[str]) -> dict[str, CheckOutcome]:
    """Return the outcomes of those flaky tests that do not pass in a run."""
    count = 2 if run.condition == "parallel" else 1
    every_run = await asyncio.gather(*(runs.run_outcomes(run.tests, run.conditions) for _ in range(count)))
    selected = targets.intersection(run.tests) if run.tests else targets
    outcomes = [outcome for outcomes in every_run for outcome in outcomes if outcome.check_id in selected]
    missing = selected - {outcome.check_id for outcome in outcomes}
    outcomes += [CheckOutcome(check_id=test, status="missing", evidence="nonce") for test in missing]
    return {outcome.check_id: outcome for outcome in outcomes if not outcome.passed}
