"""Prepare a run's first tests and its search: target tests, limits, and what can be started before it is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from suture.core.ledger.kinds import SearchSkipped
from suture.core.processors import count_usable_cores
from suture.core.records import Candidate, CheckOutcome, Verdict
from suture.errors import UsageError
from suture.judge import (
    RerunFailures,
    Suite,
    check_candidate,
    find_protected_paths,
    has_endless_loops,
    triage_failures,
)
from suture.judge.failures import hit_time_limit
from suture.judge.runners.test_command import TestCommand
from suture.loop import tuning
from suture.loop.context import RunContext
from suture.loop.progress_summary import is_searchable
from suture.loop.services.suite_provider import FirstTests
from suture.mutation import has_grammar
from suture.project.languages import find_search_command, is_pytest_command, is_source
from suture.project.workspace import decode_text
from suture.sandbox import lend_pytest
from suture.search import FailingProject, SearchLimits, TrialPool, start_early_baseline

UNCHANGED = Candidate(files={}, origin="user", label="the code as it is")


async def find_failing_project(
    suite: Suite, texts: Mapping[str, str], baseline: Verdict | None, context: RunContext
) -> FailingProject | None:
    """Return the project of a search; `None` if its tests cannot be searched.

    Python tests must run one by one, unlike the user's command. A unittest command is searched with pytest, and so is
    the test command inside a wrapper that does something else too; the ledger records it if that fails. The search
    only proposes: what it finds is judged by the user's own command.

    Args:
        texts: The files that may change: path -> text.
    """
    command = suite.command
    if command is None:
        return None
    if has_grammar(suite.task.language):
        return None if baseline is None else failing_project(suite, command, texts, baseline)
    if context.interpreter is None:
        return None
    if command.is_pytest:
        return failing_project(suite, command, texts, baseline)
    argv = find_search_command(context.task.test_command, context.task.files)
    interpreter = lend_pytest(context.interpreter)
    if argv is None or interpreter is None:
        return None
    task = replace(context.task, test_command=argv)
    command = TestCommand(task, context.sandbox, context.settings.sandbox, interpreter)
    try:
        await command.collect()
    except UsageError as fault:
        context.ledger.append(SearchSkipped(command=tuple(argv), message=str(fault)))
        return None
    outcomes = (await command.run(task.files)).outcomes
    return replace(failing_project(suite, command, texts, baseline), outcomes=outcomes)


async def run_first_tests(context: RunContext) -> FirstTests:
    """Prepare the suite. For a `heal` task its tests run, and triage examines those that fail.

    Nothing is recorded: this may run before the run's graph is ready.
    """
    await start_trial_pool(context)
    task = context.task
    runs_baseline = task.kind == "heal" and not has_endless_loops(task.files)
    suite = await context.suites.load(runs_baseline=runs_baseline)
    if not runs_baseline or task.tests_only_guard:
        return FirstTests()
    verdict = await check_candidate(UNCHANGED, suite)
    if not verdict.failed or any(note.code == "cut_off" for note in verdict.notes):
        return FirstTests(verdict=verdict)
    triage = await triage_failures(suite, verdict, start_baseline(suite, verdict, context))
    return FirstTests(verdict=verdict, triage=triage)


async def start_trial_pool(context: RunContext) -> None:
    """Start to collect and run the tests for a search, while the user's command runs for the first time.

    The tests are only collected if they could disturb the user's command: without isolation both may use the
    same port or folder of the machine, and one core would have to run both.
    """
    task, interpreter = context.task, context.interpreter
    can_search = is_searchable(task, context.settings) and is_pytest_command(task.test_command)
    # Processes that stay loaded would keep what tests write to services.
    if (
        task.services
        or task.tests_only_guard
        or not (can_search and context.recipe.mutate)
        or interpreter is None
        or context.prefetch.pool is not None
    ):
        return
    settings, left_s = context.settings.sandbox, context.budget.remaining_s()
    # Without a limit, the processes live for two runs of the tests and a search. By judgement.
    wall_s = (2 * settings.test_timeout_s + tuning.SEARCH_DEFAULT_S) if left_s is None else left_s
    command = TestCommand(task, context.sandbox, settings, interpreter)
    sources = [path for path in task.files if path.endswith(".py")]
    pool = TrialPool(command, wall_s + tuning.POOL_GRACE_S, sources)
    context.prefetch.pool = pool
    capabilities = await context.sandbox.capabilities()
    pool.start(prefetch=capabilities.meets_level("namespace") and count_usable_cores() > 1)


def start_baseline(suite: Suite, baseline: Verdict, context: RunContext) -> RerunFailures | None:
    """Start the baseline run of a search while triage still asks whether the code is at fault.

    Return the tests that fail in it, if it counts as a rerun of the tests: triage then needs no rerun of its
    own.
    """
    texts, command, task = editable_texts(suite), suite.command, suite.task
    if command is None or not texts or task.tests_only_guard:
        return None
    limits = limit_search(context, baseline)
    project = failing_project(suite, command, texts, baseline)
    pool = context.prefetch.pool
    if pool is not None:
        pool.start_baseline(project, limits)
        return None
    if not (is_searchable(task, context.settings) and context.recipe.mutate and has_grammar(task.language)):
        return None
    early_baseline = start_early_baseline(project, limits.max_seconds)
    if early_baseline is None:
        return None
    context.prefetch.baseline = early_baseline
    return early_baseline.failing_again if early_baseline.is_rerun else None


def failing_project(
    suite: Suite, command: TestCommand, texts: Mapping[str, str], baseline: Verdict | None
) -> FailingProject:
    """Return the description of the project for a search.

    Args:
        command: The command as the search runs it.
        texts: The files that may change: path -> text.
    """
    task = suite.task
    return FailingProject(
        command=command,
        argv=task.test_command,
        files=task.files,
        texts=texts,
        # The search makes tests pass. What linters report is repaired by their own fixes, or by a model.
        outcomes=(
            *(o for o in (baseline.outcomes if baseline is not None else ()) if o.provenance != "tool"),
            # Trials ignore what the user's run skips.
            *(CheckOutcome(check_id=test, status="skipped", evidence="nonce") for test in suite.flaky_tests),
        ),
        language=task.language,
        wall_s=baseline.wall_s if baseline is not None else 0.0,
    )


def editable_texts(suite: Suite) -> dict[str, str]:
    """Return the files in the task's language that a candidate may change: path -> text."""
    sources = {path: text for path, text in suite.task.files.items() if is_source(path, suite.task.language)}
    protected = find_protected_paths(sources, suite)
    return {path: decode_text(content) for path, content in sources.items() if path not in protected}


