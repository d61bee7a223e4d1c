"""Check: run the trusted tests on every candidate that waits for them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import branch_of_round
from suture.core.records import Candidate, content_hash
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.judging import all_ended, judge, judged_attempt
from suture.loop.policy.progress import Attempt
from suture.loop.state import LoopState, aids_of, plain_attempts, proposals_in, tried_in
from suture.loop.vetting import answered_uses, refused_verdict, use_of
from suture.project.safety import Finding

AT_ONCE = 4
"""Candidates checked at the same time."""


async def check(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge each new candidate once; one that was seen before keeps its verdict and is not run again."""
    context = runtime.context
    tried = tried_in(state)
    known = {entry.candidate for entry in tried}
    waiting: dict[str, Attempt] = {}
    for proposal in proposals_in(state):
        if proposal.blob and proposal.candidate not in known:
            waiting.setdefault(proposal.candidate, proposal)
    if not waiting:
        return {"round": state["round"] + 1}
    update: dict[str, Any] = {}
    question = _question_on(waiting.values(), state, context)
    if question:
        answer: Mapping[str, Any] = interrupt(
            question
        )  # nothing was done before, so that asking again is free
        if answer["choice"] == "abort":
            why = "stopped by the person who was asked about the safety scan"
            return {"moves": [], "outcome": "cancelled", "reason": why}
        if answer["choice"] == "redirect":
            update = {"hints": [*state["hints"], answer["hint"]]}
    async with context.budget.time_limit():
        suite = await deciding_suite(aids_of(state), context)
    base = context.base_verdict(state)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(branch: int, proposal: Attempt) -> Attempt:
        with branch_of_round(state["round"], branch):
            async with gate:
                verdict = await judge(context.candidate(proposal.blob), suite, context)
            return judged_attempt(proposal, verdict, base, context)

    entries = await all_ended(itertools.starmap(one, enumerate(waiting.values())))
    return {**update, "tried": plain_attempts((*tried, *entries)), "round": state["round"] + 1}


def _question_on(waiting: Iterable[Attempt], state: LoopState, context: RunContext) -> dict[str, Any] | None:
    """What a person is asked before these run, as JSON values of a `ReviewAsked`; `None` for no question.

    One question for all of them. What they said in an earlier round holds for the same use of a rule.
    """
    known = answered_uses(context.folder, context.ledger.events, before_round=state["round"], allowed=False)
    about: list[tuple[Attempt, Candidate, Finding]] = []
    for attempt in waiting:
        candidate = context.candidate(attempt.blob)
        found = context.findings_in(candidate)
        if not any(one.level == "block" for one in found):
            new = [one for one in found if one.level == "ask" and use_of(one) not in known]
            about += [(attempt, candidate, one) for one in new]
    if not about:
        return None
    first, candidate, _ = about[0]
    uses = list(dict.fromkeys(use_of(one) for _, _, one in about))
    return {
        "key": content_hash({"stage": "safety", "round": state["round"], "uses": uses}),
        "stage": "safety",
        "decision": state["decisions"],
        "round": state["round"],
        "moves": [],
        "candidate": first.candidate,
        "blob": first.blob,
        "verdict": context.keep(refused_verdict(candidate, [one for _, _, one in about], waits=True)),
        "diagnosis": None,
        "difference": None,
    }
