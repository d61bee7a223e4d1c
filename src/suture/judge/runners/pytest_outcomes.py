"""Turning a pytest report into outcomes, including those of tests that pytest never reached.

The *base report* is that of a run on the task's own files. What the user's own code does, such as skipping a
test or patching pytest, is legitimate; only what a candidate adds to it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, isabs
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Task, VerdictNote
from suture.judge.capabilities import find_file_capabilities
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
from suture.judge.runners.pytest_report import (
    LOST_FAILURE,
    OWN_REPORT,
    TEST_TEXT,
    Pair,
    PytestReport,
    make_test_outcome,
)
from suture.judge.runners.run_inputs import RunInputs
from suture.judge.tuning import LIMIT_TOLERANCE_S, MAX_MACHINERY_NAME_CHARS
from suture.project.workspace import DEFAULT_PROTECTED, decode_text, is_protected
from suture.sandbox import RunResult


def make_outcomes(report: PytestReport, result: RunResult, collected: CollectionResult) -> list[CheckOutcome]:
    """Return one outcome per test: first the tests that pytest began, then those that it should have run."""
    return [*_make_reported_outcomes(report, result), *_make_missing_outcomes(report, result, collected)]


def _make_reported_outcomes(report: PytestReport, result: RunResult) -> list[CheckOutcome]:
    outcomes = [make_test_outcome(test, phases) for test, phases in report.phases.items()]
    last = report.started[-1] if report.started else None
    if last is None or report.exit_code is not None:
        return outcomes
    # Pytest did not run to its end.
    if result.status == "timeout" and not _is_stuck(report, result):
        if last in report.phases:  # its outcome is among the others
            return outcomes
        return [*outcomes, CheckOutcome(check_id=last, status="missing", evidence="nonce")]
    # The last test that pytest started is to blame.
    status: CheckStatus = "timeout" if result.status == "timeout" else "error"
    if status == "timeout":
        fact = make_failure(last, "test_timeout", seconds=result.wall_s)
    else:
        fact = Counterexample(
            check_id=last, exception=render_run_ending(result), code=get_ending_code(result)
        )
    culprit = CheckOutcome(check_id=last, status=status, evidence="nonce", counterexample=fact)
    earlier = [outcome for outcome in outcomes if outcome.check_id != last]
    ended = [
        outcome
        for outcome in outcomes
        if outcome.check_id == last and outcome.status in ("passed", "failed", "skipped")
    ]
    return [*earlier, *(ended or [culprit])]


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
    is_stopped = result.status == "timeout" and report.exit_code is None
    return is_stopped and "missing" in statuses and "timeout" not in statuses


def make_notes(
    report: PytestReport, base: PytestReport, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> tuple[VerdictNote, ...]:
    """Return the notes on the run that a verdict rests on."""
    notes = [VerdictNote(code="shared_process")]
    if _is_unwatched(base):
        notes.append(VerdictNote(code="unwatched_processes"))
    if report.unreached:
        notes.append(VerdictNote(code="assert_not_reached", subjects=tuple(sorted(report.unreached))))
    if was_cut_off(report, result, outcomes):
        notes.append(VerdictNote(code="cut_off"))
    return tuple(notes)


def find_inconsistent_ending(
    command: str, result: RunResult, outcomes: Iterable[CheckOutcome]
) -> list[CheckOutcome]:
    """Return a failure of the whole command if its exit status is bad although no test failed."""
    if result.status == "ok" or any(outcome.status not in ("passed", "skipped") for outcome in outcomes):
        return []
    return [_fail_command(make_inconsistent_ending(command, result, call=command))]


def find_changed_input(
    command: str, result: RunResult, base: RunResult | None, inputs: RunInputs
) -> list[CheckOutcome]:
    """Return a failure of the whole command if code under test changed its tests or what they read."""
    fact = inputs.find_change(command, result, base)
    return [_fail_command(fact)] if fact is not None else []


def find_machinery_changes(
    command: str, report: PytestReport, base: PytestReport, is_test_file: Callable[[str], bool]
) -> list[CheckOutcome]:
    """Return a failure of the whole command if code under test changed the test machinery.

    Args:
        base: The report of the task's own files; the changes that these make are legitimate.
        is_test_file: Whether a file of the project is one that candidates may not write.
    """
    changes = (report.changed | report.changed_by_tests) - (base.changed | base.changed_by_tests)
    is_base_complete = (
        base.exit_code is not None and not base.uncollectable and {*base.items} <= {*base.started}
    )
    if not is_base_complete:
        # Tests that the base run never loaded may make changes of their own, so only the candidate's code counts.
        changes = frozenset(pair for pair in changes if _is_candidate_code(pair, report, is_test_file))
    if not base.early_modules:  # otherwise the project is itself a pytest plugin, which is loaded first
        changes |= report.early_modules
    names = {name for name, _ in changes}
    if not names:
        return []
    name = min(names)[:MAX_MACHINERY_NAME_CHARS]
    return [_fail_command(make_failure(command, "machinery_changed", call=command, name=name))]


def find_reached_code(
    command: str,
    report: PytestReport,
    base: PytestReport,
    files: Mapping[str, bytes],
    own_files: Mapping[str, bytes],
) -> list[CheckOutcome]:
    """Return a failure of the whole command if the candidate's code reached other code without showing it.

    A change with new capabilities in the same file is marked for them, and what the base run did is legitimate.

    Args:
        files: The candidate's files.
        own_files: The task's own files.
    """
    base_uses = {(what, basename(file)) for what, file in base.reached}
    reached = set(report.reached)
    if report.has_reruns and not base.has_reruns and not base.may_rerun:
        reached.add((OWN_REPORT, ""))  # nothing of the project repeats tests
    for what, file in sorted(reached):
        if (what, basename(file)) in base_uses:
            continue
        if what == LOST_FAILURE:
            fact = make_failure(command, "failure_lost", call=command, file=file)
        elif what == TEST_TEXT and _reads_sources(own_files.get(file, b"")):
            continue
        elif what in (OWN_REPORT, TEST_TEXT):
            fact = make_failure(command, "secret_reached", call=command, file=file, name=what)
        elif not _shows_use(what, file, files, own_files):
            fact = make_failure(command, "hidden_use", call=command, file=file, name=what)
        else:
            continue
        return [_fail_command(fact)]
    return []


SOURCE_READERS = (b"linecache", b"getsource", b"findsource", b"co_filename")
"""Words in files whose purpose includes reading source code, such as a tracer's."""