def limit_search(context: RunContext, baseline: Verdict | None) -> SearchLimits:
    """Return what a search may use. The time to judge its repair twice and to certify it is reserved.

    A search that finds nothing has nothing to certify. Without a model, it continues until there is just time
    for a verdict. Before a capable model, it has a few seconds for trials, unless a setting says how many; the
    order of the candidates is the same in each case.
    """
    settings, left_s = context.settings.repair, context.budget.remaining_s()
    has_model = context.has_model
    search_s = settings.seconds or (tuning.SEARCH_DEFAULT_S if has_model or left_s is None else left_s)
    extra_s = 0.0  # Seconds of the reserve that a search may use until it has found a repair.
    if left_s is not None:
        # If tests hit the time limit and none passed, the run says nothing about the duration of the tests.
        is_known = baseline is not None and (
            baseline.passed or not any(map(hit_time_limit, baseline.outcomes))
        )
        run_s = baseline.wall_s if baseline is not None and is_known else 0.0
        reserve_s = min(tuning.VERDICT_RUNS * run_s + tuning.VERDICT_RESERVE_S, _max_reserve_s(run_s, left_s))
        if baseline is not None and baseline.outcomes and not baseline.passed:
            reserve_s = max(reserve_s, tuning.UNKNOWN_DURATION_SHARE * left_s)
        elif not has_model:
            verdict_s = tuning.VERDICT_ONLY_RUNS * run_s + tuning.VERDICT_ONLY_S
            extra_s = max(0.0, reserve_s - verdict_s)
        share_s = tuning.SEARCH_SHARE * left_s if has_model else left_s
        limited_s = min(search_s, left_s - reserve_s, share_s)
        extra_s = min(extra_s, search_s - limited_s)
        search_s = limited_s
    trial_s = math.inf
    if context.has_capable_model and settings.seconds is None:
        is_tree = has_grammar(context.task.language)
        trial_s = tuning.CAPABLE_TREE_TRIAL_S if is_tree else tuning.CAPABLE_TRIAL_S
    return SearchLimits(
        max_candidates=settings.candidates,
        max_seconds=search_s,
        reserve_s=extra_s,
        trial_s=trial_s,
        seed=settings.seed,
    )


def _max_reserve_s(run_s: float, left_s: float) -> float:
    """Return the maximum number of seconds that are kept from the search.

    They suffice for one run of the tests, unless such a run would take too large a share of the remaining time.
    """
    single_run_s = tuning.SINGLE_RUN_FACTOR * run_s + tuning.SINGLE_RUN_S
    limit_s = tuning.MAX_RESERVE_SHARE * left_s
    fits = single_run_s <= tuning.MAX_SINGLE_RUN_SHARE * left_s
    return max(limit_s, single_run_s) if fits else limit_s
