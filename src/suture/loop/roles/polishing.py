"""Simplify code that passes."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from functools import partial

from suture.agents.roles.coder import RepairBrief
from suture.agents.roles.optimiser import draft_optimiser_prompt, optimised_files
from suture.core.ledger.kinds import CandidateOptimised
from suture.core.records import Candidate
from suture.judge import Suite, find_protected_files
from suture.loop.briefing import make_role_call
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge_at_once
from suture.loop.policy.attempts import Attempt
from suture.loop.services.candidate_store import Lineage
from suture.loop.state import LoopState, add_judged_attempt, judged_attempts
from suture.project.python_source.parsing import parse_module


async def simplify(
    brief: RepairBrief, attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> LoopState:
    """Have the optimiser simplify code that passes, and return the state with its version as a candidate.

    A version is simpler if it has fewer nodes in its syntax trees. A version that is not simpler, or does not
    pass every deciding check, is recorded in the ledger and discarded.
    """
    optimiser = make_role_call("optimiser", state, context)
    written = await optimiser.parse_or_degrade(
        partial(draft_optimiser_prompt, brief), lambda reply: optimised_files(reply, brief)
    )
    original = context.candidates.load(attempt.blob)
    if written is None or find_protected_files(written, suite):
        return state
    candidate = Candidate(
        files={**original.files, **written}, origin="repair", parent=original.hash, label="made simpler"
    )
    original_nodes, new_nodes = _count_nodes(original, brief), _count_nodes(candidate, brief)
    event = CandidateOptimised(
        candidate=candidate.hash,
        original=original.hash,
        nodes=(original_nodes, new_nodes),
        accepted=False,
    )
    was_judged = any(candidate.hash == judged.candidate for judged in judged_attempts(state))
    if was_judged or new_nodes >= original_nodes:
        context.ledger.append(event)
        return state
    lineage = Lineage(round=attempt.round, start=attempt.start, depth=attempt.depth)
    simplified = await judge_at_once(candidate, lineage, suite, state, context)
    context.ledger.append(replace(event, accepted=simplified.solved))
    if not simplified.solved:
        return state
    # It passes the same checks as the original: a higher rank makes it the best candidate.
    return add_judged_attempt(state, replace(simplified, rank=(attempt.rank or 0) + 1))


def _count_nodes(candidate: Candidate, brief: RepairBrief) -> int:
    """Return the number of syntax tree nodes in the files that the optimiser saw.

    A file that does not parse counts as larger than any other, so that a version with it is never simpler.
    """
    texts = [candidate.files.get(path, text) for path, text in brief.files.items()]
    trees = [parse_module(text) for text in texts]
    return sum(sys.maxsize if tree is None else sum(1 for _ in ast.walk(tree)) for tree in trees)
