"""Run a task from its first event to its last. A fault that ends the run becomes its outcome."""

from __future__ import annotations

import asyncio
import contextlib
import math
from dataclasses import replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from suture.core.ledger import load_result, open_reservations
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    ForkPoint,
    ReviewAsked,
    RunFailed,
    RunResumed,
)
from suture.core.records import Outcome, Reason, Result, decode_record
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
from suture.loop.graph import CompiledGraph, build_graph
from suture.loop.nodes.finish import certify_best, write_result
from suture.loop.policy.attempts import find_best
from suture.loop.resume.forking import begin_fork, enter_state, rewind
from suture.loop.resume.recorded_run import load_fork_origin, make_start_event
from suture.loop.review.answering import get_answer
from suture.loop.run_spec import ForkOrigin
from suture.loop.services.candidate_store import Lineage, make_attempt
from suture.loop.state import LoopState, initial_state, judged_attempts, with_judged_attempts
from suture.loop.tuning import VERIFICATION_RUNS, VERIFICATION_S

GraphInput = LoopState | Command[str] | None
"""The input of the graph: a first state, an answer, or `None` to continue from its checkpoint."""


async def run_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any]) -> Result:
    """Run a task to its outcome.

    Every ending is the last event of the ledger: `run.failed` if the task cannot be worked with, else
    `run.finished` with the best candidate so far.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: A sandbox, a model or a key is missing.
        ModelAuthError: The provider refused the key.
        Cancelled: The user stopped the run.
        StorageError: The run folder cannot be written.
    """
    context.ledger.append(make_start_event(context))
    return await _run_to_end(context, build_graph(checkpointer), initial_state(context.folder.id))


async def fork_task(
    context: RunContext, checkpointer: BaseCheckpointSaver[Any], origin: ForkOrigin
) -> Result:
    """Run a task to its outcome from where another run was; raises as `run_task` does."""
    graph = build_graph(checkpointer)
    started = make_start_event(context)
    try:
        await begin_fork(origin, started, context, graph)
    except (Exception, asyncio.CancelledError) as fault:
        if not context.ledger.events:
            # It failed before it had taken anything over, so the state has no blob.
            fork = ForkPoint(run=origin.run, step=origin.decision, state="", events=len(origin.events) + 1)
            context.ledger.append(replace(started, fork=fork))
        return await _end_by_fault(fault, context, graph)
    return await _run_to_end(context, graph, None)


async def resume_task(context: RunContext, checkpointer: BaseCheckpointSaver[Any]) -> Result:
    """Continue a run from its last checkpoint; raises as `run_task` does.

    Its process was killed, or it waits for an answer, or it ended because the machinery failed or the user
    stopped it (see `RecordedRun.require_resumable`).

    Replies that were received are in the run folder and are not paid for again. A model call that was in
    progress when the process ended is repeated: its tokens stay booked in full, and its attempt is given back.
    """
    for reservation in open_reservations(context.ledger.events):
        context.budget.write_off(reservation)
    graph = build_graph(checkpointer)
    snapshot = await graph.aget_state(_config(context))
    has_state = "schema_version" in snapshot.values  # The very first checkpoint of a run is empty.
    if snapshot.values.get("found_repairs"):
        _grant_verification_time(cast(LoopState, snapshot.values), context)
    if has_state and not snapshot.next:
        await rewind(context, graph)
        snapshot = await graph.aget_state(_config(context))
    context.ledger.append(RunResumed(next_nodes=tuple(snapshot.next), project=str(context.spec.project)))
    if has_state:
        return await _run_to_end(context, graph, None)
    origin = load_fork_origin(context.folder, context.ledger.events)
    if origin is None:
        return await _run_to_end(context, graph, initial_state(context.folder.id))
    await enter_state(origin.state, context, graph)
    return await _run_to_end(context, graph, None)


def _grant_verification_time(state: LoopState, context: RunContext) -> None:
    """Raise the run's limit of seconds so that the repairs that it has found can be verified."""
    limit_s, used_s = context.budget.limits.seconds, context.budget.spend().seconds
    baseline = context.candidates.baseline_verdict(state)
    run_s = baseline.wall_s if baseline is not None else 0.0
    needed_s = VERIFICATION_RUNS * run_s + VERIFICATION_S
    if limit_s is not None and limit_s < used_s + needed_s:
        context.budget.limits = replace(context.budget.limits, seconds=used_s + needed_s)


async def _run_to_end(context: RunContext, graph: CompiledGraph, graph_input: GraphInput) -> Result:
    """Run the graph, answering its questions, until there is a result."""
    try:
        while True:
            reached = await _run_until_question(context, graph, graph_input)
            if isinstance(reached, Result):
                return reached
            try:
                answer = await get_answer(reached, context)
            except Exception:  # A run whose reviewer fails waits for another answer and loses nothing.
                await _park(reached, context, graph)
                raise
            if answer is None:
                return await _park(reached, context, graph)
            graph_input = Command(resume=answer)
    except asyncio.CancelledError as fault:
        return await _end_by_fault(fault, context, graph)
    finally:
        await context.prefetch.close()