def _reads_sources(text: bytes) -> bool:
    return any(word in text for word in SOURCE_READERS)


WORDS_BY_USE = {
    "sys._getframe": ("_getframe", "inspect"),
    "code.__new__": ("CodeType", "replace"),
    "function.__new__": ("FunctionType", "LambdaType"),
    "exec": ("exec", "eval"),
    "compile": ("compile", "exec", "eval"),
}
"""Operation -> words; source that uses the operation by name contains one of them."""


def _shows_use(what: str, file: str, files: Mapping[str, bytes], own_files: Mapping[str, bytes]) -> bool:
    """Whether a file's source named an operation such as `gc.get_objects` before, or its change is marked for it."""
    if isabs(file) and what in ("exec", "compile"):
        return True  # tests write and run programs of their own
    module, _, name = what.rpartition(".")
    words = WORDS_BY_USE.get(what, (name, module) if module in ("ctypes", "gc", "marshal") else (name,))
    before, after = (decode_text(version.get(file, b"")) for version in (own_files, files))
    if any(word in before for word in words):
        return True
    return any(word in after for word in words) and bool(find_file_capabilities(file, before, after))


def _is_candidate_code(pair: Pair, report: PytestReport, is_test_file: Callable[[str], bool]) -> bool:
    """Whether the new value of a changed part comes from the candidate's code, as far as its file is known."""
    file = pair[1]
    if not file:  # tests undo their own patches, so what remained at the end counts
        return pair in report.changed
    return not isabs(file) and not is_test_file(file)


