"""Decide: ask the policy for the next moves, and record them before they are carried out."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger import first_payload
from suture.core.ledger.kinds import AttemptsNearLimit, ModelEscalated, MovesDecided
from suture.core.records import encode_record
from suture.loop.context import RunContext
from suture.loop.policy.next_moves import decide, find_escalation
from suture.loop.progress_summary import summarise_progress
from suture.loop.recipes.recipe_schema import Recipe
from suture.loop.state import LoopState


async def decide_moves(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Return the update with the moves of the next round, or with the outcome of the run.

    Raises:
        BudgetExceeded: No seconds are left for another round.
    """
    context = runtime.context
    progress = summarise_progress(state, context)
    escalation = find_escalation(progress, context.recipe)
    has_escalated = escalation is not None or progress.escalated > 0
    moves = decide(progress, _recipe_for_model(context, has_escalated=has_escalated))
    if moves[0].kind != "stop" or moves[0].outcome == "stuck":
        context.budget.require_time()  # no round begins after the limit, and none that it stopped counts as stuck
    best = progress.best
    _warn_near_limit(context)
    context.ledger.append(
        MovesDecided(
            decision=state["decisions"] + 1,
            round=state["round"],
            moves=tuple(moves),
            best=best.candidate if best else None,
        )
    )
    update: dict[str, Any] = {"decisions": state["decisions"] + 1}
    if moves[0].kind == "stop":
        reason = encode_record(moves[0].reason) if moves[0].reason is not None else None
        return {**update, "moves": [], "outcome": moves[0].outcome, "reason": reason}
    stronger = context.models.escalation
    if escalation is not None and stronger is not None:
        coder = context.models.for_role("coder").model.name
        context.ledger.append(
            ModelEscalated(round=state["round"], from_=coder, to=stronger.model.name, reason=escalation)
        )
        update["escalated"] = state["round"]
    return {
        **update,
        "moves": [encode_record(move) for move in moves],
        "samples_asked": state["samples_asked"] + sum(move.kind == "sample" for move in moves),
        "repairs_asked": state["repairs_asked"] + sum(move.kind == "repair" for move in moves),
        "agents_asked": state.get("agents_asked", 0) + sum(move.kind == "agent" for move in moves),
    }


def _recipe_for_model(context: RunContext, *, has_escalated: bool) -> Recipe:
    """Return the recipe, with the stronger model's own temperature once that model writes the code."""
    temperature = context.settings.models.escalate_temperature
    if temperature is None or not has_escalated or context.models.escalation is None:
        return context.recipe
    return context.recipe.model_copy(update={"temperature": temperature})


def _warn_near_limit(context: RunContext) -> None:
    """Record once that the recipe's limit of attempts is near."""
    warn_at, used = context.recipe.warn_at, context.budget.spend().attempts
    has_warned = first_payload(context.ledger.events, AttemptsNearLimit) is not None
    if warn_at is not None and used >= warn_at and not has_warned:
        context.ledger.append(AttemptsNearLimit(used=used, limit=context.recipe.attempt_limit))
