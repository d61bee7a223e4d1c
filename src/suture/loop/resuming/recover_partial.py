"""What a run that was cut short had reached: its last checkpoint, and the ledger for what came after it."""

from __future__ import annotations

from suture.ledger.kinds import CandidateChecked, CandidateProposed
from suture.loop.context import RunContext
from suture.loop.evaluation.judging import with_verdict
from suture.loop.policy.progress import Attempt
from suture.loop.state import LoopState, tried_in, with_tried


def with_judged_candidates(state: LoopState, context: RunContext) -> LoopState:
    """The state, and in it every candidate that was judged before the end: the ledger is the record.

    Args:
        state: As of the last checkpoint.
        context: The run.
    """
    tried = tried_in(state)
    known = {entry.candidate for entry in tried}
    proposed: dict[str, CandidateProposed] = {}
    found: list[Attempt] = []
    for event in context.ledger.events:
        match event.payload:
            case CandidateProposed() as one:
                proposed.setdefault(one.candidate, one)
            case CandidateChecked(candidate=name, verdict=blob) if name in proposed and name not in known:
                known.add(name)
                found.append(_attempt(proposed[name], blob, state, context))
    return with_tried(state, (*tried, *found))


def _attempt(proposed: CandidateProposed, blob: str, state: LoopState, context: RunContext) -> Attempt:
    attempt = Attempt(
        candidate=proposed.candidate,
        blob=proposed.blob,
        label=proposed.label,
        origin=proposed.origin,
        round=state["round"],
        start=state["round"],
    )
    return with_verdict(attempt, context.verdict(blob), context.base_verdict(state), context)
