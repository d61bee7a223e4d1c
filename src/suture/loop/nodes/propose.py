"""Propose: carry out one move, which produces one candidate. The branches of a round run at the same time."""

from __future__ import annotations

import asyncio
import math
from typing import Any, TypedDict

from langgraph.runtime import Runtime

from suture.agents.calling.coder_call import ask_coder
from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.conversation import converse
from suture.agents.conversation.task_briefing import make_briefing
from suture.agents.replies.coder_reply import files_from_reply
from suture.agents.replies.repaired_files import read_repaired_files
from suture.agents.replies.written_files import surplus_files_in_reply
from suture.agents.roles.coder import RepairBrief, TextBrief
from suture.agents.roles.project_coder import ProjectBrief, files_from_project_reply
from suture.core.ledger import first_payload, in_round_branch
from suture.core.ledger.kinds import ModelCalled, MoveFailed
from suture.core.records import Move, Reason, decode_record
from suture.errors import (
    BudgetExceeded,
    MalformedReply,
    MissingAnswer,
    ModelAuthError,
    ModelError,
    PrerequisiteError,
    SandboxError,
    UnchangedCode,
)
from suture.judge import Suite
from suture.loop.briefing import brief_for_move
from suture.loop.context import RunContext, coder_role, load_deciding_suite
from suture.loop.evaluation.flaky_repairs import describe_flaky_tests
from suture.loop.evaluation.move_candidates import JudgedPatches, MoveCandidates, WrittenFiles
from suture.loop.policy.attempts import Attempt, ProposalFault
from suture.loop.roles.planning import PlannedWriting, load_plan, write_planned_files
from suture.loop.state import LoopState, encode_attempts, judged_attempts, role_contributions
from suture.project.workspace import overlay_candidate


class RoundBranch(TypedDict):
    """The input of one branch of a round: its move, its number, and the state to work from."""

    move: dict[str, Any]
    branch: int
    state: LoopState


async def propose(state: RoundBranch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Produce one candidate.

    A move fails if the reply is malformed or the model fails. The move is then used up and produces no candidate. The
    failure is an attempt with a fault and not an exception, so that the other branches of the round continue.
    """
    context = runtime.context
    with in_round_branch(state["state"]["round"], state["branch"]):
        async with context.calls.reply_turn():
            attempts = await _carry_out(decode_record(Move, state["move"]), state["state"], context)
            return {"proposals": encode_attempts(attempts)}


async def _carry_out(move: Move, state: LoopState, context: RunContext) -> list[Attempt]:
    """Return the attempts of a move, or one with a fault in place of a candidate if the move failed."""
    try:
        return await _make_proposals(move, state, context)
    except (ModelAuthError, asyncio.CancelledError):
        raise
    except (ModelError, BudgetExceeded) as fault:
        never_answered = first_payload(context.ledger.events, ModelCalled) is None
        if isinstance(fault, PrerequisiteError) and never_answered:
            raise  # No model has answered in this run yet: the user has to change something.
        return [_record_failure(state, fault, context)]
    except PrerequisiteError as fault:
        if isinstance(fault, SandboxError) or coder_role(state, context) == "coder":
            raise  # The user has to change something.
        # The stronger model cannot be asked. The run continues with what it had before it escalated.
        return [_record_failure(state, fault, context)]


async def _make_proposals(move: Move, state: LoopState, context: RunContext) -> list[Attempt]:
    """Return the candidate of a move, or the patches of a conversation, which are judged already."""
    attempts = judged_attempts(state)
    parent = next((attempt for attempt in attempts if attempt.candidate == move.parent), None)
    suite = await load_deciding_suite(role_contributions(state), context)
    candidates = MoveCandidates(move=move, parent=parent, suite=suite, state=state, context=context)
    if move.kind == "agent":
        patches = JudgedPatches(candidates)
        await converse(_make_agent_turn(move, parent, state, context, suite), patches)
        return patches.attempts
    written = await _write_files(move, parent, state, context, suite)
    return [candidates.propose(written, _make_label(move))]


async def _write_files(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> WrittenFiles:
    coder = coder_role(state, context)
    contributions = role_contributions(state)
    plan = load_plan(contributions, context)
    if plan is not None and move.kind == "sample":
        writing = PlannedWriting(
            plan=plan,
            lessons=contributions.lessons,
            move=move,
            suite=suite,
            coder=coder,
            context=context,
        )
        return WrittenFiles(files=await write_planned_files(writing))
    brief = brief_for_move(move, parent, state, context, suite)
    brief, reply = await ask_coder(brief, move, coder, context.calls, use_prefill=context.recipe.lean)
    if isinstance(brief, ProjectBrief):
        return WrittenFiles(files=files_from_project_reply(reply, brief), call=reply.call_hash)
    if isinstance(brief, TextBrief):
        return WrittenFiles(files=read_repaired_files(reply, brief), call=reply.call_hash)
    files = files_from_reply(reply, brief)
    return WrittenFiles(
        files=files,
        call=reply.call_hash,
        shown=tuple(sorted(brief.files)) if isinstance(brief, RepairBrief) else (),
        surplus=surplus_files_in_reply(reply, brief, files),
    )


def _make_agent_turn(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> AgentTurn:
    parent_files = context.candidates.load(parent.blob).files if parent else {}
    verdict = context.candidates.load_verdict(parent.verdict) if parent else None
    return AgentTurn(
        move=move,
        files=overlay_candidate(context.task.files, parent_files),
        parent_files=parent_files,
        verdict=verdict,
        baseline=context.candidates.baseline_verdict(state),
        briefing=make_briefing(
            context.task,
            verdict,
            context.trust_threshold,
            (*describe_flaky_tests(context), *state["hints"]),
        ),
        suite=suite,
        calls=context.calls,
        scan=context.safety.scan,
        coder=coder_role(state, context),
        max_steps=context.recipe.agent_steps,
    )


def _record_failure(
    state: LoopState, fault: ModelError | BudgetExceeded | PrerequisiteError, context: RunContext
) -> Attempt:
    """Record that a move produced no candidate, and return the attempt with the reason."""
    context.ledger.append(MoveFailed(error_type=type(fault).__name__, message=str(fault)))
    kind: ProposalFault = "model"
    refusal: Reason | None = None
    if isinstance(fault, MissingAnswer) and fault.reason != "empty":
        kind = "no_answer"
    elif isinstance(fault, UnchangedCode):
        kind = "unchanged"
    elif isinstance(fault, MalformedReply):
        kind = "malformed"
    elif isinstance(fault, BudgetExceeded):
        kind = "budget"
        refusal = Reason(
            code="next_call_over_budget",
            detail=fault.message,
            fault=fault.kind,
            limit=math.ceil(fault.limit),
        )
    return Attempt(
        candidate="",
        origin="",
        round=state["round"],
        start=state["round"],
        fault=kind,
        refusal=refusal,
        fault_message=ascii(str(fault)),  # A lone surrogate from a reply must not enter a checkpoint.
    )


def _make_label(move: Move) -> str:
    sampling = "greedy" if move.temperature == 0 else f"T={move.temperature:g}"
    if move.kind == "repair":
        return f"repair {move.index + 1}, {move.strategy}, {sampling}"
    return f"sample {move.index + 1}, {sampling}"
