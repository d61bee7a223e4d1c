"""Trials by runs of the user's command, for projects whose tests no driver can run. Each trial is slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from suture.core.ledger.kinds import SearchEnding
from suture.core.records import CheckOutcome
from suture.judge.failures import hit_time_limit
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits
from suture.mutation.edits import encode_source
from suture.search import tuning
from suture.search.search_records import FailingProject, SearchLimits, SearchResult

MIN_RUN_S = 0.5
"""The least timeout of a run, however little time is left. Chosen by judgement; not measured."""


async def try_by_command(
    project: FailingProject, proposals: Sequence[Proposal], result: SearchResult, limits: SearchLimits
) -> None:
    """Try candidates in their order, several at once, until one passes and a few rivals were tried.

    Args:
        project: The project; its failing files run first where its runner can select them.

    Raises:
        SandboxError: The sandbox failed.
    """
    began_s = time.monotonic() - result.generation_s  # the search began before the candidates were generated
    run_selected, outcomes = project.command.run_selected, project.outcomes
    # The second number says how many candidates are tried in all; a first repair lowers it.
    waiting, last_count = iter(proposals), limits.max_candidates
    # A command that fails as a whole has an outcome "error" beside its tests, unlike one that passes.
    expected = {outcome.check_id for outcome in outcomes if outcome.status not in ("skipped", "error")}
    failing = {o.check_id for o in outcomes if o.status not in ("passed", "skipped", "error")}
    all_tests: set[str] = set()  # without a selection, the command runs all tests
    timeout_s = await _trial_timeout_s(project, failing, limits)
    if timeout_s is None:
        result.ending = "trials_disagree"
        return

    def remaining_s() -> float:
        return result.end_s(limits) - (time.monotonic() - began_s)

    async def passes(files: dict[str, bytes], selected: set[str], expected: set[str]) -> bool:
        wall_s = min(timeout_s, max(MIN_RUN_S, remaining_s()))
        return all_passed(await run_selected(files, selected, wall_s=wall_s), expected)

    def is_over() -> bool:
        if result.tried_count >= limits.max_candidates:
            result.ending = "candidate_limit"
        elif remaining_s() <= 0:
            result.ending = "time_over"
        elif result.tried_count >= last_count or len(result.plausible) >= limits.max_repairs:
            result.ending = "likely_changes_tried"
        return result.ending is not None

    async def work() -> None:
        nonlocal last_count
        while not is_over() and (proposal := next(waiting, None)) is not None:
            text = apply_edits(project.texts[proposal.path], proposal.edits)
            files = {**project.files, proposal.path: encode_source(text)}
            passes_failing = await passes(files, failing, failing)
            result.tried_count += 1
            if passes_failing and await passes(files, all_tests, expected):
                result.plausible.append(proposal)
                if result.first_repair_s is None:
                    result.first_repair_s = time.monotonic() - began_s
                    last_count = result.tried_count + tuning.COMMAND_RIVALS

    # Each run has its own timeout (`passes`). This limit is for a run that its timeout did not stop.
    max_s = limits.max_seconds + limits.reserve_s + tuning.MIN_COMMAND_TIMEOUT_S
    is_in_time = await _run_in_parallel(work, max_s)
    exhausted: SearchEnding = "all_tried" if is_in_time else "time_over"
    result.ending = result.ending or exhausted


async def _trial_timeout_s(project: FailingProject, failing: set[str], limits: SearchLimits) -> float | None:
    """Return the timeout of a trial; `None` if the failing tests pass when the unchanged code runs here."""
    if any(map(hit_time_limit, project.outcomes)):
        # A command that was stopped has no duration from which a timeout could be derived.
        return max(tuning.MIN_COMMAND_TIMEOUT_S, tuning.HUNG_COMMAND_SHARE * limits.max_seconds)
    began_s = time.monotonic()
    outcomes = await project.command.run_selected(project.files, failing)
    if outcomes and all(outcome.passed for outcome in outcomes):
        return None
    return max(tuning.MIN_COMMAND_TIMEOUT_S, tuning.COMMAND_PATIENCE * (time.monotonic() - began_s))


def was_whole_command_stopped(outcome: CheckOutcome) -> bool:
    """Return whether a command judged by its exit status was stopped, so that no test of it is visible."""
    return outcome.evidence == "exit_status" and hit_time_limit(outcome)


async def _run_in_parallel(work: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> bool:
    """Run several workers; return whether all ended in time. The first exception propagates as it is."""
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for _ in range(tuning.PARALLEL_RUNS):
                group.create_task(work())
    except TimeoutError:
        return False
    except BaseExceptionGroup as faults:
        raise faults.exceptions[0] from None
    return True


def all_passed(outcomes: Iterable[CheckOutcome], expected: set[str]) -> bool:
    """Return whether all expected tests ran and passed, and no other test failed."""
    by_test = {outcome.check_id: outcome for outcome in outcomes}
    if any(not outcome.passed and outcome.status != "skipped" for outcome in by_test.values()):
        return False
    # A file that failed as a whole has an id without a test name; once it loads, its tests have other ids.
    tests = {name for name in expected if "::" in name} or expected
    return all(name in by_test and by_test[name].passed for name in tests)
