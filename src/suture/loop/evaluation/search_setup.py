"""What a search needs: tests that steer it, time, files; and what of it can be begun ahead."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.core.ledger.kinds import SearchSkipped
from suture.core.records import CheckOutcome, Verdict
from suture.errors import UsageError
from suture.judge import RerunFailures, Suite, find_protected_files
from suture.judge.failures import hit_time_limit
from suture.judge.runners.test_command import TestCommand
from suture.loop.context import RunContext
from suture.loop.memories import recalled_factors
from suture.models import NO_MODEL
from suture.mutation import has_grammar
from suture.project.languages import is_pytest_command, is_source, pytest_equivalent
from suture.project.workspace import text_of
from suture.search import EarlyBaseline, FailingProject, SearchLimits, TrialPool, start_early_baseline

USUAL_S = 60.0
"""What a search is taken to need where the run has no limit: its process must be given an end."""
SHARE = 0.5
"""The most seconds of a search, and of the run's that are left, where a model can be asked afterwards."""
VERDICTS = 2
"""Times of the first run that a found repair needs: its verdict's two, side by side, and one of its proof."""
LEAST_KEPT_S = 5.0
"""Beside the runs: ranking, the certificate and handing over take seconds, however short the tests are."""
JUDGED, JUDGED_S = 1.5, 2.0
"""Times of the first run, and seconds, that its verdict alone needs: what a proof has no time for is told."""
MOST_KEPT = 0.6
"""Of the run's seconds that are left, the most that is kept from the search for both runs and the proof."""
ONE_RUN, ONE_RUN_S = 1.2, 4.0
"""Times of the first run, and seconds, that ranking and one run need: without them nothing is handed over."""
MOST_FOR_ONE = 0.85
"""Of the seconds that are left, the most for that; where it takes more, no repair can be judged at all."""
UNSEEN_KEPT = 0.3
"""What is kept at least where no test passed: nobody knows then how long they take."""
SPARE_S = 60.0
"""Seconds that the processes outlive the run's: to end is the run's own part."""


@dataclass(frozen=True, kw_only=True)
class TargetTests:
    """Tests that can be run one by one, many times over.

    Attributes:
        command: A collected pytest command.
        failing: Ids of its tests that fail on the code as it is.
        outcomes: How each of its tests ended there.
    """

    command: TestCommand
    failing: frozenset[str]
    outcomes: Mapping[str, str] = field(default_factory=dict)


async def find_target_tests(suite: Suite, base: Verdict | None, context: RunContext) -> TargetTests | None:
    """What the search is steered by; `None` where the project's tests cannot be run one by one.

    A unittest command is searched by way of pytest, where the project's interpreter has it. The search only
    proposes: what it finds is judged by the user's own command.

    Args:
        suite: The trusted suite.
        base: Its verdict on the code as it is.
        context: The run; it is written down where there is no guide.

    Raises:
        SandboxError: The wall failed.
    """
    if suite.command is None or context.interpreter is None:
        return None
    if suite.command.is_pytest:
        return _guide(suite.command, base.outcomes if base is not None else ())
    argv = pytest_equivalent(context.task.test_command)
    if argv is None:
        return None
    task = replace(context.task, test_command=argv)
    command = TestCommand(task, context.sandbox, context.settings.sandbox, context.interpreter)
    try:
        await command.collect()
    except UsageError as fault:
        context.ledger.append(SearchSkipped(command=tuple(argv), message=str(fault)))
        return None
    return _guide(command, (await command.run(task.files)).outcomes)


def failing_of(outcomes: Sequence[CheckOutcome]) -> tuple[frozenset[str], dict[str, str]]:
    """Ids of the tests that fail, and how each test ended."""
    failing = frozenset(o.check_id for o in outcomes if not o.passed and o.status != "skipped")
    return failing, {o.check_id: o.status for o in outcomes}


def _guide(command: TestCommand, outcomes: Sequence[CheckOutcome]) -> TargetTests:
    failing, ended = failing_of(outcomes)
    return TargetTests(command=command, failing=failing, outcomes=ended)


async def make_ready(context: RunContext) -> None:
    """Begin to collect the tests for a search, and to run them, beside the first run of the command.

    Where no wall keeps the two runs apart, tests that share a place of the machine could disturb the user's
    own run, and where there is one core, they could only slow it down: there they are only collected.

    Raises:
        SandboxError: No wall can be built here.
    """
    task, interpreter = context.task, context.interpreter
    wanted = context.may_search and context.recipe.mutate and is_pytest_command(task.test_command)
    if not wanted or interpreter is None or context.ready is not None:
        return
    settings, left_s = context.settings, context.budget.remaining_s()
    wall_s = (2 * settings.sandbox.test_timeout_s + USUAL_S) if left_s is None else left_s
    command = TestCommand(task, context.sandbox, settings.sandbox, interpreter)
    sources = [path for path in task.files if path.endswith(".py")]
    ready = TrialPool(command, wall_s + SPARE_S, sources)
    context.make_ready(ready)
    walled = await context.sandbox.capabilities()
    ready.start(run=walled.meets_level("namespace") and len(os.sched_getaffinity(0)) > 1)


