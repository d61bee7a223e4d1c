"""Findings about the tests of a change: those that it weakens, and those that show nothing.

A weakened test matters if its old version fails on the new code. Then the change alters the test instead of the code
(the old version failed before, too), or it hides what it breaks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from suture.core.records import Verdict
from suture.core.records.judgement import ChangeFinding, ComparedTests, FindingCode, FindingSeverity
from suture.judge.test_changes import TestChange, TestFileChanges, compare_tests
from suture.judge.triage.environment_faults import lacks_requirement
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.changed_functions import find_dropped_names
from suture.loop.judgement.test_runs import TestRuns, select_ids
from suture.project.languages import detect_file_languages

MISSING_NAMES = ("ImportError", "ModuleNotFoundError", "AttributeError", "NameError", "ReferenceError")
"""Exceptions of an old test whose subject the change has removed."""
WORD = re.compile(r"[\w$]+")
CONDITIONAL_SKIP = re.compile(r"skip_?(?:if|unless)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class TestSources:
    """What a change does to the sources of the tests.

    Attributes:
        files: Path -> the changes of its tests.
        paths: The changed files that are tests, or serve only tests, in any language; `conftest.py` comes first.
        dropped_names: What the changed code no longer defines.
    """

    __test__ = False  # keeps pytest from collecting this class

    files: Mapping[str, TestFileChanges]
    paths: tuple[str, ...] = ()
    dropped_names: frozenset[str] = frozenset()

    def changed_ids(self, verdict: Verdict) -> frozenset[str]:
        """Return the ids of the tests in a verdict that are new or have another source than before."""
        ids = [outcome.check_id for outcome in verdict.outcomes]
        return frozenset(
            name
            for path, file in self.files.items()
            for test in (*file.new_tests, *file.changed_tests)
            for name in select_ids(path, test, ids)
        )

    def new_ids(self, ids: Iterable[str]) -> frozenset[str]:
        """Return those of some ids that belong to new tests."""
        known = tuple(ids)
        return frozenset(
            name
            for path, file in self.files.items()
            for test in file.new_tests
            for name in select_ids(path, test, known)
        )

    def find_moved(self, path: str, verdict: Verdict) -> frozenset[str]:
        """Return the removed tests of a file that run at another place, by a verdict."""
        ran = [outcome.check_id for outcome in verdict.outcomes if outcome.status in ("passed", "failed")]
        moved = self.files[path].moved_tests.items()
        return frozenset(test for test, (place, name) in moved if select_ids(place, name, ran))


def read_test_sources(change: ProposedChange) -> TestSources:
    """Return what a change does to the tests whose language is known."""
    paths = [path for path in change.test_files if detect_file_languages((path,))]
    return TestSources(
        files=compare_tests(
            {path: change.old_text(path) for path in paths}, {path: change.new_text(path) for path in paths}
        ),
        paths=tuple(sorted(change.test_files, key=lambda path: posixpath.basename(path) != "conftest.py")),
        dropped_names=find_dropped_names(change),
    )


def find_test_findings(sources: TestSources, runs: TestRuns, tests: ComparedTests) -> Iterator[ChangeFinding]:
    """Yield the findings about the tests of a change."""
    before_ids = [outcome.check_id for outcome in runs.before.outcomes]
    weakened: set[str] = set()
    explained: set[str] = set()
    for path, file in sources.files.items():
        moved = sources.find_moved(path, runs.after)
        explained |= {name for test in moved for name in select_ids(path, test, before_ids)}
        for test_change in file.changes:
            if test_change.code == "test_removed" and test_change.test in moved:
                continue
            yield _judge_test_change(test_change, runs, sources.dropped_names)
            weakened |= _ids_of(test_change, runs.before) if test_change.weakens else set()
            explained |= (
                _ids_of(test_change, runs.before) if test_change.code == "expectation_changed" else set()
            )
    explained |= weakened
    for test in tests.newly_failing:
        yield ChangeFinding(code="test_newly_fails", severity="reject", test=test)
    # Another expectation gives a case of a table another id, but it does not skip the test.
    for test in sorted({*tests.removed} - explained | {*tests.skipped} - weakened):
        yield _judge_lost_test(test, runs)
    for test in _find_replaced_expectations(runs, tests, explained):
        yield ChangeFinding(
            code="expectation_follows_code",
            severity="reject",
            path=next(iter(sources.paths), ""),
            test=test,
            detail="test_support_changed",
            names=sources.paths,
        )
    for test in _find_moved_goals(runs, tests, explained):
        yield ChangeFinding(
            code="failing_test_weakened", severity="reject", test=test, detail="test_support_changed"
        )
    supported = _find_supported_tests(runs, tests, explained)
    if supported:
        # A helper that asserts less hides what its tests would have shown.
        loosens_helper = any(
            change.weakens and not change.test for file in sources.files.values() for change in file.changes
        )
        yield ChangeFinding(
            code="test_support_changed",
            severity="reject" if loosens_helper else "remark",
            test=supported[0],
            names=supported,
            count=len(supported),
        )
    # A further test in addition to one that proves the change, or without any change of the code, needs to prove
    # nothing.
    severity: FindingSeverity = "remark" if runs.code and not tests.proving else "note"
    for test in sorted(sources.new_ids(tests.unproving)):
        yield ChangeFinding(code="test_proves_nothing", severity=severity, test=test)
    for test in _find_tests_without_assertion(runs, tests):
        yield ChangeFinding(code="assert_not_reached", severity="remark", test=test)
    for test in tests.flaky:
        yield ChangeFinding(code="flaky", severity="remark", test=test)


def _find_replaced_expectations(runs: TestRuns, tests: ComparedTests, explained: set[str]) -> Iterator[str]:
    """Yield failing tests that pass by a change of their data or helpers alone, without the changed code.

    By the old tests, the new code still fails them.
    """
    if runs.unhelped is None:
        return
    by_tests_alone = runs.before.failed & runs.guarded.failed & runs.unhelped.passed & runs.after.passed
    # A test that no longer needs a package which is not installed here failed through no fault of the code. The code
    # before the change shows it: new code could raise the exception itself.
    files = runs.old_suite.task.files
    without_package = {
        fact.check_id
        for fact in runs.before.counterexamples
        if fact.exception and lacks_requirement(fact.exception, files)
    }
    yield from sorted(by_tests_alone - explained - without_package - set(tests.flaky))


def _find_moved_goals(runs: TestRuns, tests: ComparedTests, explained: set[str]) -> list[str]:
    """Return failing tests that the changed code makes pass only with other data, helpers or preparations."""
    unhelped = runs.unhelped.passed if runs.unhelped is not None else frozenset()
    moved = runs.before.failed & runs.guarded.failed & runs.after.passed - unhelped
    left = sorted(moved - explained - set(tests.flaky))
    return [test for test in left if not _lacks_its_subject([test], runs.guarded)]


def _find_supported_tests(runs: TestRuns, tests: ComparedTests, explained: set[str]) -> tuple[str, ...]:
    """Return tests that passed before, and pass now only with other data, helpers or preparations.

    Their assertions are as they were. Old tests whose subject has another name now are left out.
    """
    depending = runs.before.passed & runs.guarded.failed & runs.after.passed
    left = sorted(depending - explained - set(tests.flaky))
    return tuple(test for test in left if not _lacks_its_subject([test], runs.guarded))


def _find_tests_without_assertion(runs: TestRuns, tests: ComparedTests) -> list[str]:
    """Return fixed tests that no longer reach the assertion at which they failed before the change."""
    notes = (*runs.guarded.notes, *runs.after.notes)
    named = {test for note in notes if note.code == "assert_not_reached" for test in note.subjects}
    return sorted(named.intersection(tests.fixed))


def _judge_lost_test(test: str, runs: TestRuns) -> ChangeFinding:
    """Judge a test that no longer runs although its source is as it was, as after `--deselect`."""
    fails_now = test in runs.guarded.failed
    return ChangeFinding(
        code="test_not_run_any_more", severity="reject" if fails_now else "remark", test=test
    )


def _judge_test_change(change: TestChange, runs: TestRuns, dropped_names: frozenset[str]) -> ChangeFinding:
    """Return the finding about one change of a test, weighed by how its old version ends on the new code."""
    ids = _ids_of(change, runs.before)
    failed_before = ids & runs.before.failed
    fails_now = ids & runs.guarded.failed
    code, severity = _weigh(change, runs, failed_before, fails_now)
    dropped = _list_names(change) & dropped_names
    if code == "broken_test_weakened" and dropped:
        code, severity = "test_removed_with_code", "remark"
    return ChangeFinding(
        code=code,
        severity=severity,
        path=change.path,
        line=change.line,
        test=change.test,
        detail=change.code,
        before=change.before,
        after=change.after,
        names=tuple(sorted(dropped)) if code == "test_removed_with_code" else (),
    )


def _list_names(change: TestChange) -> frozenset[str]:
    """Return what a removed test, assertion or case uses; nothing for a test that was changed in another way."""
    if change.code == "test_removed":
        return change.names
    is_removed = change.code in ("assertion_removed", "cases_removed")
    return frozenset(WORD.findall(change.before)) if is_removed else frozenset()


def _weigh(
    change: TestChange, runs: TestRuns, failed_before: frozenset[str], fails_now: frozenset[str]
) -> tuple[FindingCode, FindingSeverity]:
    if change.code == "test_hook_added":
        return "test_hook_added", "reject"
    if change.code == "test_hook_changed":
        return "test_hook_added", "remark"
    if change.code == "asserts_nothing":
        return "asserts_nothing", "remark"
    if change.code == "test_support_changed":
        return "test_support_changed", "note"
    if change.code == "expectation_changed":
        if fails_now and not failed_before and not _lacks_its_subject(fails_now, runs.guarded):
            return _weigh_broken_expectation(change, runs)
        if not failed_before & fails_now:
            return "expectation_changed", "note"
        # The code satisfies the new expectation without any change, so the test was changed in its place.
        if _passes_unhelped(change, runs):
            return "expectation_follows_code", "reject"
        # The changed code reaches another goal than the one that the failing test had set.
        reached = _ids_of(change, runs.after) & runs.after.passed
        return ("failing_test_weakened", "reject") if reached else ("expectation_changed", "note")
    if not fails_now:
        # A test that is skipped elsewhere, as on another system, still runs here.
        ids = _ids_of(change, runs.after)
        runs_here = CONDITIONAL_SKIP.search(change.after) and ids and ids <= runs.after.passed
        return "passing_test_weakened", "note" if runs_here else "remark"
    if failed_before & fails_now:
        return "failing_test_weakened", "reject"
    if change.code == "test_removed" and _lacks_its_subject(fails_now, runs.guarded):
        return "test_removed_with_code", "remark"
    return "broken_test_weakened", "reject"


def _weigh_broken_expectation(change: TestChange, runs: TestRuns) -> tuple[FindingCode, FindingSeverity]:
    """Weigh another expectation of a test that passed before, and by its old version fails now.

    A new version that passes with the old code, too, no longer distinguishes the two: it expects less.
    """
    reached = _ids_of(change, runs.after) & runs.after.passed
    if reached and _passes_unhelped(change, runs):
        return "broken_test_weakened", "reject"
    return "expectation_changed", "remark"


def _ids_of(change: TestChange, verdict: Verdict) -> frozenset[str]:
    """Return the ids in a verdict of the test that a change is about; of all tests of the file if of none."""
    return select_ids(change.path, change.test, [outcome.check_id for outcome in verdict.outcomes])


def _passes_unhelped(change: TestChange, runs: TestRuns) -> bool:
    """Return whether the new version of a test passes on the old code."""
    if runs.unhelped is None:
        return False
    ids = _ids_of(change, runs.unhelped)
    return bool(ids) and ids <= runs.unhelped.passed


def _lacks_its_subject(tests: Iterable[str], verdict: Verdict) -> bool:
    """Return whether tests fail because something that they use no longer exists."""
    wanted = set(tests)
    facts = [fact for fact in verdict.counterexamples if fact.check_id in wanted]
    return bool(facts) and all(fact.exception_type.rpartition(".")[2] in MISSING_NAMES for fact in facts)
