"""Tests that fail now and then whatever the code is: they do not decide about a candidate.

Such a test is proven, not guessed: it has failed and passed on the unchanged code, and it passes on the candidate
when it runs again there. What triage has proven is left out of every run (`Suite.flaky_tests`); the other flaky tests
show themselves only when they fail on a candidate.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from suture.core.ledger import first_payload, last_payload
from suture.core.ledger.kinds import CandidateChecked, FlakyTestsInvestigated, SearchFinished
from suture.core.records import Candidate, CheckOutcome, Verdict, VerdictNote
from suture.judge import Suite, find_protected_files
from suture.judge.triage import rerun_flaky_tests
from suture.loop.tuning import MAX_FLAKY_SHARE
from suture.project.workspace import overlay_candidate

if TYPE_CHECKING:  # it imports the models and the search, which `suture judge` does not need
    from suture.loop.context import RunContext


async def excuse_flaky_tests(
    verdict: Verdict, candidate: Candidate, suite: Suite, context: RunContext
) -> Verdict:
    """Return a verdict in which flaky tests count as passed, and a note names them.

    The verdict stays as it is unless all tests that fail are flaky, and they are few: a candidate that fails a
    test for another reason is refused in any case. It also stays if the run is about the flaky tests themselves.
    """
    if last_payload(context.ledger.events, FlakyTestsInvestigated) is not None:
        return verdict
    command, failed = suite.command, verdict.failed
    is_few = len(failed) <= MAX_FLAKY_SHARE * len(verdict.passed)
    if command is None or not command.is_pytest or candidate.origin == "user" or not failed or not is_few:
        return verdict
    flaky = _list_flaky_in_trials(context)
    before = _load_baseline(context)
    unproven = failed - flaky
    if before is None or not unproven <= before.passed:
        return verdict  # a test that always fails on the unchanged code decides
    if await _find_never_passing(failed, candidate, suite):
        return verdict
    if await rerun_flaky_tests(unproven, command, dict(suite.task.files), passes=False):
        return verdict
    outcomes = tuple(
        replace(outcome, status="passed", counterexample=None) if outcome.check_id in failed else outcome
        for outcome in verdict.outcomes
    )
    note = VerdictNote(code="flaky_tests", subjects=tuple(sorted(failed)))
    return replace(verdict, outcomes=outcomes, notes=(*verdict.notes, note))


async def reject_broken_flaky_tests(verdict: Verdict, candidate: Candidate, suite: Suite) -> Verdict:
    """Return a verdict in which flaky tests that decide nothing have failed if no run on the candidate passes them."""
    if suite.command is None or candidate.origin == "user" or verdict.failed:
        return verdict
    broken = await _find_never_passing(suite.flaky_tests, candidate, suite)
    outcomes = (
        CheckOutcome(check_id=test, status="failed", evidence=verdict.evidence) for test in sorted(broken)
    )
    return replace(verdict, outcomes=(*verdict.outcomes, *outcomes))


async def _find_never_passing(tests: Collection[str], candidate: Candidate, suite: Suite) -> frozenset[str]:
    """Return the tests that fail in all of a few runs on a candidate, with the packages that it asks for."""
    if not tests:
        return frozenset()
    equipped, files = await suite.install_packages(overlay_unprotected(candidate, suite))
    assert equipped.command is not None
    return await rerun_flaky_tests(tests, equipped.command, files, passes=True)


def overlay_unprotected(candidate: Candidate, suite: Suite) -> dict[str, bytes]:
    """Return the task's files with those files of a candidate that it may write."""
    protected = find_protected_files(candidate.files, suite)
    written = {path: text for path, text in candidate.files.items() if path not in protected}
    return overlay_candidate(suite.task.files, written)


def _list_flaky_in_trials(context: RunContext) -> frozenset[str]:
    """Return the tests that passed in the run on the unchanged code and failed in a trial of it."""
    search = last_payload(context.ledger.events, SearchFinished)
    disagreements = search.agreement.disagreeing_tests if search is not None else ()
    return frozenset(
        entry.test for entry in disagreements if (entry.run, entry.trial) == ("passed", "failed")
    )


def _load_baseline(context: RunContext) -> Verdict | None:
    """Return the verdict on the unchanged code, which is the first of a run."""
    checked = first_payload(context.ledger.events, CandidateChecked)
    is_baseline = checked is not None and checked.candidate == Candidate(files={}, origin="user").hash
    return context.candidates.load_verdict(checked.verdict) if checked is not None and is_baseline else None