def needs_base_report(report: PytestReport) -> bool:
    """Whether anything in a report has to be compared with the report of the task's own files."""
    return bool(
        report.changed
        or report.changed_by_tests
        or report.reached
        or report.has_reruns
        or report.early_modules
        or _find_unconfirmed_tests(report)
    )


def reject_unconfirmed_passes(
    outcomes: Sequence[CheckOutcome], report: PytestReport, base: PytestReport
) -> list[CheckOutcome]:
    """Return the outcomes, with an error for each pass that another process reported and did not confirm.

    Args:
        outcomes: Of the candidate or of the task's own files.
        base: The report of the task's own files. If nothing watches their processes, nothing can confirm a
            pass.
    """
    unconfirmed = _find_unconfirmed_tests(report) if not _is_unwatched(base) else set[str]()

    def reject(outcome: CheckOutcome) -> CheckOutcome:
        if outcome.status not in ("passed", "skipped") or outcome.check_id not in unconfirmed:
            return outcome
        fact = make_failure(outcome.check_id, "unconfirmed_pass")
        return replace(outcome, status="error", counterexample=fact)

    return list(map(reject, outcomes))


def _is_unwatched(report: PytestReport) -> bool:
    """Whether tests ran in processes that the plugin did not reach."""
    return not report.others and bool(_find_unconfirmed_tests(report))


def _find_unconfirmed_tests(report: PytestReport) -> set[str]:
    """Return the tests that ran outside pytest's main process and whose result no other process confirms."""
    confirmed = {
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
        if (test, phase["when"], phase["outcome"]) not in confirmed
    }


def _fail_command(fact: Counterexample) -> CheckOutcome:
    return CheckOutcome(check_id=fact.check_id, status="error", evidence="nonce", counterexample=fact)


def _make_missing_outcomes(
    report: PytestReport, result: RunResult, collected: CollectionResult
) -> list[CheckOutcome]:
    started = set(report.phases) | set(report.started)
    functions = {test.partition("[")[0] for test in started}
    files = {test.partition("::")[0] for test in started}
    # An id that was found by parsing has no parameters, and may be just a file.
    done = {*started, *functions, *files}
    tests = [test for test in (*collected.all_ids, *collected.unimportable_examples) if test not in done]
    deselected = {test.partition("[")[0] for test in report.deselected} & set(collected.parsed_ids)
    missing = [test for test in tests if test not in deselected]
    missing_files = {test.partition("::")[0] for test in missing}
    errors = {path: _find_collection_error(path, report, result) for path in missing_files}
    outcomes: list[CheckOutcome] = []
    for test in missing:
        error = errors[test.partition("::")[0]]
        fact = parse_collection_error(test, error) if error else None
        if fact is None and not outcomes:  # one fact is enough, because it is the same for all of them
            fact = make_failure(test, "not_run", ending=render_run_ending(result))
        status: CheckStatus = "error" if error else "missing"
        outcomes.append(CheckOutcome(check_id=test, status=status, evidence="nonce", counterexample=fact))
    return outcomes


def _find_collection_error(path: str, report: PytestReport, result: RunResult) -> str:
    """Return what pytest printed about a file, about a folder around it, or before it reached any file."""
    errors = [text for folder, text in report.uncollectable.items() if is_in_folder(path, folder)]
    if errors or report.items or report.exit_code is not None:
        return report.uncollectable.get(path, errors[0] if errors else "").strip()
    output = decode_output(result)
    return output.strip() if any(line.startswith("E ") for line in output.splitlines()) else ""


SKIP_WORDS = ("skip", "xfail", "expectedfailure")
"""Words; all source that skips a test contains one of them."""
EMPTY_PARAMETERS = "[NOTSET]"
"""How pytest names the test of an empty parameter list."""


