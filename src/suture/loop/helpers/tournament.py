"""Candidates that the trusted checks cannot tell apart, told apart by inputs on which they differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from suture.core.ledger import those_of
from suture.core.ledger.kinds import CandidateProposed, CandidatesCompared, DifferingCall
from suture.judge import Suite
from suture.judge.differential.behaviour_comparison import compare_candidates
from suture.loop.context import RunContext
from suture.loop.helpers.generated_tests import generated_checks
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.state import LoopState, aids_of, tried_in, with_tried


async def ranked(suite: Suite, state: LoopState, context: RunContext) -> LoopState:
    """The state with a rank for each of the best candidates, by how many of them behave as it does.

    Only code that passes every trusted check is compared: what fails is told apart by repairing it.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    tried = tried_in(state)
    best = best_of(tried)
    if best is None or not best.solved or context.task.kind != "write":
        return state
    equals = [one for one in tried if _ties(one, best)]
    ranked_before = all(one.rank is not None for one in equals)
    if len({one.fingerprint for one in equals}) < 2 or ranked_before:
        return state
    hints = generated_checks(aids_of(state), context)
    async with context.budget.time_limit():
        found = await compare_candidates(
            [context.candidate(entry.blob) for entry in equals],
            suite,
            hints=hints,
            drawn=Counter(
                proposed.candidate for _, proposed in those_of(context.ledger.events, CandidateProposed)
            ),
            seed=context.settings.model.seed,
        )
    compared = CandidatesCompared(
        candidates=tuple(entry.candidate for entry in equals),
        preferred=found.preferred,
        reason=found.reason,
        calls=found.calls,
        differ=tuple(DifferingCall(call=one.call, answers=one.answers) for one in found.disagreements),
    )
    context.ledger.append(compared)
    places = enumerate(reversed(found.clusters), 1)  # one that never ended stands behind its equals
    ranks = {name: place for place, cluster in places for name in cluster}
    return with_tried(
        state, [replace(one, rank=ranks.get(one.candidate, 0)) if one in equals else one for one in tried]
    )


def _ties(one: Attempt, best: Attempt) -> bool:
    return one.solved and one.passed == best.passed and one.sent_back == best.sent_back
