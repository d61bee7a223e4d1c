"""One run, from its first event to its last: the loop's edge, where faults become outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from suture.core.ledger import open_reservations, result_of
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    ReviewAsked,
    RunRefused,
    RunResumed,
)
from suture.core.records import Outcome, Result, from_plain
from suture.errors import (
    BudgetExceeded,
    Cancelled,
    PrerequisiteError,
    SandboxError,
    StorageError,
    SutureError,
    UsageError,
)
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import with_verdict
from suture.loop.evaluation.proving import Proven
from suture.loop.graph import Compiled, build_graph
from suture.loop.nodes.finish import prove_best, write_result
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.resuming.forking import begin, enter, unstarted_fork, rewind
from suture.loop.resuming.interrupts import answer_to
from suture.loop.resuming.recorded import recorded_start, started_with
from suture.loop.review.reviewing import review_of
from suture.loop.run_spec import ForkStart
from suture.loop.state import LoopState, first_state, tried_in, with_tried

Entry = LoopState | Command[str] | None
"""What the graph is given: a first state, an answer, or nothing where it goes on from its checkpoint."""


async def run_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any]) -> Result:
    """Run a task to its outcome.

    Every way to end leaves its last event in the ledger: `run.refused` where the task cannot be worked with,
    else `run.finished` with the best candidate so far.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        ModelAuthError: The provider refused the key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    context.ledger.append(started_with(context))
    return await _to_the_end(context, build_graph(checkpointer), first_state(context.folder.id))


async def fork_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any], start: ForkStart) -> Result:
    """Run a task to its outcome from where another run was; raises as `run_task` does."""
    graph = build_graph(checkpointer)
    started = started_with(context)
    try:
        await begin(start, started, context, graph)
    except (Exception, asyncio.CancelledError) as fault:
        if not context.ledger.events:
            context.ledger.append(replace(started, forks=unstarted_fork(start)))
        return await _ended_by(fault, context, graph)
    return await _to_the_end(context, graph, None)


async def resume_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any]) -> Result:
    """Go on with a run from its last checkpoint; raises as `run_task` does.

    Its process was killed, or it waits, or it ended by a fault of the machinery or because the user stopped
    it (see `RecordedRun.require_resumable`).

    Replies that were received are in the run folder and are not paid for again. What was being done when
    the process went away is done again: its tokens stay booked in full, its attempt is given back.

    Args:
        context: What the run works with; its ledger holds the run up to now.
        checkpointer: The one that the run was started with.
    """
    for reservation in open_reservations(context.ledger.events):
        context.budget.write_off(reservation)
    graph = build_graph(checkpointer)
    reached = await graph.aget_state(_config(context))
    if _has_begun(reached.values) and not reached.next:
        await rewind(context, graph)
        reached = await graph.aget_state(_config(context))
    context.ledger.append(RunResumed(at=tuple(reached.next), project=str(context.spec.project)))
    if _has_begun(reached.values):
        return await _to_the_end(context, graph, None)
    start = recorded_start(context.folder, context.ledger.events)
    if start is None:
        return await _to_the_end(context, graph, first_state(context.folder.id))
    await enter(start.state, context, graph)
    return await _to_the_end(context, graph, None)


async def _to_the_end(context: RunContext, graph: Compiled, entry: Entry) -> Result:
    try:
        while True:
            ended = await _worked_off(context, graph, entry)
            if isinstance(ended, Result):
                return ended
            entry = await _answered(ended, context, graph)
            if entry is None:
                return await _parked(ended, context, graph)
    except asyncio.CancelledError as fault:
        return await _ended_by(fault, context, graph)
    finally:
        await context.let_go()


def _has_begun(values: Mapping[str, Any]) -> bool:
    """Whether a checkpoint holds a whole state: the very first holds none yet."""
    return "schema_version" in values


async def _answered(question: Mapping[str, Any], context: RunContext, graph: Compiled) -> Command[str] | None:
    """The answer as what the graph goes on with; a run whose reviewer fails is parked, and loses nothing."""
    try:
        answer = await answer_to(question, context)
    except Exception:
        await _parked(question, context, graph)
        raise
    return None if answer is None else Command(resume=answer)


