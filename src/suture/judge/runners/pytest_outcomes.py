"""Turning a pytest report into outcomes, including tests that pytest never reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, isabs
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Task, VerdictNote
from suture.judge.failures import (
    decode_output,
    get_ending_code,
    make_failure,
    make_inconsistent_ending,
    parse_collection_error,
    render_failure,
    render_run_ending,
)
from suture.judge.runners.collection import CollectionResult, find_written_examples, is_in_folder
from suture.judge.runners.pytest_report import Pair, PytestReport, make_test_outcome
from suture.judge.tuning import LIMIT_TOLERANCE_S, MAX_MACHINERY_NAME_CHARS
from suture.project.workspace import DEFAULT_PROTECTED, decode_text, is_protected
from suture.sandbox import RunResult


def make_outcomes(report: PytestReport, result: RunResult, collected: CollectionResult) -> list[CheckOutcome]:
    """Return one outcome per test: first the tests that pytest began, then those that it should have run.

    Args:
        report: The report of the run.
        result: How pytest ended.
        collected: The tests of the task.
    """
    return [*_reported(report, result), *_missing(report, result, collected)]


def _reported(report: PytestReport, result: RunResult) -> list[CheckOutcome]:
    outcomes = [make_test_outcome(test, phases) for test, phases in report.phases.items()]
    last = report.started[-1] if report.started else None
    if last is None or report.exit_code is not None:
        return outcomes
    if result.status == "timeout" and not _is_stuck(report, result):
        if last in report.phases:
            return outcomes
        return [*outcomes, CheckOutcome(check_id=last, status="missing", evidence="nonce")]
    # Pytest did not come to its end, so the last test that it started is to blame.
    status: CheckStatus = "timeout" if result.status == "timeout" else "error"
    if status == "timeout":
        fact = make_failure(last, "test_timeout", seconds=result.wall_s)
    else:
        fact = Counterexample(
            check_id=last, exception=render_run_ending(result), code=get_ending_code(result)
        )
    culprit = CheckOutcome(check_id=last, status=status, evidence="nonce", counterexample=fact)
    before = [outcome for outcome in outcomes if outcome.check_id != last]
    own = [o for o in outcomes if o.check_id == last and o.status in ("passed", "failed", "skipped")]
    return [*before, *(own or [culprit])]


def _is_stuck(report: PytestReport, result: RunResult) -> bool:
    """Whether the last test used up all the time that it was allowed, and nothing stopped it.

    Otherwise it is only the test that happened to run when a long suite reached the time limit.
    """
    return (
        not report.last_limit_s
        or result.wall_s - report.last_used_s > report.last_limit_s - LIMIT_TOLERANCE_S
    )


def was_cut_off(report: PytestReport, result: RunResult, outcomes: Iterable[CheckOutcome]) -> bool:
    """Whether the time limit ended the run before all tests had run, and no single test is to blame."""
    statuses = {outcome.status for outcome in outcomes}
    cut = result.status == "timeout" and report.exit_code is None
    return cut and "missing" in statuses and "timeout" not in statuses


def make_notes(
    report: PytestReport, base: PytestReport, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> tuple[VerdictNote, ...]:
    """Return the notes on the run that a verdict rests on."""
    notes = [VerdictNote(code="shared_process")]
    if _is_unwatched(base):
        notes.append(VerdictNote(code="unwatched_processes"))
    if was_cut_off(report, result, outcomes):
        notes.append(VerdictNote(code="cut_off"))
    return tuple(notes)


def find_inconsistent_ending(
    shown: str, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> list[CheckOutcome]:
    """Return a failure of the whole command if its exit status is bad although no test failed."""
    if result.status == "ok" or any(o.status not in ("passed", "skipped") for o in outcomes):
        return []
    return [_fail_whole(make_inconsistent_ending(shown, result, call=shown))]


def find_machinery_changes(
    shown: str, report: PytestReport, base: PytestReport, is_tests: Callable[[str], bool]
) -> list[CheckOutcome]:
    """Return a failure of the whole command if code under test changed the test machinery.

    Args:
        shown: The command as text.
        report: The report of the candidate's run.
        base: The report of the task's own files; the changes that these make are legitimate.
        is_tests: Whether a file of the project is one that candidates may not write.
    """
    own = base.changed | base.meanwhile
    new = {*report.changed, *report.meanwhile} - own
    # What tests change that the base run never loaded is unknown, so only the candidate's code counts.
    if base.exit_code is None or base.uncollectable or not {*base.items} <= {*base.started}:
        new = {pair for pair in new if _is_candidate_code(pair, report, is_tests)}
    if not base.early:  # otherwise the project is itself a pytest plugin, which is loaded first
        new |= report.early
    names = {name for name, _ in new}
    if not names:
        return []
    return [
        _fail_whole(
            make_failure(shown, "machinery_changed", call=shown, name=min(names)[:MAX_MACHINERY_NAME_CHARS])
        )
    ]


def _is_candidate_code(pair: Pair, report: PytestReport, is_tests: Callable[[str], bool]) -> bool:
    file = pair[1]
    return not (isabs(file) or is_tests(file)) if file else pair in report.changed


def needs_base_report(report: PytestReport) -> bool:
    """Whether anything in a report has to be compared with the report of the task's own files."""
    return bool(report.changed or report.meanwhile or report.early or _unconfirmed_tests(report))


