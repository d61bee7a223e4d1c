"""Finish: name the outcome, pick the best candidate, write the diff."""

from __future__ import annotations

from typing import Any, cast

from langgraph.runtime import Runtime

from suture.loop.context import RunContext
from suture.loop.progress import best_of
from suture.loop.state import LoopState
from suture.records import FaultCause, Outcome, Result, to_plain
from suture.workspace import overlay, unified_diff

__all__ = ["finish", "write_result"]


async def finish(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """End the run with the outcome that was decided."""
    write_result(state, runtime.context, cast(Outcome, state["outcome"]), state["reason"])
    return {}


def write_result(state: LoopState, context: RunContext, outcome: Outcome, reason: str) -> Result:
    """Write the result down, whatever ended the run: the best candidate so far is never lost."""
    tried = [context.tried(entry) for entry in state["tried"]]
    best = best_of(tried)
    entry = state["tried"][tried.index(best)] if best else None
    candidate = context.candidate(entry["blob"]) if entry else None
    verdict = context.verdict(entry["verdict"]) if entry else None
    before = context.task.files
    diff = unified_diff(before, overlay(before, candidate.files)) if candidate else ""
    result = Result(
        run_id=context.folder.id,
        outcome=outcome,
        reason=reason,
        cause=cast(FaultCause, state["cause"]) if outcome == "not_a_code_fault" else None,
        candidate=candidate,
        verdict=verdict,
        diff=diff,
        evidence=verdict.evidence if verdict and verdict.outcomes else None,
        spend=context.budget.spend(),
    )
    if diff:
        context.folder.write_text("result.diff", diff)
    blob = context.folder.put_json(to_plain(result))
    context.ledger.append(
        "run.finished",
        {"outcome": outcome, "reason": reason, "best": best.candidate if best else None, "result": blob},
    )
    return result
