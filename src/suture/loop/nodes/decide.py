"""Decide: ask the policy, and write its moves down before they are made."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from suture.core.ledger import first_of
from suture.core.ledger.kinds import AttemptsNearLimit, Decided, ModelEscalated
from suture.core.records import to_plain
from suture.loop.context import RunContext
from suture.loop.policy.next_moves import decide, escalation
from suture.loop.recipes.schema import Recipe
from suture.loop.state import LoopState


async def decide_next(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Turn facts and remaining budget into the moves of the next round, or into an outcome."""
    context = runtime.context
    progress = context.progress(state)
    why = escalation(progress, context.recipe)
    moves = decide(progress, _as_drawn(bool(why) or progress.escalated > 0, context))
    best = progress.best
    _warn(context)
    choice = Decided(
        decision=state["decisions"] + 1,
        round=state["round"],
        moves=tuple(moves),
        best=best.candidate if best else None,
    )
    context.ledger.append(choice)
    decided: dict[str, Any] = {"decisions": state["decisions"] + 1}
    if moves[0].kind == "stop":
        return {**decided, "moves": [], "outcome": moves[0].outcome, "reason": moves[0].reason}
    stronger = context.models.stronger
    if why and stronger is not None:
        escalated = ModelEscalated(
            round=state["round"], from_=context.model.name, to=stronger.model.name, reason=why
        )
        context.ledger.append(escalated)
        decided["escalated"] = state["round"]
    return {
        **decided,
        "moves": [to_plain(move) for move in moves],
        "samples_asked": state["samples_asked"] + sum(move.kind == "sample" for move in moves),
        "repairs_asked": state["repairs_asked"] + sum(move.kind == "repair" for move in moves),
        "agents_asked": state.get("agents_asked", 0) + sum(move.kind == "agent" for move in moves),
    }


def _as_drawn(escalated: bool, context: RunContext) -> Recipe:
    """The recipe; with the stronger model's own temperature, where it has one and writes the code."""
    own = context.settings.models.escalate_temperature
    if own is None or not escalated or context.models.stronger is None:
        return context.recipe
    return context.recipe.model_copy(update={"temperature": own})


def _warn(context: RunContext) -> None:
    """Say once that the recipe's limit of attempts is near."""
    recipe, used = context.recipe, context.budget.spend().attempts
    warned = first_of(context.ledger.events, AttemptsNearLimit) is not None
    if recipe.warn_at is not None and used >= recipe.warn_at and not warned:
        context.ledger.append(AttemptsNearLimit(used=used, limit=recipe.attempt_limit))
