"""Tests that fail now and then whatever the code is: they do not decide about a candidate.

Such a test is proven, not guessed: it has failed and passed on the unchanged code, and it passes on the candidate
when it runs again there.
"""

from __future__ import annotations

from dataclasses import replace

from suture.core.ledger import first_payload, last_payload
from suture.core.ledger.kinds import CandidateChecked, FlakyTestsInvestigated, SearchFinished, TriageFinished
from suture.core.records import Candidate, Verdict, VerdictNote
from suture.judge import Suite, find_protected_files
from suture.judge.runners.test_command import TestCommand
from suture.judge.triage import NEW_HASH_SEED
from suture.loop.context import RunContext
from suture.loop.tuning import MAX_FLAKY_RERUNS, MAX_FLAKY_SHARE
from suture.project.workspace import overlay_candidate


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
    flaky = _list_flaky_tests(context)
    before = _load_baseline(context)
    unproven = failed - flaky
    if before is None or not unproven <= before.passed:
        return verdict  # a test that always fails on the unchanged code decides
    if not await _ends_as(failed, command, overlay_unprotected(candidate, suite), passes=True):
        return verdict
    if unproven and not await _ends_as(unproven, command, dict(suite.task.files), passes=False):
        return verdict
    outcomes = tuple(
        replace(outcome, status="passed", counterexample=None) if outcome.check_id in failed else outcome
        for outcome in verdict.outcomes
    )
    note = VerdictNote(code="flaky_tests", subjects=tuple(sorted(failed)))
    return replace(verdict, outcomes=outcomes, notes=(*verdict.notes, note))


def overlay_unprotected(candidate: Candidate, suite: Suite) -> dict[str, bytes]:
    """Return the task's files with those files of a candidate that it may write."""
    protected = find_protected_files(candidate.files, suite)
    written = {path: text for path, text in candidate.files.items() if path not in protected}
    return overlay_candidate(suite.task.files, written)


def _list_flaky_tests(context: RunContext) -> frozenset[str]:
    """Return the tests that failed and passed on the unchanged code: in triage, or in the run and in a trial."""
    triage = last_payload(context.ledger.events, TriageFinished)
    search = last_payload(context.ledger.events, SearchFinished)
    failures = triage.non_code_failures if triage is not None else ()
    disagreements = search.agreement.disagreeing_tests if search is not None else ()
    in_trials = (entry.test for entry in disagreements if (entry.run, entry.trial) == ("passed", "failed"))
    return frozenset((*(failure.test for failure in failures if failure.cause == "flaky"), *in_trials))


def _load_baseline(context: RunContext) -> Verdict | None:
    """Return the verdict on the unchanged code, which is the first of a run."""
    checked = first_payload(context.ledger.events, CandidateChecked)
    is_baseline = checked is not None and checked.candidate == Candidate(files={}, origin="user").hash
    return context.candidates.load_verdict(checked.verdict) if checked is not None and is_baseline else None


async def _ends_as(
    tests: frozenset[str], command: TestCommand, files: dict[str, bytes], *, passes: bool
) -> bool:
    """Return whether each of some tests passes, or fails, in at least one of a few further runs."""
    waiting = tests
    for _ in range(MAX_FLAKY_RERUNS):
        outcomes = await command.run_selected(files, waiting, addition=NEW_HASH_SEED)
        waiting -= {outcome.check_id for outcome in outcomes if outcome.passed == passes}
        if not waiting:
            return True
    return False
