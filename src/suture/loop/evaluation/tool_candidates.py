"""Candidates that linters and formatters make by their own fixes, alone and on top of a repair of the search."""

from __future__ import annotations

from suture.core.records import Candidate, Verdict
from suture.judge import Suite
from suture.judge.runners.diagnostics.tool_fixes import collect_tool_fixes
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import judge, record_verdict
from suture.loop.policy.attempts import Attempt
from suture.loop.services.candidate_store import SEARCH_ROUND, Lineage
from suture.project.workspace import overlay_candidate


async def judge_tool_fixes(suite: Suite, baseline: Verdict | None, context: RunContext) -> list[Attempt]:
    """Judge what the tools' own fixes make of the code, the safest fixes first, until one passes."""
    judged: list[Attempt] = []
    async with context.budget.time_limit():
        fixes = [fix async for fix in collect_tool_fixes(suite, suite.task.files)]
    for fix in fixes:
        candidate = Candidate(files=fix.files, origin="fix", label=fix.label)
        proposal = context.candidates.propose(
            context.candidates.make_proposal(candidate), Lineage.beginning(SEARCH_ROUND)
        )
        verdict = await judge(candidate, suite, context)
        judged.append(record_verdict(proposal, verdict, baseline, context))
        if judged[-1].solved:
            break
    return judged


async def add_tool_fixes(proposal: Attempt, suite: Suite, context: RunContext) -> tuple[Attempt, Candidate]:
    """Return a proposed repair together with the tools' safest fixes of the repaired code, if they change anything."""
    candidate = context.candidates.load(proposal.blob)
    if suite.diagnostics is None:
        return proposal, candidate
    repaired = overlay_candidate(suite.task.files, candidate.files)
    async with context.budget.time_limit():
        async for fix in collect_tool_fixes(suite, repaired):
            combined = Candidate(
                files={**candidate.files, **fix.files},
                origin=candidate.origin,
                parent=candidate.hash,
                label=f"{candidate.label}, {fix.label}",
            )
            lineage = Lineage.beginning(SEARCH_ROUND)
            return context.candidates.propose(context.candidates.make_proposal(combined), lineage), combined
    return proposal, candidate
