"""What a run of pytest says about each test, also about those that it never got to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from posixpath import isabs

from suture.core.records import CheckOutcome, CheckStatus, Counterexample
from suture.judge.failures import CUT_OFF, collect_fault, render_run_ending, decode_output
from suture.judge.runners.collection import Collected
from suture.judge.runners.pytest_report import Pair, PytestReport, outcome_of
from suture.judge.runners.written_tests import within
from suture.sandbox import RunResult

MOST_CHARS = 200
"""Of the name of something that code under test made."""
GRACE_S = 0.5
"""Seconds by which the run may end before the limit of its only test: both are then all the time there is."""

IN_PROCESS = "pytest ran in the candidate's own process: code that forges the signed report is not ruled out"
UNWATCHED = "tests ran in processes of their own, where nothing sees what the candidate changes in pytest"


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
    why = f"no end within {result.wall_s:.3g} s" if status == "timeout" else render_run_ending(result)
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


def notes_on(
    report: PytestReport, base: PytestReport, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> tuple[str, ...]:
    """What a verdict has to say of the run that it rests on."""
    said = (
        *((IN_PROCESS, True), (UNWATCHED, _is_unwatched(base))),
        (CUT_OFF, is_cut_off(report, result, outcomes)),
    )
    return tuple(note for note, holds in said if holds)


def where_they_disagree(
    shown: str, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> list[CheckOutcome]:
    """A failure of the whole command where it ended badly though no test failed."""
    if result.status == "ok" or any(o.status not in ("passed", "skipped") for o in outcomes):
        return []
    return [_of_the_whole(shown, f"{render_run_ending(result)} though no test failed")]


def where_changed(
    shown: str, report: PytestReport, base: PytestReport, is_tests: Callable[[str], bool]
) -> list[CheckOutcome]:
    """A failure of the whole command where code under test changed what decides whether a test passed.

    Args:
        shown: The command.
        report: Of a candidate.
        base: Of the task's own files: what these change is their business.
        is_tests: Whether a file of the project is one that no candidate writes.
    """
    own = base.changed | base.meanwhile
    new = {*report.changed, *report.meanwhile} - own
    # Of tests that were not loaded then, or not begun, nobody knows what they, or what they import, change.
    if base.exit_code is None or base.uncollectable or not {*base.items} <= {*base.started}:
        new = {pair for pair in new if _is_codes(pair, report, is_tests)}
    if not base.early:  # else the project is a plugin of pytest's, and is loaded first
        new |= report.early
    names = {name for name, _ in new}
    return [_of_the_whole(shown, f"the code under test changed {min(names)[:MOST_CHARS]}")] if names else []


def _is_codes(pair: Pair, report: PytestReport, is_tests: Callable[[str], bool]) -> bool:
    file = pair[1]
    return not (isabs(file) or is_tests(file)) if file else pair in report.changed


def is_odd(report: PytestReport) -> bool:
    """Whether anything in a report has to be compared with that of the task's own files."""
    return bool(report.changed or report.meanwhile or report.early or _unvouched(report))


def where_unvouched(outcome: CheckOutcome, report: PytestReport, base: PytestReport) -> CheckOutcome:
    """An outcome; a pass is none that another process had, and did not vouch for.

    Args:
        outcome: Of a candidate, or of the task's own files.
        report: That run.
        base: Of the task's own files: where nothing watches their processes, nothing can vouch.
    """
    if outcome.status not in ("passed", "skipped") or _is_unwatched(base):
        return outcome
    if outcome.check_id not in _unvouched(report):
        return outcome
    why = "another process ran it, and did not vouch for it"
    fact = Counterexample(check_id=outcome.check_id, exception=why)
    return replace(outcome, status="error", counterexample=fact)


def _is_unwatched(report: PytestReport) -> bool:
    """Whether tests ran in processes that our plugin did not come to."""
    return not report.others and bool(_unvouched(report))


def _unvouched(report: PytestReport) -> set[str]:
    """Tests that did not run in pytest's own process, and that no other says it ran to the same end."""
    ended = {
        (test, phase["when"], phase["outcome"])
        for other in report.others.values()
        if other.exit_code is not None or report.exit_code != 0  # some are ended with their test
        for test, phases in other.phases.items()
        for phase in phases
    }
    return {
        test
        for test, phases in report.phases.items()
        for phase in phases
        if not phase.get("here", True) and phase["outcome"] != "failed"
        if (test, phase["when"], phase["outcome"]) not in ended
    }


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
            fact = Counterexample(check_id=test, exception=f"pytest never ran it ({render_run_ending(result)})")
        status: CheckStatus = "error" if complaint else "missing"
        outcomes.append(CheckOutcome(check_id=test, status=status, evidence="nonce", counterexample=fact))
    return outcomes


def _complaint_about(path: str, report: PytestReport, result: RunResult) -> str:
    """What pytest said about a file, about a folder that it lies in, or before it got to any file."""
    about = [text for place, text in report.uncollectable.items() if within(path, place)]
    if about or report.items or report.exit_code is not None:
        return report.uncollectable.get(path, about[0] if about else "").strip()
    said = decode_output(result)
    return said.strip() if any(line.startswith("E ") for line in said.splitlines()) else ""