async def _park(question: ReviewAsked, context: RunContext, graph: CompiledGraph) -> Result:
    """Write the result of a run that waits for an answer."""
    snapshot = await graph.aget_state(_config(context))
    reason = Reason(
        code="waiting_for_answer", detail=question.stage, count=len(question.moves or question.examples)
    )
    return write_result(cast(LoopState, snapshot.values), context, "waiting", reason)


async def _run_until_question(
    context: RunContext, graph: CompiledGraph, graph_input: GraphInput
) -> Result | ReviewAsked:
    """Return the result, or the question that a person has to answer first."""
    try:
        reached = await graph.ainvoke(graph_input, _config(context), context=context, durability="sync")
    except Exception as fault:
        return await _end_by_fault(fault, context, graph)
    interrupts = reached.get("__interrupt__", ())
    if interrupts:  # There is only one: each node that asks runs alone, and asks once.
        return decode_record(ReviewAsked, interrupts[0].value)
    result = load_result(context.folder)
    assert result is not None  # The graph's last node has written it.
    return result


async def _end_by_fault(fault: BaseException, context: RunContext, graph: CompiledGraph) -> Result:
    """Record the end of a run that a fault ended; raise the fault unless the outcome describes it fully."""
    if isinstance(fault, SutureError):
        fault.stopped_run_id = context.folder.id
    if isinstance(fault, asyncio.CancelledError):
        await _end(context, graph, "cancelled", Reason(code="stopped_by_user"))
        cancelled = Cancelled("stopped", remedy=f"see `suture show {context.folder.id}`")
        cancelled.stopped_run_id = context.folder.id
        raise cancelled from None
    if isinstance(fault, BudgetExceeded):
        reason = Reason(
            code="budget_exceeded",
            detail=fault.message,
            fault=fault.kind,
            limit=math.ceil(fault.limit),
            remedy=fault.remedy,
        )
        return await _end(context, graph, "budget_exhausted", reason)
    if isinstance(fault, StorageError):
        raise fault  # The run folder cannot be written, so there is nowhere to record it.
    if isinstance(fault, (UsageError, PrerequisiteError)):
        context.ledger.append(RunFailed(error_type=type(fault).__name__, message=str(fault)))
        raise fault
    reason = Reason(code="fault", fault=type(fault).__name__, detail=str(fault))
    result = await _end(context, graph, "infra_error", reason)
    if isinstance(fault, SandboxError):
        return result
    raise fault


def _config(context: RunContext) -> RunnableConfig:
    # More steps than a run takes: the budget and the policy end it, and not LangGraph's limit.
    return {"configurable": {"thread_id": context.folder.id}, "recursion_limit": 10_000}


async def _end(context: RunContext, graph: CompiledGraph, outcome: Outcome, reason: Reason) -> Result:
    """Write the result of a run that did not reach its last node, with the best candidate that it had.

    A run that was cut off by its budget or a fault still counts as healed if a candidate passes; but not one
    that the user stopped, or whose delivery a person wants to review.
    """
    snapshot = await graph.aget_state(_config(context))
    state = cast(LoopState, {**initial_state(context.folder.id), **snapshot.values})
    state = _with_recorded_candidates(state, context)
    if outcome == "budget_exhausted" and state.get("found_repairs"):
        reason = replace(reason, notes=(*reason.notes, "repair_unverified"))
    best = find_best(judged_attempts(state))
    certified = None
    may_deliver = context.settings.loop.autonomy != "review_all" and outcome != "cancelled"
    if may_deliver and best is not None and best.solved and best.origin != "user":
        if outcome == "budget_exhausted":
            # If the sandbox fails too, the candidate is delivered without a certificate.
            with contextlib.suppress(SandboxError, PrerequisiteError, UsageError):
                certified = await certify_best(state, context)
        reason = replace(reason, code="checks_pass", cut_short_by=reason.code, notes=())
        outcome = "healed"
    return write_result(state, context, outcome, reason, certified)


def _with_recorded_candidates(state: LoopState, context: RunContext) -> LoopState:
    """Return the state with every candidate that was judged before the end, as the ledger records it."""
    judged = list(judged_attempts(state))
    judged_hashes = {attempt.candidate for attempt in judged}
    baseline = context.candidates.baseline_verdict(state)
    proposals: dict[str, CandidateProposed] = {}
    for event in context.ledger.events:
        match event.payload:
            case CandidateProposed() as proposal:
                proposals.setdefault(proposal.candidate, proposal)
            case CandidateChecked(candidate=candidate, verdict=blob):
                if candidate in proposals and candidate not in judged_hashes:
                    judged_hashes.add(candidate)
                    attempt = make_attempt(proposals[candidate], Lineage.beginning(state["round"]))
                    verdict = context.candidates.load_verdict(blob)
                    judged.append(with_verdict(attempt, verdict, baseline, context))
    return with_judged_attempts(state, judged)
