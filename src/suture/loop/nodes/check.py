"""Check: run the trusted tests on every candidate that waits for them."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from langgraph.runtime import Runtime

from suture.checks import check_candidate
from suture.errors import BudgetExceeded
from suture.ledger import branch_of_round
from suture.loop.context import RunContext
from suture.loop.progress import failure_signature, tally
from suture.loop.state import LoopState, Proposal, TriedEntry
from suture.records import Candidate, Verdict

__all__ = ["check", "judge", "tried_entry"]

AT_ONCE = 4
"""Candidates checked at the same time."""


async def check(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Judge each new candidate once; one that was seen before keeps its verdict and is not run again."""
    context = runtime.context
    known = {entry["candidate"] for entry in state["tried"]}
    waiting: dict[str, Proposal] = {}
    for proposal in state["proposals"]:
        if proposal["blob"] and proposal["candidate"] not in known:
            waiting.setdefault(proposal["candidate"], proposal)
    base = context.base_verdict(state)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(branch: int, proposal: Proposal) -> TriedEntry:
        with branch_of_round(state["round"], branch):
            async with gate:
                verdict = await judge(context.candidate(proposal["blob"]), context)
            return tried_entry(proposal, verdict, base, context)

    branches = itertools.starmap(one, enumerate(waiting.values()))
    answers = await asyncio.gather(*branches, return_exceptions=True)
    entries = [answer for answer in answers if not isinstance(answer, BaseException)]
    faults = [answer for answer in answers if isinstance(answer, BaseException)]
    # Out of time with verdicts in hand is for the policy to judge: one of them may have solved the task.
    if faults and not (entries and all(isinstance(fault, BudgetExceeded) for fault in faults)):
        raise faults[0]
    return {"tried": [*state["tried"], *entries], "round": state["round"] + 1}


async def judge(candidate: Candidate, context: RunContext) -> Verdict:
    """Run the suite on one candidate and write its verdict down.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    async with context.budget.time_limit():
        verdict = await check_candidate(candidate, await context.load_suite())
    threshold = context.settings.loop.trust_threshold
    passed, failed, _ = tally(verdict, None, threshold)
    context.ledger.append(
        "candidate.checked",
        {
            "candidate": candidate.hash,
            "label": candidate.label,
            "passed": passed,
            "failed": failed,
            "evidence": verdict.evidence,
            "verdict": context.keep(verdict),
            "seconds": round(verdict.wall_s, 3),
        },
    )
    return verdict


def tried_entry(
    proposal: Proposal, verdict: Verdict, base: Verdict | None, context: RunContext
) -> TriedEntry:
    """What the state keeps of a judged candidate; a regression is written down."""
    passed, failed, regressed = tally(verdict, base, context.settings.loop.trust_threshold)
    if regressed:
        lost = sorted((base.passed if base else frozenset()) - verdict.passed)
        context.ledger.append(
            "candidate.regressed", {"candidate": proposal["candidate"], "checks": lost[:50]}
        )
    return TriedEntry(
        candidate=proposal["candidate"],
        blob=proposal["blob"],
        verdict=context.keep(verdict),
        label=proposal["label"],
        origin=proposal["origin"],
        round=proposal["round"],
        start=proposal["start"],
        depth=proposal["depth"],
        passed=passed,
        failed=failed,
        regressed=regressed,
        signature=failure_signature(verdict, context.settings.loop.trust_threshold),
    )
