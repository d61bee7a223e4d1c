"""Investigate flaky tests: find out by experiments what decides how they end, and offer their quarantine."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger import last_payload
from suture.core.ledger.kinds import FlakyTestsInvestigated, TriageFinished
from suture.core.records import FLAKY_CAUSES
from suture.judge import Suite
from suture.judge.triage import diagnose_flaky_test, make_flaky_test_runner, make_quarantine_patch
from suture.judge.tuning import INVESTIGATION_SHARE, MAX_INVESTIGATED_TESTS, MAX_INVESTIGATION_S
from suture.loop.context import RunContext
from suture.loop.state import LoopState

QUARANTINE_FILE = "suture-quarantine.patch"
"""The name of the patch in the run folder."""


async def investigate(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Record why the failing tests are flaky. It costs no attempt and no token."""
    context = runtime.context
    triage = last_payload(context.ledger.events, TriageFinished)
    failures = triage.non_code_failures if triage is not None else ()
    tests = [failure.test for failure in failures if failure.cause in FLAKY_CAUSES]
    async with context.budget.time_limit():
        suite = await context.suites.load()
        context.ledger.append(await _investigate(tests, suite, state, context))
    return {"investigated": True}


async def _investigate(
    tests: list[str], suite: Suite, state: LoopState, context: RunContext
) -> FlakyTestsInvestigated:
    base = context.candidates.baseline_verdict(state)
    if suite.command is None or not suite.command.is_pytest or base is None:
        return FlakyTestsInvestigated(not_investigated=tuple(tests))
    left_s = context.budget.remaining_s()
    seconds = (
        MAX_INVESTIGATION_S if left_s is None else min(MAX_INVESTIGATION_S, INVESTIGATION_SHARE * left_s)
    )
    runs = make_flaky_test_runner(suite, base, seconds)
    all_tests = [outcome.check_id for outcome in base.outcomes]
    diagnoses = [
        await diagnose_flaky_test(test, all_tests, runs, context.settings.repair.seed)
        for test in tests[:MAX_INVESTIGATED_TESTS]
        if not runs.is_over
    ]
    patch = await make_quarantine_patch(diagnoses, runs)
    if patch:
        head = f"Quarantine of flaky tests, offered by the Suture run {context.folder.id}. It is not applied.\n\n"
        context.folder.write_text(QUARANTINE_FILE, head + patch)
    return FlakyTestsInvestigated(
        diagnoses=tuple(diagnoses),
        not_investigated=tuple(tests[len(diagnoses) :]),
        quarantine=QUARANTINE_FILE if patch else "",
    )
