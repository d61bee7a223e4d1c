"""Repairs of flaky tests: what a model is told about them, and the runs in which a repair must hold."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from suture.core.ledger import last_payload
from suture.core.ledger.kinds import FlakyRepairTried, FlakyTestsInvestigated
from suture.core.records import Candidate, CheckOutcome, Verdict
from suture.core.records.flakiness import (
    FlakyDiagnosis,
    TestCondition,
    render_flaky_cause,
    render_flaky_statistics,
)
from suture.judge import Suite
from suture.judge.triage import AdverseRun, FlakyTestRunner, get_test_source, list_adverse_runs
from suture.judge.tuning import MIN_FRESH_RUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR
from suture.loop.evaluation.flaky_tests import overlay_unprotected
from suture.loop.tuning import FLAKY_REPAIR_SHARE, MIN_CLEAN_SHARE

if TYPE_CHECKING:  # it imports the models and the search, which `suture judge` does not need
    from suture.loop.context import RunContext

FLAKY_TASK = (
    "Correct the code so that this test passes in every run. Your change must pass in random orders, alone and "
    "together with other tests, and with other seeds. The tests must stay as they are."
)


def list_diagnoses(context: RunContext) -> tuple[FlakyDiagnosis, ...]:
    """Return the diagnoses of a run whose failing tests are all flaky; none for any other run."""
    investigated = last_payload(context.ledger.events, FlakyTestsInvestigated)
    return investigated.diagnoses if investigated is not None else ()


def describe_flaky_tests(context: RunContext) -> Iterator[str]:
    """Yield what a model is told about each flaky test: its cause, the experiments and the other tests."""
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

    If a flaky test fails in one of them, it has failed in the verdict, and so it has if there is no time for half of
    the runs. Other tests do not decide here: their own dependence on an order, for example, is not the fault of the
    candidate.
    """
    diagnoses, command = list_diagnoses(context), suite.command
    if not diagnoses or command is None or candidate.origin == "user" or verdict.failed:
        return verdict
    left_s = context.budget.remaining_s()
    runs = FlakyTestRunner(
        command=command,
        files=overlay_unprotected(candidate, suite),
        timeout_s=max(MIN_FRESH_RUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR * verdict.wall_s),
        end_s=math.inf if left_s is None else time.monotonic() + FLAKY_REPAIR_SHARE * left_s,
    )
    tests = [outcome.check_id for outcome in verdict.outcomes]
    adverse_runs = list_adverse_runs(tests, diagnoses, context.settings.repair.seed)
    targets = {diagnosis.test for diagnosis in diagnoses}
    failing: dict[str, CheckOutcome] = {}
    condition: TestCondition | None = None
    clean = 0
    for run in adverse_runs:
        if runs.is_over:
            break
        failing, is_complete = await _find_failing(run, runs, targets)
        if failing:
            condition = run.kind
            break
        clean += is_complete
    if not failing and clean < MIN_CLEAN_SHARE * len(adverse_runs):
        failing = {test: CheckOutcome(check_id=test, status="missing", evidence="nonce") for test in targets}
    context.ledger.append(
        FlakyRepairTried(
            candidate=candidate.hash,
            runs=len(adverse_runs),
            clean=clean,
            condition=condition,
            tests=tuple(sorted(failing)),
        )
    )
    outcomes = tuple(
        replace(outcome, status=found.status, counterexample=found.counterexample)
        if (found := failing.get(outcome.check_id)) is not None
        else outcome
        for outcome in verdict.outcomes
    )
    return replace(verdict, outcomes=outcomes)


async def _find_failing(
    run: AdverseRun, runs: FlakyTestRunner, targets: set[str]
) -> tuple[dict[str, CheckOutcome], bool]:
    """Return the outcomes of those flaky tests that do not pass in a run, and whether all of them finished.

    A test that a run did not reach before its time limit shows nothing.
    """
    count = 2 if run.kind == "parallel" else 1
    every_run = await asyncio.gather(*(runs.run_until(run.tests, run.settings) for _ in range(count)))
    selected = targets.intersection(run.tests) if run.tests else targets
    failing: dict[str, CheckOutcome] = {}
    is_complete = True
    for outcomes, is_cut_off in every_run:
        found = {test: CheckOutcome(check_id=test, status="missing", evidence="nonce") for test in selected}
        found |= {outcome.check_id: outcome for outcome in outcomes if outcome.check_id in selected}
        not_passed = {test: outcome for test, outcome in found.items() if not outcome.passed}
        if is_cut_off and any(outcome.status == "missing" for outcome in not_passed.values()):
            is_complete = False
            not_passed = {test: each for test, each in not_passed.items() if each.status != "missing"}
        failing |= not_passed
    return failing, is_complete
