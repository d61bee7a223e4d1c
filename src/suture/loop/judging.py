"""One verdict: the suite run on a candidate, written down, and what the state keeps of it."""

from __future__ import annotations

from suture.checks import check_candidate
from suture.loop.context import RunContext
from suture.loop.progress import failure_signature, tally
from suture.loop.state import Proposal, TriedEntry
from suture.loop.stuck import code_fingerprint
from suture.records import Candidate, Verdict

__all__ = ["judge", "judged_again", "tried_entry"]


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
        parent=proposal.get("parent", ""),
        fingerprint=code_fingerprint(context.candidate(proposal["blob"]).files),
    )


async def judged_again(entry: TriedEntry, context: RunContext) -> TriedEntry:
    """A candidate of a `write` task under the checks of now, which may be others than before.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    verdict = await judge(context.candidate(entry["blob"]), context)
    threshold = context.settings.loop.trust_threshold
    passed, failed, regressed = tally(verdict, None, threshold)
    return {
        **entry,
        "verdict": context.keep(verdict),
        "passed": passed,
        "failed": failed,
        "regressed": regressed,
        "signature": failure_signature(verdict, threshold),
    }