def judge_skip(outcome: CheckOutcome, report: PytestReport, base: PytestReport, task: Task) -> CheckOutcome:
    """Return a skipped test's outcome: a failure unless the task's own files would skip the test too.

    Args:
        outcome: An outcome of a candidate; an expected failure counts as skipped.
        base: The report of the same run on the task's own files.
    """
    phases = report.phases.get(outcome.check_id, [])
    if outcome.status != "skipped" or _is_skipped_at_base(outcome.check_id, phases, base, task):
        return outcome
    facts = (phase["fact"] for phase in phases if phase["outcome"] == "skipped" and phase.get("fact"))
    fact: dict[str, Any] = next(facts, {})
    counterexample = Counterexample(
        check_id=outcome.check_id,
        call=" ".join(str(fact.get("statement", "")).split()),
        exception=f"{render_failure('skipped_by_code')}: {fact.get('text', '')}".rstrip(": "),
        file=str(fact.get("file", "")),
        line=fact.get("line"),
        code="skipped_by_code",
    )
    return replace(outcome, status="failed", counterexample=counterexample)


def _is_skipped_at_base(
    test: str, phases: Sequence[Mapping[str, Any]], base: PytestReport, task: Task
) -> bool:
    """Whether the task's own files would skip a test that the candidate's run skipped."""
    base_phases = base.phases.get(test, ())
    if base_phases or test in base.started:
        expects_failure = all(
            any(phase.get("xfail") for phase in run_phases) for run_phases in (base_phases, phases)
        )
        # A test marked as an expected failure may also have passed before, and decides nothing either way.
        was_skipped = make_test_outcome(test, base_phases).status == "skipped"
        # Anything that runs during a test can call `pytest.xfail`.
        calls_xfail = any((phase.get("fact") or {}).get("type") == "XFailed" for phase in phases)
        return was_skipped or (expects_failure and not calls_xfail)
    if test.endswith(EMPTY_PARAMETERS):  # pytest skips it by itself, so the source need not mention skipping
        return False
    # The base run never reached this test, so its source decides: it or a conftest.py has to mention skipping.
    protected = task.protected or DEFAULT_PROTECTED
    for phase in phases:
        fact = phase.get("fact") or {}
        file = fact.get("file")
        if phase.get("xfail") and fact.get("type") != "XFailed":
            continue  # a mark of the test expects this failure, wherever it comes from
        if phase["outcome"] == "skipped" and file and not is_protected(file, protected):
            return False
    test_file = test.partition("::")[0]
    texts = (
        decode_text(content).lower()
        for path, content in task.files.items()
        if path == test_file or basename(path) == "conftest.py"
    )
    return any(word in text for text in texts for word in SKIP_WORDS)


def judge_examples(
    outcomes: Sequence[CheckOutcome],
    report: PytestReport,
    collected: CollectionResult,
    files: Mapping[str, bytes],
) -> list[CheckOutcome]:
    """Return the outcomes after failing each docstring's test whose examples the candidate changed."""
    judged = []
    for outcome in outcomes:
        examples = collected.examples.get(outcome.check_id)
        # Additional examples at the end are harmless, because a test runs its examples in order.
        is_unchanged = (
            examples is None or report.examples.get(outcome.check_id, [])[: len(examples)] == examples
        )
        keep = is_unchanged or outcome.status == "missing"
        judged.append(outcome if keep else _fail_changed_example(outcome))
    reported = {outcome.check_id for outcome in outcomes}
    for path, file_examples in collected.unimportable_examples.items():
        if path in reported:
            continue
        candidate_examples = iter(find_written_examples(decode_text(files.get(path, b""))))
        # `in` consumes the iterator, so the order counts.
        if not all(example in candidate_examples for example in file_examples):
            outcome = CheckOutcome(check_id=path, status="failed", evidence="nonce")
            judged.append(_fail_changed_example(outcome))
    return judged


def _fail_changed_example(outcome: CheckOutcome) -> CheckOutcome:
    file = outcome.check_id.partition("::")[0]
    fact = make_failure(outcome.check_id, "example_changed", file=file)
    return replace(outcome, status="failed", counterexample=fact)
