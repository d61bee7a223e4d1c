"""After success: code that works is made simpler, and read for its security and quality."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace

from suture.checks import Suite, refused_files
from suture.ledger.kinds import Optimised, Reviewed
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.edits import proposed_event
from suture.loop.evaluation.judging import judge, tried_entry
from suture.loop.state import LoopState, Proposal, TriedEntry
from suture.pysource.parsing import parsed
from suture.records import Candidate
from suture.roles import RepairBrief
from suture.roles.advisers.reviewer import ReviewBrief, ReviewReply, review_draft
from suture.roles.coding.optimiser import OptimiseBrief, optimise_draft, optimised_files

__all__ = ["optimised", "reviewed"]


async def optimised(
    brief: RepairBrief, entry: TriedEntry, suite: Suite, state: LoopState, context: RunContext
) -> LoopState:
    """The state with a simpler version of code that passes, where the optimiser writes one that passes too.

    Simpler is measured, not claimed: fewer nodes in the syntax tree. What does not pass every trusted check,
    or is no simpler, is told in the ledger and left.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    question = OptimiseBrief(statement=brief.statement, files=brief.files, entry_point=brief.entry_point)

    async def ask(asked: Consultation) -> dict[str, str]:
        return await asked.read(
            optimise_draft(question, asked.prompt), lambda reply: optimised_files(reply, question)
        )

    written = await Consultation(helper="optimiser", context=context, round=state["round"]).or_none(ask)
    before = context.candidate(entry["blob"])
    if written is None or refused_files(written, suite):
        return state
    candidate = Candidate(
        files={**before.files, **written}, origin="repair", parent=before.hash, label="made simpler"
    )
    nodes = (_size(before, brief), _size(candidate, brief))
    told = Optimised(candidate=candidate.hash, of=before.hash, nodes=nodes, kept=False)
    if candidate.hash in {one["candidate"] for one in state["tried"]} or nodes[1] >= nodes[0]:
        context.ledger.append(told)
        return state
    judged = await _judged(candidate, entry, suite, state, context)
    kept = context.tried(judged).solved
    context.ledger.append(replace(told, kept=kept))
    if not kept:
        return state
    return {**state, "tried": [*state["tried"], {**judged, "rank": entry.get("rank", 0) + 1}]}


async def reviewed(brief: RepairBrief, entry: TriedEntry, state: LoopState, context: RunContext) -> None:
    """What a reviewer finds in code that passes, in the ledger for people."""
    question = ReviewBrief(statement=brief.statement, files=brief.files)

    async def ask(asked: Consultation) -> ReviewReply:
        return await asked.typed(review_draft(question, asked.prompt), ReviewReply)

    reply = await Consultation(helper="reviewer", context=context, round=state["round"]).or_none(ask)
    if reply is not None:
        context.ledger.append(Reviewed(candidate=entry["candidate"], review=reply.record()))


async def _judged(
    candidate: Candidate, entry: TriedEntry, suite: Suite, state: LoopState, context: RunContext
) -> TriedEntry:
    blob = context.keep(candidate)
    context.ledger.append(proposed_event(candidate, blob))
    proposal = Proposal(
        candidate=candidate.hash,
        blob=blob,
        origin=candidate.origin,
        round=entry["round"],
        start=entry["start"],
        depth=entry["depth"],
        label=candidate.label,
        fault="",
        message="",
        parent=entry["candidate"],
    )
    verdict = await judge(candidate, suite, context)
    return tried_entry(proposal, verdict, context.base_verdict(state), context)


def _size(candidate: Candidate, brief: RepairBrief) -> int:
    """Nodes of the syntax trees of the files that the optimiser saw."""
    texts = [candidate.files.get(path, text) for path, text in brief.files.items()]
    trees = [parsed(text) for text in texts]
    return sum(sys.maxsize if tree is None else sum(1 for _ in ast.walk(tree)) for tree in trees)
