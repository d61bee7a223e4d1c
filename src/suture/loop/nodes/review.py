"""Review: stop before a step until a person has said what is to become of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import those_of
from suture.core.ledger.kinds import Diagnosed, ReviewStage
from suture.core.records import content_hash, to_plain
from suture.loop.context import RunContext
from suture.loop.policy.progress import Attempt, best_of
from suture.loop.proposing import Lineage, propose_candidate
from suture.loop.state import LoopState, plain_attempts, tried_in

TOLD = ("round", "moves", "blob", "verdict")


async def review(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask, and do as the person says; nothing happens before the answer, so that asking again is free."""
    context = runtime.context
    question = question_of(state, context)
    answer: Mapping[str, Any] = interrupt(question)
    choice = answer["choice"]
    if choice == "redirect":
        hinted = {"hints": [*state["hints"], answer["hint"]]}
        return hinted if state["moves"] else {**hinted, **_rejected(question, state)}
    if choice == "edit":
        candidate, lineage = context.candidate(answer["blob"]), Lineage.beginning(state["round"])
        proposed = plain_attempts([propose_candidate(candidate, lineage, context)])
        return {**_set_aside(question, state), "proposals": proposed}
    if choice == "reject":
        return _declined(question, state)
    if choice == "abort":
        return {"moves": [], "outcome": "cancelled", "reason": "stopped by the person who reviews it"}
    return {}


def needs_review(state: LoopState, context: RunContext) -> bool:
    """Whether a person is asked before what was decided."""
    stage, autonomy = _stage(state), context.settings.loop.autonomy
    if autonomy == "review_all":
        return stage is not None
    return autonomy == "review_repairs" and stage == "repairs"


def question_of(state: LoopState, context: RunContext) -> dict[str, Any]:
    """What a person is asked, as JSON values of a `ReviewAsked`; candidates and verdicts by their blobs."""
    stage, entry = _stage(state), _shown(state, context)
    asked = {
        "stage": stage,
        "decision": state["decisions"],
        "round": state["round"],
        "moves": state["moves"],
        "candidate": entry.candidate if entry else "",
    }
    return {
        "key": content_hash(asked),
        **asked,
        "blob": entry.blob if entry else "",
        "verdict": entry.verdict if entry else "",
        "diagnosis": _diagnosis_of(entry.candidate, context) if entry else None,
        "difference": None,
    }


def _stage(state: LoopState) -> ReviewStage | None:
    kinds = {move["kind"] for move in state["moves"]}
    if not kinds:
        return "hand_over" if state["outcome"] == "healed" else None
    if kinds & {"repair", "agent"}:
        return "repairs"
    return "search" if kinds == {"mutate"} else "samples"


def _shown(state: LoopState, context: RunContext) -> Attempt | None:
    """The candidate that would be mended; else the best."""
    parents = [move["parent"] for move in state["moves"] if move.get("parent")]
    tried = tried_in(state)
    best = best_of(tried)
    wanted = parents[0] if parents else best.candidate if best else ""
    return next((entry for entry in tried if entry.candidate == wanted), None)


def _diagnosis_of(candidate: str, context: RunContext) -> dict[str, Any] | None:
    """The last diagnosis of a candidate that the ledger holds, as JSON values."""
    for _, diagnosed in those_of(reversed(context.ledger.events), Diagnosed):
        if diagnosed.candidate == candidate:
            return to_plain(diagnosed.diagnosis)
    return None


def _declined(question: Mapping[str, Any], state: LoopState) -> dict[str, Any]:
    """Something else comes next; a person who rejects that too has seen all there is."""
    if state["declined"] and state["declined"] == state["decisions"] - 1:
        why = "what could come next was rejected, twice in a row"
        return {**_set_aside(question, state), "outcome": "not_healed", "reason": why}
    return {"declined": state["decisions"], **_rejected(question, state)}


def _rejected(question: Mapping[str, Any], state: LoopState) -> dict[str, Any]:
    """Without the moves that were decided; decide is asked for others."""
    searched = {"searched": True} if question["stage"] == "search" else {}
    return {**_set_aside(question, state), **searched}


def _set_aside(question: Mapping[str, Any], state: LoopState) -> dict[str, Any]:
    """No move and no outcome; a candidate that was to be handed over, never is."""
    update: dict[str, Any] = {"moves": [], "outcome": "", "reason": ""}
    if question["stage"] == "hand_over":
        update["tried"] = plain_attempts(
            replace(entry, rejected=True) if entry.candidate == question["candidate"] else entry
            for entry in tried_in(state)
        )
    return update
