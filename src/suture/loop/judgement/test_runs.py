"""Run the tests without and with a change, and compare how each test ended.

What is known need not run: the base may be known from an earlier judgement, and a test whose file and support did not
change ends alike by the old and by the new tests.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from suture.core.records import Candidate, Task, Verdict
from suture.core.records.judgement import ComparedTests, JudgedScope, JudgeStep, ScopeKind
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.runners.pytest_report import get_function
from suture.loop.judgement.affected_tests import (
    AffectedTests,
    find_affected_tests,
    find_importers_of,
    find_test_modules,
    get_file,
)
from suture.loop.judgement.base_results import ProposedChange, find_recorded_run
from suture.project.languages import Interpreter
from suture.sandbox import Sandbox

UNCHANGED = Candidate(files={}, origin="user")
FLAKY_RERUNS = 2
"""Runs in which a test that newly fails, or that is fixed, may show that it ends by chance."""


@dataclass(frozen=True, kw_only=True)
class JudgeTools:
    """What runs the tests of a judgement.

    Attributes:
        interpreter: What `python` means in the test command.
        on_step: Called with each step when it begins.
        recorded_runs: Folder in which the results of the tests of a base are kept; `None` to keep none.
    """

    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter | None
    on_step: Callable[[JudgeStep], None] = lambda step: None
    recorded_runs: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Base:
    """The state before a change, after its tests ran.

    Attributes:
        suite: Judges by the tests of this state.
        verdict: How they ended.
        affected: The tests that the change can affect; `None` if these may be all tests.
        is_recorded: Whether the tests ran in an earlier judgement.
    """

    suite: Suite
    verdict: Verdict
    affected: AffectedTests | None
    is_recorded: bool

    @property
    def affected_share(self) -> float:
        """The share of the tests of this state that the change can affect, from 0 to 1."""
        tests = [outcome.check_id for outcome in self.verdict.outcomes]
        if self.affected is None or not tests:
            return 1.0
        return sum(map(self.affected.contain, tests)) / len(tests)

    def forget(self) -> None:
        """Remove the recorded result of the tests."""
        if self.suite.command is not None:
            self.suite.command.forget_recorded()


class BaseDiffers(Exception):
    """The tests of a base end otherwise than they did in an earlier judgement."""


@dataclass(frozen=True, kw_only=True)
class TestRuns:
    """The four runs of a judgement. Where the change touches no test, two of them are the same.

    Attributes:
        old_suite: Judges by the old tests.
        new_suite: Judges by the tests of the change.
        code: The changed code, path -> text.
        before: The old code by the old tests.
        guarded: The new code by the old tests.
        unhelped: The old code by the new tests; `None` if they do not start without the change.
        after: The new code by the new tests.
        final: The candidate that makes the changed project out of the files of `new_suite`.
        base: The state before the change.
        is_partial: Whether only the affected tests ran.
    """

    __test__ = False  # keeps pytest from collecting this class

    old_suite: Suite
    new_suite: Suite
    code: Mapping[str, str]
    before: Verdict
    guarded: Verdict
    unhelped: Verdict | None
    after: Verdict
    final: Candidate
    base: Base
    is_partial: bool = False

    def describe_scope(self, kind: ScopeKind) -> JudgedScope:
        """Return which of the tests ran with the change."""
        ran = {outcome.check_id for outcome in self.after.outcomes}
        total = ran | {outcome.check_id for outcome in self.base.verdict.outcomes}
        return JudgedScope(kind=kind, ran=len(ran), total=len(total if self.is_partial else ran))


class TestsDoNotRun(Exception):
    """The tests of the change do not start, although those of its base do."""

    __test__ = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def prepare_base(change: ProposedChange, task: Task, tools: JudgeTools) -> Base:
    """Run the tests of the state before a change, or take their result from an earlier judgement.

    Args:
        task: Says how to test, and which files decide; its files are not used.

    Raises:
        UsageError: The tests do not start.
        SandboxError: The sandbox failed.
    """
    tools.on_step("tests_without_change")
    task = replace(task, files=change.before)
    recorded = None
    if tools.recorded_runs is not None and tools.interpreter is not None:
        recorded = await find_recorded_run(
            tools.recorded_runs, task, tools.sandbox, tools.settings, tools.interpreter
        )
    is_recorded = recorded is not None and recorded.exists
    suite = await prepare_suite(
        task,
        tools.sandbox,
        tools.settings,
        tools.interpreter,
        run=True,
        recorded=recorded,
        records_reach=True,
    )
    verdict = await check_candidate(UNCHANGED, suite)
    reach = suite.command.reach if suite.command is not None else None
    affected = find_affected_tests(change, suite, verdict, reach) if reach is not None else None
    return Base(suite=suite, verdict=verdict, affected=affected, is_recorded=is_recorded)


async def run_tests(
    change: ProposedChange, base: Base, tools: JudgeTools, *, is_partial: bool = False
) -> TestRuns:
    """Run the old and the new tests on the old and the new code.

    Args:
        is_partial: Whether to run only the tests that the change can affect, as far as they are known.

    Raises:
        TestsDoNotRun: The tests of the change do not start.
        SandboxError: The sandbox failed.
    """
    tools.on_step("tests_with_change")
    affected = base.affected if is_partial else None
    code = change.find_code(base.suite)
    candidate = Candidate(files=code, origin="repair", label="the change")
    # The new code with the new tests: in a file that holds both, `code` has the old ones.
    final = replace(
        candidate, files=code | {path: change.new_text(path) for path in change.mixed.intersection(code)}
    )
    before = _select(base.verdict, affected.contain) if affected is not None else base.verdict
    runs = TestRuns(
        old_suite=base.suite.restrict(affected.only) if affected is not None else base.suite,
        new_suite=base.suite.restrict(affected.only) if affected is not None else base.suite,
        code=code,
        before=before,
        guarded=before,
        unhelped=before,
        after=before,
        final=final,
        base=base,
        is_partial=affected is not None,
    )
    if affected is not None and not affected.only:
        return runs
    mixed = change.with_new_tests(code)
    if mixed == dict(change.before) and not change.removed:
        guarded = await check_candidate(candidate, runs.old_suite) if code else before
        return replace(runs, guarded=guarded, after=guarded)
    own_files = find_separate_test_files(change, base.suite, code)
    if own_files:
        return await _run_separate_tests(change, own_files, mixed, runs, tools)
    return await _run_all_tests(change, mixed, runs, tools)


def find_separate_test_files(change: ProposedChange, suite: Suite, code: Collection[str]) -> frozenset[str]:
    """Return the changed test files, if nothing else that decides has changed and no other file imports them."""
    files = find_test_modules(change, suite)
    is_pytest = suite.command is not None and suite.command.is_pytest
    if not is_pytest or {*change.changed} - {*code} - files or find_importers_of(files, change) - files:
        return frozenset()
    return files


async def _run_separate_tests(
    change: ProposedChange,
    own_files: frozenset[str],
    mixed: Mapping[str, bytes],
    runs: TestRuns,
    tools: JudgeTools,
) -> TestRuns:
    """Run changed test files four times, and the other tests once: theirs are the old tests and the new ones."""

    def is_own(test: str) -> bool:
        return get_file(test) in own_files

    def is_other(test: str) -> bool:
        return not is_own(test)

    task = replace(runs.old_suite.task, files=mixed)
    try:
        new_suite = await _prepare(task, tools, runs, run=False)
    except UsageError:
        return await _run_all_tests(change, mixed, runs, tools)
    has_old = any(is_own(outcome.check_id) for outcome in runs.before.outcomes)
    after = await check_candidate(runs.final, new_suite)
    guarded, unhelped = runs.before, after
    if runs.code:
        # One after the other: tests that run side by side can disturb each other.
        unhelped = await check_candidate(UNCHANGED, new_suite.restrict(own_files))
        unhelped = _join(_select(unhelped, is_own), _select(runs.before, is_other))
        guarded = _select(after, is_other)
        if has_old:
            old = replace(runs.final, files=runs.code)
            own = await check_candidate(old, runs.base.suite.restrict(own_files))
            guarded = _join(_select(own, is_own), guarded)
    return replace(runs, new_suite=new_suite, guarded=guarded, unhelped=unhelped, after=after)


async def _run_all_tests(
    change: ProposedChange, mixed: Mapping[str, bytes], runs: TestRuns, tools: JudgeTools
) -> TestRuns:
    """Run all old tests on the new code, and all new tests on the old and the new code."""
    guarded = runs.before
    if runs.code:
        guarded = await check_candidate(replace(runs.final, files=runs.code), runs.old_suite)
    task = replace(runs.old_suite.task, files=mixed)
    new_suite: Suite | None = None
    unhelped: Verdict | None = None
    final = runs.final
    try:
        new_suite = await _prepare(task, tools, runs, run=True)
        unhelped = await check_candidate(UNCHANGED, new_suite)
    except UsageError:
        pass  # The new tests need the new code to start.
    if new_suite is None or any(path in mixed for path in change.removed):
        try:
            new_suite = await _prepare(replace(task, files=change.after), tools, runs, run=True)
        except UsageError as fault:
            raise TestsDoNotRun(fault.message) from fault
        final = UNCHANGED
    is_known = unhelped is not None and not final.files and new_suite.task.files == mixed
    after = unhelped if unhelped is not None and is_known else await check_candidate(final, new_suite)
    return replace(runs, new_suite=new_suite, guarded=guarded, unhelped=unhelped, after=after, final=final)


async def _prepare(task: Task, tools: JudgeTools, runs: TestRuns, *, run: bool) -> Suite:
    affected = runs.base.affected if runs.is_partial else None
    only = affected.only if affected is not None else frozenset[str]()
    return await prepare_suite(task, tools.sandbox, tools.settings, tools.interpreter, run=run, only=only)


def _select(verdict: Verdict, is_chosen: Callable[[str], bool]) -> Verdict:
    """Return a verdict without the other tests; outcomes of the command as a whole stay."""
    outcomes = tuple(
        outcome for outcome in verdict.outcomes if "::" not in outcome.check_id or is_chosen(outcome.check_id)
    )
    return replace(verdict, outcomes=outcomes)


def _join(verdict: Verdict, other: Verdict) -> Verdict:
    """Return the outcomes of two verdicts, each once."""
    outcomes = {outcome.check_id: outcome for outcome in (*other.outcomes, *verdict.outcomes)}
    return replace(verdict, outcomes=tuple(outcomes.values()))


async def compare_runs(runs: TestRuns, changed_tests: Iterable[str]) -> ComparedTests:
    """Return how each test ended without and with the change; tests that end by chance are separated.

    Args:
        changed_tests: Ids of tests that are new or have another source than before.

    Raises:
        BaseDiffers: A result of an earlier judgement is not what such a run gives now.
    """
    before, after = runs.before, runs.after
    after_ids = {outcome.check_id for outcome in after.outcomes}
    skipped_now = {outcome.check_id for outcome in after.outcomes if outcome.status == "skipped"}
    before_ran = before.passed | before.failed
    missing = {outcome.check_id for outcome in after.outcomes if outcome.status == "missing"}
    # The parameters of a test are unknown while its file cannot be imported.
    removed = before_ran - after_ids - {PARAMETERS.sub("", name) for name in after_ids}
    newly_failing = after.failed - before.failed - missing
    fixed = before.failed & after.passed
    flaky = await _find_flaky(runs, newly_failing, fixed)
    unhelped_passed = runs.unhelped.passed if runs.unhelped is not None else frozenset()
    judged = {name for name in changed_tests if name in after.passed}
    # Their old version still fails with the changed code, so the test was changed and the code fixed nothing.
    by_tests = runs.guarded.failed & (unhelped_passed | judged)
    return ComparedTests(
        fixed=_sorted(fixed - flaky - by_tests),
        proving=_sorted(judged - unhelped_passed - flaky),
        unproving=_sorted(judged & unhelped_passed),
        still_failing=_sorted(before.failed & after.failed),
        newly_failing=_sorted((newly_failing | (missing & before.passed)) - flaky),
        skipped=_sorted(before_ran & skipped_now),
        removed=_sorted(removed),
        flaky=_sorted(flaky),
        passed=_sorted(after.passed),
    )


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


async def _find_flaky(runs: TestRuns, newly_failing: frozenset[str], fixed: frozenset[str]) -> frozenset[str]:
    """Return those of some tests that end differently when they run again on the same files.

    Tests that end as before when they run without the others are not flaky. For the rest, all tests run again.

    Raises:
        BaseDiffers: A result of an earlier judgement is not what such a run gives now.
    """
    flaky: set[str] = set()
    doubtful = newly_failing - await _confirm_failures(runs, newly_failing)
    for _ in range(FLAKY_RERUNS):
        if doubtful - flaky:
            again = await check_candidate(runs.final, runs.new_suite)
            flaky |= doubtful & again.passed
    broken = doubtful & runs.before.passed
    fixed_alone = fixed & (await _run_alone(UNCHANGED, runs.old_suite, fixed)).passed
    if fixed_alone or broken:
        again = await check_candidate(UNCHANGED, runs.old_suite)
        differing = (fixed_alone & again.passed) | (broken & again.failed)
        if differing and runs.base.is_recorded:
            raise BaseDiffers
        flaky |= differing
    return frozenset(flaky)


async def _confirm_failures(runs: TestRuns, tests: frozenset[str]) -> frozenset[str]:
    """Return those of some tests that fail again without the others, and pass so without the change."""
    if not tests or not _can_run_alone(runs.new_suite):
        return frozenset()
    failed = tests & (await _run_alone(runs.final, runs.new_suite, tests)).failed
    known = failed & runs.before.passed
    passed = (await _run_alone(UNCHANGED, runs.old_suite, known)).passed
    return (failed - known) | (known & passed)


async def _run_alone(candidate: Candidate, suite: Suite, tests: frozenset[str]) -> Verdict:
    """Run some tests without the others; all tests, if the command cannot select them."""
    if not tests:
        return Verdict(candidate=candidate.hash, outcomes=(), evidence="exit_status")
    if _can_run_alone(suite):
        suite = suite.restrict({get_function(test) for test in tests})
    return await check_candidate(candidate, suite)


def _can_run_alone(suite: Suite) -> bool:
    return suite.command is not None and suite.command.is_pytest


PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)
"""Matches the parameters in the id of a test of pytest."""
PLACEHOLDER = re.compile(r"%[a-z%#]|\$[\w.]+|\$\{[^}]*\}")
"""Matches what a runner of JavaScript replaces in the title of a test with a table."""


def select_ids(path: str, test: str, ids: Iterable[str]) -> frozenset[str]:
    """Return the ids that belong to a test of a file.

    Args:
        path: The test file.
        test: The test as its source names it; empty for all tests of the file.
        ids: Ids such as `FILE::CLASS::TEST[PARAMETERS]`, `FILE::GROUP > TEST` and, in Go, `PACKAGE::TEST/CASE`.
    """
    return frozenset(name for name in ids if _belongs(path, test, name))


def _belongs(path: str, test: str, check_id: str) -> bool:
    owner, _, name = check_id.partition("::")
    if path.endswith(".go"):
        folder = "" if owner == "." else owner
        return posixpath.dirname(path) == folder and test in ("", name.partition("/")[0])
    if owner != path:
        return False
    if not test or name == test or (path.endswith(".py") and PARAMETERS.sub("", name) == test):
        return True
    pieces = PLACEHOLDER.split(test)
    return len(pieces) > 1 and re.fullmatch(".*".join(map(re.escape, pieces)), name, re.DOTALL) is not None