async def _parked(question: Mapping[str, Any], context: RunContext, graph: Compiled) -> Result:
    snapshot = await graph.aget_state(_config(context))
    asked = review_of(context.folder, from_plain(ReviewAsked, question)).question
    return write_result(cast(LoopState, snapshot.values), context, "waiting", asked)


async def _worked_off(context: RunContext, graph: Compiled, entry: Entry) -> Result | Mapping[str, Any]:
    """The result, or the question that a person has to answer first."""
    try:
        reached = await graph.ainvoke(entry, _config(context), context=context, durability="sync")
    except Exception as fault:
        return await _ended_by(fault, context, graph)
    for asked in reached.get("__interrupt__", ()):
        question: Mapping[str, Any] = asked.value
        return question
    result = result_of(context.folder)
    assert result is not None  # the graph's last node writes it
    return result


async def _ended_by(fault: BaseException, context: RunContext, graph: Compiled) -> Result:
    """The last event of a run that a fault ended; what the result does not tell is raised again."""
    if isinstance(fault, SutureError):
        fault.stopped_run = context.folder.id
    if isinstance(fault, asyncio.CancelledError):
        await _end(context, graph, "cancelled", "stopped by the user")
        stopped = Cancelled("stopped", remedy=f"see `suture show {context.folder.id}`")
        stopped.stopped_run = context.folder.id
        raise stopped from None
    if isinstance(fault, BudgetExceeded):
        return await _end(context, graph, "budget_exhausted", str(fault))
    if isinstance(fault, StorageError):
        raise fault  # there is nowhere left to write to
    if isinstance(fault, (UsageError, PrerequisiteError)):
        context.ledger.append(RunRefused(kind=type(fault).__name__, message=str(fault)))
        raise fault
    result = await _end(context, graph, "infra_error", f"{type(fault).__name__}: {fault}")
    if isinstance(fault, SandboxError):
        return result
    raise fault


def _config(context: RunContext) -> RunnableConfig:
    return {"configurable": {"thread_id": context.folder.id}, "recursion_limit": 10_000}


async def _end(context: RunContext, graph: Compiled, outcome: Outcome, reason: str) -> Result:
    """Name the outcome of a run that did not reach its last node, and keep the best it had."""
    snapshot = await graph.aget_state(_config(context))
    state = cast(LoopState, {**first_state(context.folder.id), **snapshot.values})
    state = with_judged_candidates(state, context)
    best = best_of(tried_in(state))
    proven = None
    approved = context.settings.loop.autonomy != "review_all"
    if outcome != "cancelled" and approved and best is not None and best.solved and best.origin != "user":
        if outcome == "budget_exhausted":
            proven = await _proven(state, context)
        outcome, reason = "healed", f"every trusted check passes ({reason})"
    return write_result(state, context, outcome, reason, proven)


async def _proven(state: LoopState, context: RunContext) -> Proven | None:
    """As `prove_best`; where the wall fails now too, the candidate is handed over without a proof."""
    try:
        return await prove_best(state, context)
    except (SandboxError, PrerequisiteError, UsageError):
        return None


def with_judged_candidates(state: LoopState, context: RunContext) -> LoopState:
    """The state, and in it every candidate that was judged before the end: the ledger is the record."""
    tried = tried_in(state)
    known = {entry.candidate for entry in tried}
    proposed: dict[str, CandidateProposed] = {}
    found: list[Attempt] = []
    for event in context.ledger.events:
        match event.payload:
            case CandidateProposed() as one:
                proposed.setdefault(one.candidate, one)
            case CandidateChecked(candidate=name, verdict=blob) if name in proposed and name not in known:
                known.add(name)
                found.append(_attempt(proposed[name], blob, state, context))
    return with_tried(state, (*tried, *found))


def _attempt(proposed: CandidateProposed, blob: str, state: LoopState, context: RunContext) -> Attempt:
    attempt = Attempt(
        candidate=proposed.candidate,
        blob=proposed.blob,
        label=proposed.label,
        origin=proposed.origin,
        round=state["round"],
        start=state["round"],
    )
    return with_verdict(attempt, context.verdict(blob), context.base_verdict(state), context)
