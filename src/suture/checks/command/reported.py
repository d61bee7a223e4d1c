"""What a run of pytest says about each test, also about those that it never got to."""

from __future__ import annotations

from collections.abc import Iterable

from suture.checks.command.collecting import Collected
from suture.checks.command.endings import collect_fault, ending_of, output_of
from suture.checks.command.pytest_report import PytestReport, outcome_of
from suture.checks.command.written_tests import within
from suture.records import CheckOutcome, CheckStatus, Counterexample
from suture.sandbox import RunResult

MOST_CHARS = 200
"""Of the name of something that code under test made."""
GRACE_S = 0.5
"""Seconds by which the run may end before the limit of its only test: both are then all the time there is."""


def outcomes_of(report: PytestReport, result: RunResult, collected: Collected) -> list[CheckOutcome]:
    """One outcome for each test: first those that pytest began, then those that it should have run.

    Args:
        report: What was reported.
        result: How pytest ended.
        collected: The tests of the task.
    """
    return [*_reported(report, result), *_missing(report, result, collected)]


def _reported(report: PytestReport, result: RunResult) -> list[CheckOutcome]:
    outcomes = [outcome_of(test, phases) for test, phases in report.phases.items()]
    last = report.started[-1] if report.started else None
    if last is None or report.exit_code is not None:
        return outcomes
    if result.status == "timeout" and not _is_stuck(report, result):
        if last in report.phases:
            return outcomes
        return [*outcomes, CheckOutcome(check_id=last, status="missing", evidence="nonce")]
    # Pytest did not get to its end: the test that ran then is what ended it.
    status: CheckStatus = "timeout" if result.status == "timeout" else "error"
    why = f"no end within {result.wall_s:.3g} s" if status == "timeout" else ending_of(result)
    culprit = CheckOutcome(
        check_id=last,
        status=status,
        evidence="nonce",
        counterexample=Counterexample(check_id=last, exception=why),
    )
    before = [outcome for outcome in outcomes if outcome.check_id != last]
    own = [o for o in outcomes if o.check_id == last and o.status in ("passed", "failed", "skipped")]
    return [*before, *(own or [culprit])]


def _is_stuck(report: PytestReport, result: RunResult) -> bool:
    """Whether the test that ran when the time was up had all of it that it could take, and was not stopped.

    Any other is only the one that ran then, in a suite that takes longer.
    """
    return not report.last_limit_s or result.wall_s - report.last_used_s > report.last_limit_s - GRACE_S


def is_cut_off(report: PytestReport, result: RunResult, outcomes: Iterable[CheckOutcome]) -> bool:
    """Whether the time was up before all tests had run, and no test is to blame for it."""
    statuses = {outcome.status for outcome in outcomes}
    cut = result.status == "timeout" and report.exit_code is None
    return cut and "missing" in statuses and "timeout" not in statuses


def where_they_disagree(
    shown: str, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> list[CheckOutcome]:
    """A failure of the whole command where it ended badly though no test failed."""
    if result.status == "ok" or any(o.status not in ("passed", "skipped") for o in outcomes):
        return []
    return [_of_the_whole(shown, f"{ending_of(result)} though no test failed")]


def where_changed(shown: str, report: PytestReport, base: PytestReport) -> list[CheckOutcome]:
    """A failure of the whole command where code under test changed what decides whether a test passed.

    Args:
        shown: The command.
        report: Of a candidate.
        base: Of the task's own files: what these change is their business.
    """
    # Of tests that were not loaded then, or not begun, nobody knows what they, or what they import, change.
    begun = {*base.items} <= {*base.started}
    was_whole = base.exit_code is not None and not base.uncollectable and begun
    names = {*(report.changed if was_whole else report.changed_by_code)} - {*base.changed}
    return [_of_the_whole(shown, f"the code under test changed {min(names)[:MOST_CHARS]}")] if names else []


def _of_the_whole(shown: str, why: str) -> CheckOutcome:
    fact = Counterexample(check_id=shown, call=shown, exception=why)
    return CheckOutcome(check_id=shown, status="error", evidence="nonce", counterexample=fact)


def _missing(report: PytestReport, result: RunResult, collected: Collected) -> list[CheckOutcome]:
    seen = set(report.phases) | set(report.started)
    plain = {test.partition("[")[0] for test in seen}
    files = {test.partition("::")[0] for test in seen}
    done = {*seen, *plain, *files}
    tests = [t for t in collected.all_ids if t not in done] + [
        path for path in collected.torn if path not in done
    ]
    left_out = {test.partition("[")[0] for test in report.deselected} & set(collected.written)
    missing = [test for test in tests if test not in left_out]
    outcomes: list[CheckOutcome] = []
    for test in missing:
        complaint = _complaint_about(test.partition("::")[0], report, result)
        fact = collect_fault(test, complaint) if complaint else None
        if fact is None and not outcomes:  # one fact is enough: it is the same for all of them
            fact = Counterexample(check_id=test, exception=f"pytest never ran it ({ending_of(result)})")
        status: CheckStatus = "error" if complaint else "missing"
        outcomes.append(CheckOutcome(check_id=test, status=status, evidence="nonce", counterexample=fact))
    return outcomes


def _complaint_about(path: str, report: PytestReport, result: RunResult) -> str:
    """What pytest said about a file, about a folder that it lies in, or before it got to any file."""
    about = [text for place, text in report.uncollectable.items() if within(path, place)]
    if about or report.items or report.exit_code is not None:
        return report.uncollectable.get(path, about[0] if about else "").strip()
    said = output_of(result)
    return said.strip() if any(line.startswith("E ") for line in said.splitlines()) else ""