def reject_unconfirmed_pass(outcome: CheckOutcome, report: PytestReport, base: PytestReport) -> CheckOutcome:
    """Return the outcome, or an error if another process reported the pass and did not confirm it.

    Args:
        outcome: An outcome of the candidate or of the task's own files.
        report: The report of that run.
        base: The report of the task's own files. If nothing watches their processes, nothing can confirm a
            pass.
    """
    if outcome.status not in ("passed", "skipped") or _is_unwatched(base):
        return outcome
    if outcome.check_id not in _unconfirmed_tests(report):
        return outcome
    fact = make_failure(outcome.check_id, "unconfirmed_pass")
    return replace(outcome, status="error", counterexample=fact)


def _is_unwatched(report: PytestReport) -> bool:
    """Whether tests ran in processes that the plugin did not reach."""
    return not report.others and bool(_unconfirmed_tests(report))


def _unconfirmed_tests(report: PytestReport) -> set[str]:
    """Return the tests that ran outside pytest's main process and whose result no other process confirms."""
    ended = {
        (test, phase["when"], phase["outcome"])
        for other in report.others.values()
        if other.exit_code is not None or report.exit_code != 0  # some processes die with their test
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


def _fail_whole(fact: Counterexample) -> CheckOutcome:
    return CheckOutcome(check_id=fact.check_id, status="error", evidence="nonce", counterexample=fact)


def _missing(report: PytestReport, result: RunResult, collected: CollectionResult) -> list[CheckOutcome]:
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
        error = _find_collection_error(test.partition("::")[0], report, result)
        fact = parse_collection_error(test, error) if error else None
        if fact is None and not outcomes:  # one fact is enough, because it is the same for all of them
            fact = make_failure(test, "not_run", ending=render_run_ending(result))
        status: CheckStatus = "error" if error else "missing"
        outcomes.append(CheckOutcome(check_id=test, status=status, evidence="nonce", counterexample=fact))
    return outcomes


def _find_collection_error(path: str, report: PytestReport, result: RunResult) -> str:
    """Return what pytest printed about a file, about a folder around it, or before it reached any file."""
    about = [text for place, text in report.uncollectable.items() if is_in_folder(path, place)]
    if about or report.items or report.exit_code is not None:
        return report.uncollectable.get(path, about[0] if about else "").strip()
    output = decode_output(result)
    return output.strip() if any(line.startswith("E ") for line in output.splitlines()) else ""


SKIP_WORDS = ("skip", "xfail", "expectedfailure")
EMPTY_PARAMETERS = "[NOTSET]"
"""How pytest names the test of an empty parameter list."""


def judge_skip(outcome: CheckOutcome, report: PytestReport, base: PytestReport, task: Task) -> CheckOutcome:
    """Return a skipped test's outcome: a failure unless the task's own files would skip the test too.

    Args:
        outcome: An outcome of a candidate; an expected failure counts as skipped.
        report: The report of the candidate's run.
        base: The report of the same run on the task's own files.
        task: The task.
    """
    phases = report.phases.get(outcome.check_id, [])
    if outcome.status != "skipped" or _is_own_skip(outcome.check_id, phases, base, task):
        return outcome
    fact: dict[str, Any] = next(
        (p["fact"] for p in phases if p["outcome"] == "skipped" and p.get("fact")), {}
    )
    counterexample = Counterexample(
        check_id=outcome.check_id,
        call=" ".join(str(fact.get("statement", "")).split()),
        exception=f"{render_failure('skipped_by_code')}: {fact.get('text', '')}".rstrip(": "),
        file=str(fact.get("file", "")),
        line=fact.get("line"),
        code="skipped_by_code",
    )
    return replace(outcome, status="failed", counterexample=counterexample)


def _is_own_skip(test: str, phases: Sequence[Mapping[str, Any]], base: PytestReport, task: Task) -> bool:
    before = base.phases.get(test)
    if before:
        expected = any(phase.get("xfail") for phase in before) and any(p.get("xfail") for p in phases)
        # A test marked as an expected failure may also have passed before, and decides nothing either way.
        return make_test_outcome(test, before).status == "skipped" or (expected and not _calls_xfail(phases))
    if test.endswith(EMPTY_PARAMETERS):
        return False
    # The base run never reached this test, so its text decides: some test has to mention skipping.
    globs = task.protected or DEFAULT_PROTECTED
    for phase in phases:
        file = (phase.get("fact") or {}).get("file")
        if phase["outcome"] == "skipped" and file and not is_protected(file, globs):
            return False
    own = test.partition("::")[0]
    texts = (
        decode_text(c).lower() for p, c in task.files.items() if p == own or basename(p) == "conftest.py"
    )
    return any(word in text for text in texts for word in SKIP_WORDS)


def _calls_xfail(phases: Sequence[Mapping[str, Any]]) -> bool:
    return any((phase.get("fact") or {}).get("type") == "XFailed" for phase in phases)


def judge_examples(
    outcomes: Sequence[CheckOutcome],
    report: PytestReport,
    collected: CollectionResult,
    files: Mapping[str, bytes],
) -> list[CheckOutcome]:
    """Return the outcomes, in which a docstring's test counts only with the examples of the task's own files.

    Args:
        outcomes: The outcomes of a candidate.
        report: The report of the candidate's run.
        collected: The tests of the task.
        files: The candidate's project files.
    """
    judged = []
    for outcome in outcomes:
        wanted = collected.examples.get(outcome.check_id)
        # Additional examples after the given ones are harmless, because a test runs its examples in order.
        is_unchanged = wanted is None or report.examples.get(outcome.check_id, [])[: len(wanted)] == wanted
        judged.append(
            outcome if is_unchanged or outcome.status == "missing" else _fail_changed_example(outcome)
        )
    reported = {outcome.check_id for outcome in outcomes}
    for path, examples in collected.torn.items():
        if path in reported:
            continue
        found = iter(find_written_examples(decode_text(files.get(path, b""))))
        if not all(example in found for example in examples):  # consumes the iterator, so the order counts
            judged.append(
                _fail_changed_example(CheckOutcome(check_id=path, status="failed", evidence="nonce"))
            )
    return judged


def _fail_changed_example(outcome: CheckOutcome) -> CheckOutcome:
    file = outcome.check_id.partition("::")[0]
    fact = make_failure(outcome.check_id, "example_changed", file=file)
    return replace(outcome, status="failed", counterexample=fact)
