"""Check: run the deciding checks on every candidate that waits for them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import in_round_branch
from suture.core.ledger.kinds import ReviewAsked
from suture.core.records import Reason, content_hash, encode_record
from suture.loop.context import RunContext, load_deciding_suite
from suture.loop.evaluation.judging import gather_verdicts, judge, record_verdict
from suture.loop.policy.attempts import Attempt
from suture.loop.services.safety_gate import make_refusal, rule_use
from suture.loop.state import (
    LoopState,
    encode_attempts,
    ended_state,
    judged_attempts,
    proposed_attempts,
    role_contributions,
)
from suture.loop.tuning import CONCURRENT_CHECKS
from suture.project.safety import Finding


async def check(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge each new candidate once. A candidate that was judged before keeps its verdict."""
    context = runtime.context
    judged = judged_attempts(state)
    judged_hashes = {attempt.candidate for attempt in judged}
    waiting: dict[str, Attempt] = {}
    for proposal in proposed_attempts(state):
        if proposal.blob and proposal.candidate not in judged_hashes:
            waiting.setdefault(proposal.candidate, proposal)
    if not waiting:
        return {"round": state["round"] + 1}
    update: dict[str, Any] = {}
    question = _safety_question(waiting.values(), state, context)
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


def _safety_question(waiting: Iterable[Attempt], state: LoopState, context: RunContext) -> ReviewAsked | None:
    """Return one question about all findings that a person has to allow; `None` if there are none.

    An answer from an earlier round holds for the same use of a rule. Candidates that the scan blocks are not
    asked about.
    """
    answered_uses = context.safety.answered_uses(before_round=state["round"])
    questionable: list[tuple[Attempt, Finding]] = []
    for attempt in waiting:
        findings = context.safety.scan(context.candidates.load(attempt.blob))
        if not any(finding.level == "block" for finding in findings):
            questionable += [
                (attempt, finding)
                for finding in findings
                if finding.level == "ask" and rule_use(finding) not in answered_uses
            ]
    if not questionable:
        return None
    attempt, _ = questionable[0]
    uses = list(dict.fromkeys(rule_use(finding) for _, finding in questionable))
    candidate = context.candidates.load(attempt.blob)
    verdict = make_refusal(candidate, [finding for _, finding in questionable], awaits_answer=True)
    return ReviewAsked(
        key=content_hash({"stage": "safety", "round": state["round"], "uses": uses}),
        stage="safety",
        decision=state["decisions"],
        round=state["round"],
        candidate=attempt.candidate,
        blob=attempt.blob,
        verdict=context.candidates.save(verdict),
    )
