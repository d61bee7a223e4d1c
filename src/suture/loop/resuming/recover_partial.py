"""What a run that was cut short had reached: its last checkpoint, and the ledger for what came after it."""

from __future__ import annotations

from suture.ledger.kinds import CandidateChecked, CandidateProposed
from suture.loop.context import RunContext
from suture.loop.policy.progress import failure_signature, tally
from suture.loop.state import LoopState, TriedEntry

__all__ = ["with_judged_candidates"]


def with_judged_candidates(state: LoopState, context: RunContext) -> LoopState:
    """The state, and in it every candidate that was judged before the end: the ledger is the record.

    Args:
        state: As of the last checkpoint.
        context: The run.
    """
    known = {entry["candidate"] for entry in state["tried"]}
    proposed: dict[str, CandidateProposed] = {}
    found: list[TriedEntry] = []
    for event in context.ledger.events:
        match event.payload:
            case CandidateProposed() as one:
                proposed.setdefault(one.candidate, one)
            case CandidateChecked(candidate=name, verdict=blob) if name in proposed and name not in known:
                known.add(name)
                found.append(_entry(proposed[name], blob, state, context))
    return {**state, "tried": [*state["tried"], *found]}


def _entry(proposed: CandidateProposed, blob: str, state: LoopState, context: RunContext) -> TriedEntry:
    threshold = context.settings.loop.trust_threshold
    verdict = context.verdict(blob)
    passed, failed, regressed = tally(verdict, context.base_verdict(state), threshold)
    return TriedEntry(
        candidate=proposed.candidate,
        blob=proposed.blob,
        verdict=blob,
        label=proposed.label,
        origin=proposed.origin,
        round=state["round"],
        start=state["round"],
        depth=0,
        passed=passed,
        failed=failed,
        regressed=regressed,
        signature=failure_signature(verdict, threshold),
    )
