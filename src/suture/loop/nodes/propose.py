"""Propose: one move, one model call, one candidate. The branches of a round run at the same time."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.runtime import Runtime

from suture.checks import Suite, refused_files
from suture.errors import BudgetExceeded, MalformedReply, ModelAuthError, ModelError, ModelTimeout
from suture.ledger import branch_of_round
from suture.loop.briefs import brief_for, messages_for
from suture.loop.context import RunContext
from suture.loop.state import LoopState, Proposal, TriedEntry
from suture.models import Message, Reply, Sampling, count_upper_bound
from suture.records import Candidate, Move, from_plain
from suture.roles import files_from_reply, load_prompt

__all__ = ["Branch", "propose"]

LEAST_REPLY_TOKENS = 64
"""A reply that may be no longer than this is not worth asking for."""


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
    with branch_of_round(state["state"]["round"], state["branch"]):
        return {"proposals": [await _carried_out(state, runtime.context)]}


async def _carried_out(branch: Branch, context: RunContext) -> Proposal:
    try:
        return await _proposal(from_plain(Move, branch["move"]), branch["state"], context)
    except (ModelAuthError, asyncio.CancelledError):
        raise
    except (ModelError, BudgetExceeded) as fault:
        context.ledger.append("move.failed", {"kind": type(fault).__name__, "message": str(fault)})
        return _nothing(branch["state"], fault)


async def _proposal(move: Move, state: LoopState, context: RunContext) -> Proposal:
    parent = next((entry for entry in state["tried"] if entry["candidate"] == move.parent), None)
    suite = await context.load_suite()
    brief, shown = brief_for(move, parent, state, context, suite)
    reply = await _ask(messages_for(brief), move, context)
    written = files_from_reply(reply, brief)
    inherited = dict(context.candidate(parent["blob"]).files) if parent else {}
    candidate = Candidate(
        files=_allowed({**inherited, **written}, suite),
        origin="repair" if move.kind == "repair" else "sample",
        parent=move.parent,
        label=_label(move),
    )
    blob = context.keep(candidate)
    context.ledger.append(
        "candidate.proposed",
        {
            "candidate": candidate.hash,
            "blob": blob,
            "origin": candidate.origin,
            "parent": candidate.parent,
            "label": candidate.label,
            "call": reply.call_hash,
            "shown": sorted(shown),
            "files": sorted(written),
        },
    )
    return _entry(candidate, blob, state, parent)


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


def _entry(candidate: Candidate, blob: str, state: LoopState, parent: TriedEntry | None) -> Proposal:
    fresh = parent is None or parent["origin"] == "user"
    return Proposal(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        round=state["round"],
        start=state["round"] if fresh or parent is None else parent["start"],
        depth=0 if fresh or parent is None else parent["depth"] + 1,
        label=candidate.label,
        fault="",
        message="",
    )


def _nothing(state: LoopState, fault: ModelError | BudgetExceeded) -> Proposal:
    number = state["round"]
    kind = (
        "malformed"
        if isinstance(fault, MalformedReply)
        else "model"
        if isinstance(fault, ModelError)
        else "budget"
    )
    return Proposal(
        candidate="",
        blob="",
        origin="",
        round=number,
        start=number,
        depth=0,
        label="",
        fault=kind,
        message=ascii(str(fault)),  # no half surrogate of a reply may enter a checkpoint
    )


def _label(move: Move) -> str:
    how = "greedy" if move.temperature == 0 else f"T={move.temperature:g}"
    what = (
        f"repair {move.index + 1}, {move.strategy}" if move.kind == "repair" else f"sample {move.index + 1}"
    )
    return f"{what}, {how}"


async def _ask(messages: tuple[Message, ...], move: Move, context: RunContext) -> Reply:
    """One paid call: its cost is reserved first, and what it really cost is written down after."""
    budget = context.budget
    bound = count_upper_bound(messages)
    most = context.settings.model.max_tokens
    left = budget.remaining_tokens()
    if left is not None and left - bound < most:
        most = max(left - bound, LEAST_REPLY_TOKENS)
    reservation = budget.reserve(f"{move.kind} {move.index}", attempts=1, tokens=bound + most)
    sampling = Sampling(temperature=move.temperature, max_tokens=most, index=move.index)
    try:
        async with budget.time_limit():
            reply = await context.model.complete(messages, sampling)
    except MalformedReply:
        budget.settle(reservation, model_calls=1)
        raise
    except (BudgetExceeded, ModelTimeout):
        budget.write_off(reservation)
        raise
    except BaseException:
        budget.release(reservation)
        raise
    context.ledger.append(
        "model.called",
        {
            "call": reply.call_hash,
            "model": reply.model,
            "prompt": load_prompt("coder").hash,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "finish": reply.finish,
            "seconds": round(reply.seconds, 3),
            "replayed": reply.replayed,
        },
    )
    if reply.replayed and not reply.from_run:
        budget.settle(reservation)  # this run has paid for it before
    else:
        budget.settle(
            reservation,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            model_calls=0 if reply.replayed else 1,
        )
    return reply
