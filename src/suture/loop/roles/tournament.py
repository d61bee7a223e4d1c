"""Rank candidates that the deciding checks cannot distinguish, by inputs on which they behave differently."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from suture.core.ledger import select_events
from suture.core.ledger.kinds import CandidateProposed, CandidatesCompared, DifferingCall
from suture.judge import Suite
from suture.judge.differential.behaviour_comparison import compare_candidates, render_comparison
from suture.loop.context import RunContext
from suture.loop.policy.attempts import find_best
from suture.loop.roles.generated_tests import load_generated_checks
from suture.loop.state import LoopState, judged_attempts, role_contributions, with_judged_attempts


async def rank_equal_candidates(suite: Suite, state: LoopState, context: RunContext) -> LoopState:
    """Rank the best candidates by how many of them behave in the same way, and return the new state.

    Only code that passes every deciding check is compared: other candidates differ in their failures already.
    """
    attempts = judged_attempts(state)
    best = find_best(attempts)
    if best is None or not best.solved or context.task.kind != "write":
        return state
    equals = [
        attempt
        for attempt in attempts
        if attempt.solved and (attempt.passed, attempt.sent_back) == (best.passed, best.sent_back)
    ]
    are_ranked = all(attempt.rank is not None for attempt in equals)
    if len({attempt.fingerprint for attempt in equals}) < 2 or are_ranked:
        return state
    proposals = select_events(context.ledger.events, CandidateProposed)
    async with context.budget.time_limit():
        comparison = await compare_candidates(
            [context.candidates.load(attempt.blob) for attempt in equals],
            suite,
            hints=load_generated_checks(role_contributions(state), context),
            drawn=Counter(proposal.candidate for _, proposal in proposals),
            seed=context.settings.model.seed,
        )
    context.ledger.append(
        CandidatesCompared(
            candidates=tuple(attempt.candidate for attempt in equals),
            preferred=comparison.preferred,
            reason=render_comparison(comparison),
            calls=comparison.calls,
            differ=tuple(
                DifferingCall(call=disagreement.call, answers=disagreement.answers)
                for disagreement in comparison.disagreements
            ),
        )
    )
    # A candidate in no cluster did not finish the calls, and ranks behind its equals.
    clusters = enumerate(reversed(comparison.clusters), 1)
    ranks = {candidate: rank for rank, cluster in clusters for candidate in cluster}
    ranked = [
        replace(attempt, rank=ranks.get(attempt.candidate, 0)) if attempt in equals else attempt
        for attempt in attempts
    ]
    return with_judged_attempts(state, ranked)