def look_ahead(suite: Suite, base: Verdict, context: RunContext) -> RerunFailures | None:
    """Begin to look at the failing tests, while triage still asks whether they are the code's.

    Returns:
        Which tests fail in it, where it is as good as one more run of them: a second would only confirm that.
    """
    texts, command, task = editable_texts(suite), suite.command, suite.task
    if command is None or not texts:
        return None
    limits = search_limits(context, base)
    if context.ready is not None:
        failing, outcomes = failing_of(base.outcomes)
        context.ready.start_baseline(command, texts, failing, outcomes, limits)
        return None
    if not (context.may_search and context.recipe.mutate and has_grammar(task.language)):
        return None
    look = start_early_baseline(failing_project(suite, command, texts, base), limits, run_s=base.wall_s)
    if look is None:
        return None
    context.keep_look(look)
    return look.failing_again if look.is_a_rerun else None


async def taken_look(suite: Suite, texts: Mapping[str, str], context: RunContext) -> EarlyBaseline | None:
    """What was seen ahead of a search in another language; it belongs to the caller."""
    look = context.take_look()
    if look is not None and not look.is_of(suite.command, texts):
        await look.close()
        return None
    return look


async def taken_ready(command: TestCommand, suite: Suite, context: RunContext) -> TrialPool | None:
    """What was made ready for a search with this command; it belongs to the caller."""
    ready = context.take_ready()
    if ready is not None and command is not suite.command:
        await ready.close()
        return None
    return ready


def failing_project(
    suite: Suite, command: TestCommand, texts: Mapping[str, str], base: Verdict | None
) -> FailingProject:
    """What a search is told of the project.

    Args:
        suite: What judges it.
        command: Its tests, as the search runs them.
        texts: Path -> text of the files that may be changed.
        base: The verdict on the project as it is.
    """
    task = suite.task
    return FailingProject(
        command=command,
        argv=task.test_command,
        files=task.files,
        texts=texts,
        outcomes=base.outcomes if base is not None else (),
        language=task.language,
    )


def editable_texts(suite: Suite) -> dict[str, str]:
    """Path -> text of the files in the task's language that a candidate may change."""
    sources = {path: text for path, text in suite.task.files.items() if is_source(path, suite.task.language)}
    refused = find_protected_files(dict.fromkeys(sources, ""), suite)
    return {path: text_of(content) for path, content in sources.items() if path not in refused}


def _most_kept_s(verdict_s: float, left_s: float) -> float:
    one_s = ONE_RUN * verdict_s + ONE_RUN_S
    most_s = MOST_KEPT * left_s
    return max(most_s, one_s) if one_s <= MOST_FOR_ONE * left_s else most_s


def search_limits(context: RunContext, base: Verdict | None) -> SearchLimits:
    """What a search may use. What it finds has still to be judged, twice, and proved: that time is kept.

    Where it finds nothing, there is nothing to prove: it goes on until there is just time for a verdict.
    """
    knobs, left_s = context.settings.repair, context.budget.remaining_s()
    may_ask = context.model.name != NO_MODEL
    seconds = knobs.seconds or (USUAL_S if may_ask or left_s is None else left_s)
    beyond_s = 0.0
    if left_s is not None:
        is_known = base is not None and (base.passed or not any(map(hit_time_limit, base.outcomes)))
        verdict_s = base.wall_s if base is not None and is_known else 0.0
        kept_s = min(VERDICTS * verdict_s + LEAST_KEPT_S, _most_kept_s(verdict_s, left_s))
        if base is not None and base.outcomes and not base.passed:
            kept_s = max(kept_s, UNSEEN_KEPT * left_s)
        elif not may_ask:
            beyond_s = max(0.0, kept_s - JUDGED * verdict_s - JUDGED_S)
        wanted_s, seconds = seconds, min(seconds, left_s - kept_s, SHARE * left_s if may_ask else left_s)
        beyond_s = min(beyond_s, wanted_s - seconds)
    return SearchLimits(
        max_candidates=knobs.candidates,
        max_seconds=seconds,
        reserve_s=beyond_s,
        seed=knobs.seed,
        operator_factors=recalled_factors(context.ledger.events),
    )
