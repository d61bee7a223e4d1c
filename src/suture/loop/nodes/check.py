"""Check: run the trusted tests on every candidate that waits for them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from langgraph.runtime import Runtime

from suture.ledger import branch_of_round
from suture.loop.context import RunContext
from suture.loop.evaluation.deciding import deciding_suite
from suture.loop.evaluation.judging import all_ended, judge, judged_attempt
from suture.loop.helper_state import aids_of
from suture.loop.policy.progress import Attempt
from suture.loop.state import LoopState, plain_attempts, proposals_in, tried_in

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
    return {"tried": plain_attempts((*tried, *entries)), "round": state["round"] + 1}
