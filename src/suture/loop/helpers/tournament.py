"""Candidates that the trusted checks cannot tell apart, told apart by inputs on which they differ."""

from __future__ import annotations

from suture.checks import Suite
from suture.checks.differential.clustering import compare_candidates
from suture.ledger.kinds import CandidatesCompared, DifferingCall
from suture.loop.context import RunContext
from suture.loop.helper_state import aids_of
from suture.loop.helpers.generated_tests import generated_checks
from suture.loop.policy.progress import Tried, best_of
from suture.loop.state import LoopState, TriedEntry

__all__ = ["ranked"]


async def ranked(suite: Suite, state: LoopState, context: RunContext) -> LoopState:
    """The state with a rank for each of the best candidates, by how many of them behave as it does.

    Only code that passes every trusted check is compared: what fails is told apart by repairing it.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The wall failed.
    """
    tried = [context.tried(entry) for entry in state["tried"]]
    best = best_of(tried)
    if best is None or not best.solved or context.task.kind != "write":
        return state
    equals = [entry for entry, one in zip(state["tried"], tried, strict=True) if _ties(one, best)]
    if len({one.get("fingerprint") for one in equals}) < 2 or all("rank" in one for one in equals):
        return state
    hints = generated_checks(aids_of(state), context)
    async with context.budget.time_limit():
        found = await compare_candidates(
            [context.candidate(entry["blob"]) for entry in equals],
            suite,
            hints=hints,
            seed=context.settings.model.seed,
        )
    compared = CandidatesCompared(
        candidates=tuple(entry["candidate"] for entry in equals),
        preferred=found.preferred,
        reason=found.reason,
        calls=found.calls,
        differ=tuple(DifferingCall(call=one.call, answers=one.answers) for one in found.disagreements),
    )
    context.ledger.append(compared)
    places = enumerate(reversed(found.clusters), 1)  # one that never ended stands behind its equals
    ranks = {name: place for place, cluster in places for name in cluster}
    return {**state, "tried": [_with_rank(entry, ranks, equals) for entry in state["tried"]]}


def _ties(one: Tried, best: Tried) -> bool:
    return one.solved and one.passed == best.passed and one.sent_back == best.sent_back


def _with_rank(entry: TriedEntry, ranks: dict[str, int], equals: list[TriedEntry]) -> TriedEntry:
    if entry not in equals:
        return entry
    ranked: TriedEntry = {**entry, "rank": ranks.get(entry["candidate"], 0)}
    return ranked
