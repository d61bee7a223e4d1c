"""Check: run the deciding checks on every candidate that waits for them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import in_round_branch
from suture.core.records import Reason, encode_record
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.evaluation.judging import gather_verdicts, judge, record_verdict
from suture.loop.evaluation.safety_questions import find_safety_question
from suture.loop.policy.attempts import Attempt
from suture.loop.state import (
    LoopState,
    encode_attempts,
    ended_state,
    judged_attempts,
    proposed_attempts,
    role_contributions,
)
from suture.loop.tuning import CONCURRENT_CHECKS


async def check(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge each new candidate once. A candidate that was judged before, or by its move, keeps its verdict."""
    context = runtime.context
    judged = judged_attempts(state)
    judged_hashes = {attempt.candidate for attempt in judged}
    new: dict[str, Attempt] = {}
    for proposal in proposed_attempts(state):
        if proposal.blob and proposal.candidate not in judged_hashes:
            new.setdefault(proposal.candidate, proposal)
    judged += tuple(proposal for proposal in new.values() if proposal.verdict)
    waiting = {candidate: proposal for candidate, proposal in new.items() if not proposal.verdict}
    if not waiting:
        return {"judged": encode_attempts(judged), "round": state["round"] + 1}
    update: dict[str, Any] = {}
    question = find_safety_question(waiting.values(), state, context)
    if question is not None:
        # LangGraph runs this node again from its start when the answer is there: so far, nothing was changed.
        answer: Mapping[str, Any] = interrupt(encode_record(question))
        if answer["choice"] == "abort":
            return ended_state("cancelled", Reason(code="stopped_by_reviewer"))
        if answer["choice"] == "redirect":
            update = {"hints": [*state["hints"], answer["hint"]]}
    async with context.budget.time_limit():
        suite = await load_deciding_suite(role_contributions(state), context)
    baseline = context.candidates.baseline_verdict(state)
    semaphore = asyncio.Semaphore(CONCURRENT_CHECKS)

    async def judge_proposal(branch: int, proposal: Attempt) -> Attempt:
        with in_round_branch(state["round"], branch):
            async with semaphore:
                verdict = await judge(context.candidates.load(proposal.blob), suite, context)
            return record_verdict(proposal, verdict, baseline, context)

    attempts = await gather_verdicts(itertools.starmap(judge_proposal, enumerate(waiting.values())))
    return {**update, "judged": encode_attempts((*judged, *attempts)), "round": state["round"] + 1}
