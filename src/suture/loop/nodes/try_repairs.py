"""Try repairs: judge the likeliest of what the search found, after a person has been asked where wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger.kinds import DifferingAnswers, ReviewAsked
from suture.core.records import Candidate, content_hash, from_plain, to_plain
from suture.errors import BudgetExceeded, SandboxError
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.judging import judge, judged_attempt
from suture.loop.policy.progress import Attempt
from suture.loop.proposing import Lineage, Proposed, propose_candidate
from suture.loop.review.disambiguation import FoundRepairs, preferred
from suture.loop.state import LoopState, aids_of, plain_attempts, tried_in
from suture.search import Difference, Repair

MOST_JUDGED = 8
"""Repairs that the trusted suite judges, likeliest first; it stops at the first that passes."""
MOST_FAULTS = 2
"""Times that the wall may fail under one of them before no further one is judged."""
BEFORE_THE_ROUNDS = -1
"""The search comes before round 0."""
MOST_NAMED = 5
"""Rivals of a repair that the ledger names."""


async def try_repairs(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Have the trusted suite decide on what the search proposed.

    Nothing happens before a person's answer, so that asking again is free.
    """
    context, blob = runtime.context, state.get("found", "")
    if not blob:
        return {}
    found = from_plain(FoundRepairs, context.folder.get_json(blob))
    if found.difference is not None and context.spec.distinguishes:
        answer: Mapping[str, Any] = interrupt(_question(found.difference, state))
        found = preferred(found, answer["choice"])
    suite = await deciding_suite(aids_of(state), context)
    judged = await _judged(found, suite, state, context)
    return {"found": "", "tried": plain_attempts((*tried_in(state), *judged))}


def _question(difference: Difference, state: LoopState) -> dict[str, Any]:
    """What a person is asked, as JSON values of a `ReviewAsked`."""
    asked = ReviewAsked(
        key=content_hash({"stage": "distinguish", "call": difference.call, "answers": difference.apart}),
        stage="distinguish",
        decision=state["decisions"],
        round=state["round"],
        moves=(),
        candidate="",
        blob="",
        verdict="",
        diagnosis=None,
        difference=DifferingAnswers(**vars(difference)),
    )
    return to_plain(asked)


async def _judged(found: FoundRepairs, suite: Suite, state: LoopState, context: RunContext) -> list[Attempt]:
    """The likeliest repairs under the trusted suite, one after the other, until one of them passes.

    Each is run twice, side by side where there is time for that: all of them have passed a trial. Where the
    wall fails under one, the next is still judged, as a verdict that is written down is not lost; then the
    fault goes on.
    """
    base = context.base_verdict(state)
    judged: list[Attempt] = []
    faults: list[SandboxError] = []

    takes_s = base.wall_s if base is not None else 0.0

    async def one(attempt: Attempt) -> Attempt:
        verdict = await judge(context.candidate(attempt.blob), suite, context, tried_s=takes_s)
        return judged_attempt(attempt, verdict, base, context)

    for repair in found.repairs[:MOST_JUDGED]:
        proposed = _propose(repair, found, context)
        try:
            judged.append(await one(proposed))
        except BudgetExceeded:
            if not judged:
                raise
            break
        except SandboxError as fault:
            faults.append(fault)
            if len(faults) == MOST_FAULTS:
                break
            continue
        if judged[-1].solved:
            break
    if faults:
        raise faults[0]
    return judged


def _agreement(repair: Repair, found: FoundRepairs) -> float | None:
    """The share of the other plausible repairs that behave like one; `None` where there are no others."""
    others = sum(1 + len(other.equivalent_labels) for other in found.repairs) - 1
    return round(len(repair.equivalent_labels) / others, 4) if others else None


def _share(repair: Repair, found: FoundRepairs) -> float:
    """A repair's part of the scores of itself and its rivals: how far the search prefers it."""
    against = sum(other.score for other in found.repairs if other.proposal.label in repair.rival_labels)
    whole = repair.score + against
    return round(repair.score / whole, 4) if whole else 1.0


def _propose(repair: Repair, found: FoundRepairs, context: RunContext) -> Attempt:
    candidate = Candidate(
        files={repair.proposal.path: repair.text},
        origin="mutation",
        label=f"mutation, {repair.proposal.label}",
    )
    left = {other.proposal.label for other in found.repairs}  # a person may have said that some are wrong
    apart = tuple(label for label in repair.rival_labels if label in left)
    known = Proposed(
        warnings=repair.warnings,
        agreement=_agreement(repair, found),
        rivals=len(apart),
        apart=apart[:MOST_NAMED],
        share=_share(repair, found),
    )
    return propose_candidate(candidate, Lineage.beginning(BEFORE_THE_ROUNDS), context, known)
