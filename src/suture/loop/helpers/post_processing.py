"""After success: code that works is made simpler, and read for its security and quality."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from functools import partial

from suture.agents import RepairBrief
from suture.agents.roles.advisers import ReviewReply, review_draft
from suture.agents.roles.optimiser import OptimiseBrief, optimise_draft, optimised_files
from suture.core.ledger.kinds import Optimised, Reviewed
from suture.core.records import Candidate
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, judged_attempt
from suture.loop.policy.progress import Attempt
from suture.loop.proposing import Lineage, propose_candidate
from suture.loop.state import LoopState, tried_in, with_tried
from suture.project.python_source.parsing import parsed


async def optimised(
    brief: RepairBrief, entry: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> LoopState:
    """The state with a simpler version of code that passes, where the optimiser writes one that passes too.

    Simpler is measured, not claimed: fewer nodes in the syntax tree. What does not pass every trusted check,
    or is no simpler, is told in the ledger and left.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    question = OptimiseBrief(statement=brief.statement, files=brief.files, entry_point=brief.entry_point)
    optimiser = Consultation(helper="optimiser", context=context, round=state["round"])
    written = await optimiser.read_or_none(
        partial(optimise_draft, question), lambda reply: optimised_files(reply, question)
    )
    before = context.candidate(entry.blob)
    if written is None or refused_files(written, suite):
        return state
    candidate = Candidate(
        files={**before.files, **written}, origin="repair", parent=before.hash, label="made simpler"
    )
    nodes = (_size(before, brief), _size(candidate, brief))
    event = Optimised(candidate=candidate.hash, of=before.hash, nodes=nodes, kept=False)
    if candidate.hash in {one.candidate for one in tried_in(state)} or nodes[1] >= nodes[0]:
        context.ledger.append(event)
        return state
    judged = await _judged(candidate, entry, suite, state, context)
    context.ledger.append(replace(event, kept=judged.solved))
    if not judged.solved:
        return state
    return with_tried(state, (*tried_in(state), replace(judged, rank=(entry.rank or 0) + 1)))


async def reviewed(brief: RepairBrief, entry: Attempt, state: LoopState, context: RunContext) -> None:
    """What a reviewer finds in code that passes, in the ledger for people."""
    reviewer = Consultation(helper="reviewer", context=context, round=state["round"])
    reply = await reviewer.typed_or_none(partial(review_draft, brief), ReviewReply)
    if reply is not None:
        context.ledger.append(Reviewed(candidate=entry.candidate, review=reply.record()))


async def _judged(
    candidate: Candidate, entry: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> Attempt:
    lineage = Lineage(round=entry.round, start=entry.start, depth=entry.depth)
    proposal = propose_candidate(candidate, lineage, context)
    verdict = await judge(candidate, suite, context)
    return judged_attempt(proposal, verdict, context.base_verdict(state), context)


def _size(candidate: Candidate, brief: RepairBrief) -> int:
    """Nodes of the syntax trees of the files that the optimiser saw."""
    texts = [candidate.files.get(path, text) for path, text in brief.files.items()]
    trees = [parsed(text) for text in texts]
    return sum(sys.maxsize if tree is None else sum(1 for _ in ast.walk(tree)) for tree in trees)
