"""Prepare: build the suite, judge the code as it is, and let roles contribute before the first move."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger.kinds import NonCodeFailure, TaskPrepared, TriageFinished
from suture.core.records import FLAKY_CAUSES, Task, Verdict, encode_record
from suture.errors import BudgetExceeded
from suture.judge import (
    TriageResult,
    extract_calls,
    find_unread_calls,
    find_unread_examples,
    triage_endless_tests,
    triage_failures,
)
from suture.judge.extraction.doctest_examples import find_requested_functions
from suture.judge.extraction.prose_examples import read_examples
from suture.judge.smoke.smoke_plan import list_step_ids, plan_smoke_groups
from suture.loop.briefing import recall_memories
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import count_unreached, judge, with_verdict
from suture.loop.evaluation.search_setup import UNCHANGED, run_first_tests, start_baseline
from suture.loop.policy.attempts import Attempt
from suture.loop.roles.generated_tests import read_unread_examples, write_tests_from_task
from suture.loop.roles.planning import make_plan
from suture.loop.services.candidate_store import SEARCH_ROUND
from suture.loop.services.suite_provider import FirstTests
from suture.loop.state import LoopState, encode_attempts, role_contributions
from suture.loop.tuning import BUSY_MACHINE_FACTOR, HEAL_RUNS, MAX_LISTED_TESTS
from suture.project.languages import LANGUAGES
from suture.project.languages.diagnostics import require_tool


async def prepare(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Collect the checks; for a `heal` task, run them on the code as it is."""
    context, task = runtime.context, runtime.context.task
    first = await _load_suite(context)
    trusted_count = sum(check.trust >= context.trust_threshold for check in task.checks)
    # A test command counts as one check, and so does starting the project.
    command_count = bool(task.full_command) + bool(task.project and task.project.kind)
    context.ledger.append(_make_prepared_event(trusted_count, context))
    update: dict[str, Any] = {"checks": trusted_count + command_count}
    if task.kind != "heal":
        await recall_memories(None, context)
        return update
    async with context.budget.time_limit():
        suite = await context.suites.load()
        triage = TriageResult() if task.tests_only_guard else await triage_endless_tests(suite)
    if triage.cause:
        return {**update, **await _record_triage(triage, context)}
    attempt = await _judge_baseline(first.verdict, context)
    verdict = context.candidates.load_verdict(attempt.verdict)
    _require_complete_run(verdict, context)
    update["judged"] = encode_attempts([attempt])
    if attempt.failed:
        await recall_memories(verdict, context)
        # Find out whether the code is at fault at all, before anything is spent on a repair.
        async with context.budget.time_limit():
            suite = await context.suites.load()
            triage = first.triage or await triage_failures(
                suite, verdict, start_baseline(suite, verdict, context)
            )
        update |= await _record_triage(triage, context)
        suite = await context.suites.load()
        if suite.flaky_tests:
            await context.prefetch.close()  # the trials that were started still wait for these tests to pass
            deciding = suite.leave_out_flaky_tests(verdict)
            update["judged"] = encode_attempts([with_verdict(attempt, deciding, None, context)])
    return update


