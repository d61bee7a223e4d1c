"""Propose: one move, one model call, one candidate. The branches of a round run at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypedDict

from langgraph.runtime import Runtime

from suture.agents import RepairBrief, files_from_reply
from suture.agents.replies.coder_reply import surplus_in_reply
from suture.agents.roles.project_coder import ProjectBrief, files_from_project_reply
from suture.agents.roles.text_coder import TextBrief, files_from_text_reply
from suture.core.ledger import branch_of_round, first_of
from suture.core.ledger.kinds import ModelCalled, MoveFailed
from suture.core.records import Candidate, Move, from_plain
from suture.errors import (
    BudgetExceeded,
    MalformedReply,
    ModelAuthError,
    ModelError,
    PrerequisiteError,
    SandboxError,
)
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.agents.work import work_of_agent
from suture.loop.calls.fit_and_call import answered
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.helpers.planning import plan_of, planned_files
from suture.loop.policy.progress import Attempt, FaultKind
from suture.loop.prompting.briefs import brief_for
from suture.loop.proposing import Lineage, Proposed, propose_candidate
from suture.loop.state import LoopState, aids_of, plain_attempts, tried_in
from suture.sandbox.packages import AddedPackages, PackagesRefused


class Branch(TypedDict):
    """What one branch of the fan-out gets: its move and the state to work from."""

    move: dict[str, Any]
    branch: int
    state: LoopState


async def propose(state: Branch, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Make one candidate.

    A malformed reply, and a model that fails, use up the move and bring no candidate: that is a value here,
    so that the other branches of the round go on.
    """
    context = runtime.context
    with branch_of_round(state["state"]["round"], state["branch"]):
        async with context.in_turn():
            return {"proposals": plain_attempts([await _carried_out(state, context)])}


async def _carried_out(branch: Branch, context: RunContext) -> Attempt:
    try:
        return await _proposal(from_plain(Move, branch["move"]), branch["state"], context)
    except (ModelAuthError, asyncio.CancelledError):
        raise
    except (ModelError, BudgetExceeded) as fault:
        if isinstance(fault, PrerequisiteError) and first_of(context.ledger.events, ModelCalled) is None:
            raise  # nobody answers and nobody ever did: that is for the user to set right
        context.ledger.append(MoveFailed(kind=type(fault).__name__, message=str(fault)))
        return _nothing(branch["state"], fault)
    except PrerequisiteError as fault:
        if isinstance(fault, SandboxError) or context.coder(branch["state"]) == "coder":
            raise  # for the user to set right; but what came before an escalation is not thrown away
        context.ledger.append(MoveFailed(kind=type(fault).__name__, message=str(fault)))
        return _nothing(branch["state"], fault)


async def _proposal(move: Move, state: LoopState, context: RunContext) -> Attempt:
    parent = next((entry for entry in tried_in(state) if entry.candidate == move.parent), None)
    suite = await deciding_suite(aids_of(state), context)
    made = await _made(move, parent, state, context, suite)
    written = _as_asked(made.files, suite)
    inherited = dict(context.candidate(parent.blob).files) if parent else {}
    allowed = _allowed({**inherited, **written}, suite)
    candidate = Candidate(
        files=allowed,
        origin="sample" if move.kind == "sample" or parent is None else "repair",
        parent=move.parent,
        label=_label(move, context),
    )
    known = Proposed(
        call=made.call,
        shown=made.shown,
        written=tuple(sorted(path for path in written if path in allowed)),
        surplus=tuple(sorted({*made.surplus, *(path for path in written if path not in allowed)})),
    )
    return propose_candidate(candidate, _lineage(state["round"], parent), context, known)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What a model wrote: the files, the call that brought them where it was one, the files it had seen, and
    the names of files that nothing was made of.
    """

    files: dict[str, str]
    call: str = ""
    shown: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()


async def _made(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> _Made:
    if move.kind == "agent":
        worked = await work_of_agent(move, parent, state, context, suite)
        return _Made(files=worked.files, call=worked.call)
    aids, coder = aids_of(state), context.coder(state)
    plan = plan_of(aids, context)
    if plan is not None and move.kind == "sample":
        return _Made(files=await planned_files(plan, aids, move, context, suite, coder))
    brief, reply = await answered(brief_for(move, parent, state, context, suite), move, coder, context)
    if isinstance(brief, ProjectBrief):
        return _Made(files=files_from_project_reply(reply, brief), call=reply.call_hash)
    if isinstance(brief, TextBrief):
        return _Made(files=files_from_text_reply(reply, brief), call=reply.call_hash)
    shown = tuple(sorted(brief.files)) if isinstance(brief, RepairBrief) else ()
    files = files_from_reply(reply, brief)
    surplus = surplus_in_reply(reply, brief, files)
    return _Made(files=files, call=reply.call_hash, shown=shown, surplus=surplus)


def _as_asked(files: dict[str, str], suite: Suite) -> dict[str, str]:
    """The files, with what they ask for in the manifest of the project that is there.

    Raises:
        MalformedReply: They ask for what is not installed.
    """
    if not isinstance(suite.packages, AddedPackages):
        return files
    try:
        return suite.packages.as_asked(files)
    except PackagesRefused as fault:
        raise MalformedReply(f"no such packages are installed: {fault.why}") from fault


def _allowed(files: dict[str, str], suite: Suite) -> dict[str, str]:
    """The files without those that no candidate may write, so that what is judged is what is handed over.

    Raises:
        MalformedReply: Nothing is left.
    """
    refused = refused_files(files, suite)
    allowed = {path: text for path, text in files.items() if path not in refused}
    if not allowed:
        raise MalformedReply(f"the reply writes only files that are protected: {', '.join(refused)}")
    return allowed


def _lineage(number: int, parent: Attempt | None) -> Lineage:
    if parent is None or parent.origin == "user":
        return Lineage.beginning(number)
    return Lineage(round=number, start=parent.start, depth=parent.depth + 1)


def _nothing(state: LoopState, fault: ModelError | BudgetExceeded | PrerequisiteError) -> Attempt:
    number = state["round"]
    kind: FaultKind = (
        "malformed"
        if isinstance(fault, MalformedReply)
        else "budget"
        if isinstance(fault, BudgetExceeded)
        else "model"
    )
    return Attempt(
        candidate="",
        origin="",
        round=number,
        start=number,
        fault=kind,
        message=ascii(str(fault)),  # no half surrogate of a reply may enter a checkpoint
    )


def _label(move: Move, context: RunContext) -> str:
    if move.kind == "agent":
        return f"{'proposer' if context.has_proposer else 'agent'}, turn {move.index + 1}"
    how = "greedy" if move.temperature == 0 else f"T={move.temperature:g}"
    what = (
        f"repair {move.index + 1}, {move.strategy}" if move.kind == "repair" else f"sample {move.index + 1}"
    )
    return f"{what}, {how}"
