"""Prepare: make the suite, judge the code as it is, and have helpers contribute before the first move."""

from __future__ import annotations

from math import ceil
from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger.kinds import NonCodeFailure, TaskPrepared, TriageFinished
from suture.core.records import Candidate, Task, Verdict, encode_record
from suture.errors import BudgetExceeded
from suture.judge import (
    TriageResult,
    find_unread_calls,
    find_unread_examples,
    has_endless_loops,
    triage_endless_tests,
    triage_failures,
)
from suture.judge.smoke.smoke_plan import list_step_ids, plan_smoke_groups
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, unreached_in, with_verdict
from suture.loop.evaluation.search_setup import look_ahead, make_ready
from suture.loop.memories import recall
from suture.loop.policy.attempts import Attempt
from suture.loop.roles.generated_tests import tests_from_the_task
from suture.loop.roles.planning import planned
from suture.loop.state import LoopState, attempts_as_json, role_contributions
from suture.project.languages import LANGUAGES

MOST_TOLD = 500
"""Tests that the ledger names one by one."""

HEAL_RUNS, LONGER = 4, 2
"""Times of one run of the tests that a heal takes: the first, a search, the two of a verdict. And how much
longer a run may get on a busy machine, before it is cut off again."""

BEFORE_THE_ROUNDS = -1
"""The round of the code as it was, which nobody proposed."""


async def prepare(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Collect the checks; for a `heal` task run them on the code as it is."""
    context = runtime.context
    await _collect(context)
    threshold = context.settings.loop.trust_threshold
    project = context.task.project
    has_tests = bool(context.task.test_command) + bool(project and project.kind)
    trusted = [check for check in context.task.checks if check.trust >= threshold]
    context.ledger.append(_prepared(len(trusted), context))
    update: dict[str, Any] = {"checks": len(trusted) + has_tests}
    if context.task.kind == "heal":
        async with context.budget.time_limit():
            endless = await triage_endless_tests(await context.load_suite())
        if endless.cause:
            return {**update, **await _triaged(endless, context)}
        entry = await _base(context)
        _require_all_reached(context.verdict(entry.verdict), context)
        update["tried"] = attempts_as_json([entry])
        if entry.failed:
            await recall(context.verdict(entry.verdict), context)
            update |= await _triage(context, context.verdict(entry.verdict))
    else:
        await recall(None, context)
    return update


async def equip(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the helpers that the recipe wants once, before the first move."""
    if state["not_code"] or runtime.context.task.kind != "write":
        return {}  # the run is over; or there is code already, and nothing to plan
    aids = role_contributions(state)
    found = await planned(aids, runtime.context)
    found = await tests_from_the_task(found, runtime.context)
    return {"aids": encode_record(found)} if found != aids else {}


async def _collect(context: RunContext) -> None:
    """Make the suite; where the code is there, its first run tells which tests there are and how they end.

    Raises:
        BudgetExceeded: The time was up before it ended.
    """
    heals = context.task.kind == "heal"
    try:
        async with context.budget.time_limit():
            await make_ready(context)
            await context.load_suite(run=heals and not has_endless_loops(context.task.files))
    except BudgetExceeded as fault:
        if not heals:
            raise
        told = f"the first run of your tests had not ended when the {fault.limit:g} seconds were over"
        raise BudgetExceeded(fault.kind, fault.used, fault.limit, message=told) from fault


def _prepared(checks: int, context: RunContext) -> TaskPrepared:
    task, program = context.task, context.interpreter
    toolchain = program.toolchain if program else None
    python = program if toolchain is None else None
    return TaskPrepared(
        checks=checks + (len(list_step_ids(plan_smoke_groups(task))) if task.project else 0),
        test_command=tuple(task.test_command),
        test_origin=task.test_origin,
        language=task.language,
        toolchain=toolchain.program if toolchain else "",
        python=python.executable if python else "",
        python_origin=python.origin if python else "",
        unused_examples=_unread(task),
    )


def _unread(task: Task) -> tuple[str, ...]:
    """What looks like an example in a statement and decides nothing."""
    calls = LANGUAGES[task.language].calls
    if task.kind != "write" or not task.entry_point:
        return ()
    if calls is None:
        return find_unread_examples(task.statement, task.entry_point)
    return find_unread_calls(task.statement, task.entry_point, calls)


async def _triage(context: RunContext, base: Verdict) -> dict[str, Any]:
    """Ask whether the code is at fault at all, before anything is spent on it."""
    async with context.budget.time_limit():
        suite = await context.load_suite()
        found = await triage_failures(suite, base, look_ahead(suite, base, context))
    return await _triaged(found, context)


async def _triaged(found: TriageResult, context: RunContext) -> dict[str, Any]:
    command = (await context.load_suite()).command
    finished = TriageFinished(
        cause=found.end,
        non_code_failures=tuple(
            NonCodeFailure(test=one.test, cause=one.cause, explanation=one.why, advice=one.advice, is_permanent=one.stays)
            for one in found.set_apart[:MOST_TOLD]
        ),
        code_failure_count=len(found.others),
        rootdir=command.rootdir if command is not None else ".",
    )
    context.ledger.append(finished)
    return {"cause": found.end or "", "not_code": found.reason}


def _require_all_reached(base: Verdict, context: RunContext) -> None:
    """End the run where its first run of the tests was cut off: a verdict on a change takes as long.

    Raises:
        BudgetExceeded: It was; how far it came is told, and what time the whole may take.
    """
    if all(note.code != "cut_off" for note in base.notes):
        return
    unreached = unreached_in(base)
    reached = len(base.outcomes) - unreached
    failed = len(base.failed) - unreached
    whole_s = base.wall_s * len(base.outcomes) / max(1, reached)
    told = (
        f"your tests were cut off after {base.wall_s:.0f} s: {len(base.passed):,} passed, {failed:,} failed, "
        f"{unreached:,} were not reached; all of them may take {whole_s:,.0f} s"
    )
    remedy = f"--seconds {_rounded(HEAL_RUNS * whole_s)}"
    if whole_s > context.settings.sandbox.test_timeout_s:
        remedy += f" --set sandbox.test_timeout_s={_rounded(LONGER * whole_s)}"
    used_s = context.budget.spend().seconds
    limit_s = context.budget.limits.seconds or context.settings.sandbox.test_timeout_s
    raise BudgetExceeded(
        "seconds", used_s, limit_s, message=told, remedy=f"{remedy}, or name fewer tests with --test"
    )


def _rounded(seconds: float) -> int:
    return 10 * ceil(seconds / 10)


async def _base(context: RunContext) -> Attempt:
    base = Candidate(files={}, origin="user", label="the code as it is")
    verdict = await judge(base, await context.load_suite(), context)
    attempt = Attempt(
        candidate=base.hash,
        blob=context.keep(base),
        origin="user",
        round=BEFORE_THE_ROUNDS,
        start=BEFORE_THE_ROUNDS,
        label=base.label,
    )
    return with_verdict(attempt, verdict, None, context)