async def equip(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask the roles that plan and write tests before the first move, if the recipe wants them."""
    context = runtime.context
    if state["cause"] or context.task.kind != "write":
        return {}  # The run is over, or there is code already and nothing to plan.
    earlier = role_contributions(state)
    contributions = await make_plan(earlier, state, context)
    unread = find_unused_examples(context.task)
    contributions = await read_unread_examples(unread, contributions, state, context)
    contributions = await write_tests_from_task(contributions, state, context)
    return {"contributions": encode_record(contributions)} if contributions != earlier else {}


async def _load_suite(context: RunContext) -> FirstTests:
    """Run the first tests, which may have been started when the run was opened."""
    try:
        async with context.budget.time_limit():
            first_tests, context.prefetch.first_tests = context.prefetch.first_tests, None
            first = await (first_tests or run_first_tests(context))
        context.record_substitution()
        return first
    except BudgetExceeded as fault:
        if context.task.kind != "heal":
            raise
        message = f"the first run of your tests had not ended after {fault.limit:g} s"
        remedy = f"allow more time, such as --seconds {2 * fault.limit:g} (budget.seconds)"
        raise BudgetExceeded(fault.kind, fault.used, fault.limit, message=message, remedy=remedy) from fault


def _make_prepared_event(trusted_count: int, context: RunContext) -> TaskPrepared:
    task, interpreter = context.task, context.interpreter
    toolchain = interpreter.toolchain if interpreter else None
    python = interpreter if toolchain is None else None
    smoke_steps = len(list_step_ids(plan_smoke_groups(task))) if task.project else 0
    return TaskPrepared(
        checks=trusted_count + smoke_steps,
        test_command=task.full_command,
        test_origin=task.test_origin,
        language=task.language,
        toolchain=toolchain.program if toolchain else "",
        python=python.executable if python else "",
        python_origin=python.origin if python else "",
        unused_examples=find_unused_examples(task),
        inferred_examples=_find_inferred_examples(task),
        tools=tuple(require_tool(argv).tool.name for argv in task.tools),
    )


def find_unused_examples(task: Task) -> tuple[str, ...]:
    """Return the examples in the statement that could not become checks."""
    if task.kind != "write" or not task.entry_point:
        return ()
    calls = LANGUAGES[task.language].calls
    if calls is None:
        return find_unread_examples(task.statement, task.entry_point)
    unread = list(find_unread_calls(task.statement, task.entry_point, calls))
    # Only one function of such a program is called, so an example of another one cannot become a check.
    for name in sorted(find_requested_functions(task.statement, task.entry_point) - {task.entry_point}):
        unread += (check.source.strip() for check in extract_calls(task.statement, name, calls))
        unread += find_unread_calls(task.statement, name, calls)
    return tuple(dict.fromkeys(unread))


def _find_inferred_examples(task: Task) -> tuple[str, ...]:
    """Return the checks whose call the statement does not show."""
    if task.kind != "write" or not LANGUAGES[task.language].parsed:
        return ()
    checks = {check.id for check in task.checks}
    inferred = read_examples(task.statement, task.entry_point).inferred
    return tuple(example.removeprefix("assert ") for example in inferred if example in checks)


async def _judge_baseline(known: Verdict | None, context: RunContext) -> Attempt:
    """Return the user's own code as the first attempt, with its verdict, which may be known."""
    verdict = await judge(UNCHANGED, await context.suites.load(), context, known=known)
    attempt = Attempt(
        candidate=UNCHANGED.hash,
        blob=context.candidates.save(UNCHANGED),
        origin="user",
        round=SEARCH_ROUND,
        start=SEARCH_ROUND,
        label=UNCHANGED.label,
    )
    return with_verdict(attempt, verdict, None, context)


async def _record_triage(result: TriageResult, context: RunContext) -> dict[str, Any]:
    command = (await context.suites.load()).command
    context.ledger.append(
        TriageFinished(
            cause=result.ending_cause,
            non_code_failures=list_recorded_failures(result.not_code),
            code_failure_count=len(result.code_failures),
            rootdir=command.rootdir if command is not None else ".",
        )
    )
    return {"cause": result.ending_cause or "", "cause_detail": result.reason}


def list_recorded_failures(failures: Sequence[NonCodeFailure]) -> tuple[NonCodeFailure, ...]:
    """Return the failures that the ledger records: the first ones, and all flaky ones, which do not decide."""
    return tuple(
        failure
        for number, failure in enumerate(failures)
        if number < MAX_LISTED_TESTS or failure.cause in FLAKY_CAUSES
    )


def _require_complete_run(baseline: Verdict, context: RunContext) -> None:
    """End the run if the first run of the tests was cut off: each verdict on a change would take as long.

    Raises:
        BudgetExceeded: The tests were cut off. The message says how far they came, and estimates how long all
            of them take.
    """
    if all(note.code != "cut_off" for note in baseline.notes):
        return
    unreached = count_unreached(baseline)
    reached = len(baseline.outcomes) - unreached
    failed = len(baseline.failed) - unreached
    estimate_s = baseline.wall_s * len(baseline.outcomes) / max(1, reached)
    timeout_s = context.settings.sandbox.test_timeout_s
    message = (
        f"your tests were cut off after {baseline.wall_s:.0f} s: {len(baseline.passed):,} passed, "
        f"{failed:,} failed, {unreached:,} were not reached; all of them may take {estimate_s:,.0f} s"
    )
    remedy = f"--seconds {_round_up_to_ten(HEAL_RUNS * estimate_s)}"
    if estimate_s > timeout_s:
        remedy += f" --set sandbox.test_timeout_s={_round_up_to_ten(BUSY_MACHINE_FACTOR * estimate_s)}"
    raise BudgetExceeded(
        "seconds",
        context.budget.spend().seconds,
        context.budget.limits.seconds or timeout_s,
        message=message,
        remedy=f"{remedy}, or name fewer tests with --test",
    )


def _round_up_to_ten(seconds: float) -> int:
    return 10 * ceil(seconds / 10)
