"""Run the tests without and with a change, and compare how each test ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Task, Verdict
from suture.core.records.judgement import ComparedTests, JudgeStep
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.loop.judgement.proposed_change import ProposedChange
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
    """

    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter | None
    on_step: Callable[[JudgeStep], None] = lambda step: None


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


class TestsDoNotRun(Exception):
    """The tests of the change do not start, although those of its base do."""

    __test__ = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def run_tests(change: ProposedChange, task: Task, tools: JudgeTools) -> TestRuns:
    """Run the old and the new tests on the old and the new code.

    Args:
        task: Says how to test, and which files decide; its files are not used.

    Raises:
        UsageError: The tests of the base do not start.
        TestsDoNotRun: Those of the change do not.
        SandboxError: The sandbox failed.
    """
    tools.on_step("tests_without_change")
    old_suite = await _prepare(replace(task, files=change.before), tools)
    before = await check_candidate(UNCHANGED, old_suite)
    code = change.find_code(old_suite)
    candidate = Candidate(files=code, origin="repair", label="the change")
    tools.on_step("tests_with_change")
    guarded = await check_candidate(candidate, old_suite) if code else before
    mixed = change.with_new_tests(code)
    if mixed == dict(change.before) and not change.removed:
        return TestRuns(
            old_suite=old_suite,
            new_suite=old_suite,
            code=code,
            before=before,
            guarded=guarded,
            unhelped=before,
            after=guarded,
            final=candidate,
        )
    removed_code = [path for path in change.removed if path in mixed]
    new_suite: Suite | None = None
    unhelped: Verdict | None = None
    try:
        new_suite = await _prepare(replace(task, files=mixed), tools)
        unhelped = await check_candidate(UNCHANGED, new_suite)
    except UsageError:
        pass  # The new tests need the new code to start.
    if new_suite is None or removed_code:
        try:
            new_suite = await _prepare(replace(task, files=change.after), tools)
        except UsageError as fault:
            raise TestsDoNotRun(fault.message) from fault
        candidate = UNCHANGED
    after = await check_candidate(candidate, new_suite)
    return TestRuns(
        old_suite=old_suite,
        new_suite=new_suite,
        code=code,
        before=before,
        guarded=guarded,
        unhelped=unhelped,
        after=after,
        final=candidate,
    )


async def _prepare(task: Task, tools: JudgeTools) -> Suite:
    return await prepare_suite(task, tools.sandbox, tools.settings, tools.interpreter, run=True)


async def compare_runs(runs: TestRuns, changed_tests: Iterable[str]) -> ComparedTests:
    """Return how each test ended without and with the change; tests that end by chance are set apart.

    Args:
        changed_tests: Ids of tests that are new or have another source than before.
    """
    before, after = runs.before, runs.after
    after_ids = {outcome.check_id for outcome in after.outcomes}
    skipped_now = {outcome.check_id for outcome in after.outcomes if outcome.status == "skipped"}
    before_ran = before.passed | before.failed
    missing = {outcome.check_id for outcome in after.outcomes if outcome.status == "missing"}
    removed = {name for name in before_ran if name not in after_ids}
    newly_failing = after.failed - before.failed - missing
    fixed = before.failed & after.passed
    flaky = await _find_flaky(runs, newly_failing, fixed)
    unhelped_passed = runs.unhelped.passed if runs.unhelped is not None else frozenset()
    judged = {name for name in changed_tests if name in after.passed}
    return ComparedTests(
        fixed=_sorted(fixed - flaky),
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
    """Return those of some tests that end differently when they run again on the same files."""
    flaky: set[str] = set()
    for _ in range(FLAKY_RERUNS):
        if newly_failing - flaky:
            again = await check_candidate(runs.final, runs.new_suite)
            flaky |= newly_failing & again.passed
    if fixed:
        again = await check_candidate(UNCHANGED, runs.old_suite)
        flaky |= fixed & again.passed
    return frozenset(flaky)
