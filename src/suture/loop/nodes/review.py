"""Review: ask a person whether the decided step may be taken, and wait for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from suture.core.ledger import select_events
from suture.core.ledger.kinds import DiagnosisMade, ReviewAsked, ReviewStage
from suture.core.records import Diagnosis, Move, Reason, content_hash, decode_record, encode_record
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt, find_best
from suture.loop.services.candidate_store import Lineage
from suture.loop.state import LoopState, encode_attempts, ended_state, judged_attempts


async def review(state: LoopState, runtime: Runtime[RunContext]) -> dict[str, Any]:
    """Ask a person about the decision, and return the update of the state that their answer leads to."""
    context = runtime.context
    question = _make_question(state, context)
    # LangGraph runs this node again from its start when the answer is there: so far, nothing was changed.
    answer: Mapping[str, Any] = interrupt(encode_record(question))
    choice = answer["choice"]
    if choice == "redirect":
        update = {"hints": [*state["hints"], answer["hint"]]}
        return update if state["moves"] else {**update, **_drop_decision(question, state)}
    if choice == "edit":
        proposal = context.candidates.make_proposal(context.candidates.load(answer["blob"]))
        attempt = context.candidates.propose(proposal, Lineage.beginning(state["round"]))
        return {**_set_aside(question, state), "proposals": encode_attempts([attempt])}
    if choice == "reject":
        return _reject(question, state)
    if choice == "abort":
        return ended_state("cancelled", Reason(code="stopped_by_reviewer"))
    return {}


def needs_review(state: LoopState, context: RunContext) -> bool:
    """Return whether a person is asked before the decision is carried out."""
    stage, autonomy = _find_stage(state), context.settings.loop.autonomy
    if autonomy == "review_all":
        return stage is not None
    return autonomy == "review_repairs" and stage == "repairs"


def _make_question(state: LoopState, context: RunContext) -> ReviewAsked:
    stage, attempt = _find_stage(state), _find_shown_attempt(state)
    if stage is None:
        raise AssertionError("there is nothing to review")
    candidate = attempt.candidate if attempt else ""
    key = {
        "stage": stage,
        "decision": state["decisions"],
        "round": state["round"],
        "moves": state["moves"],
        "candidate": candidate,
    }
    return ReviewAsked(
        key=content_hash(key),
        stage=stage,
        decision=state["decisions"],
        round=state["round"],
        moves=tuple(decode_record(Move, move) for move in state["moves"]),
        candidate=candidate,
        blob=attempt.blob if attempt else "",
        verdict=attempt.verdict if attempt else "",
        diagnosis=_find_diagnosis(candidate, context) if attempt else None,
    )


def _find_stage(state: LoopState) -> ReviewStage | None:
    """Return what happens after the decision; `None` if there is nothing to review."""
    kinds = {move["kind"] for move in state["moves"]}
    if kinds <= {"ask", "investigate"}:
        return "delivery" if state["outcome"] == "healed" else None
    if kinds & {"repair", "agent"}:
        return "repairs"
    return "search" if kinds == {"mutate"} else "samples"


def _find_shown_attempt(state: LoopState) -> Attempt | None:
    """Return the candidate that would be repaired, else the best one."""
    attempts = judged_attempts(state)
    for move in state["moves"]:
        if move.get("parent"):
            return next((attempt for attempt in attempts if attempt.candidate == move["parent"]), None)
    return find_best(attempts)


def _find_diagnosis(candidate: str, context: RunContext) -> Diagnosis | None:
    """Return the last recorded diagnosis of a candidate."""
    for _, event in select_events(reversed(context.ledger.events), DiagnosisMade):
        if event.candidate == candidate:
            return event.diagnosis
    return None


def _reject(question: ReviewAsked, state: LoopState) -> dict[str, Any]:
    """Return the update after a rejection: decide again, or end the run if the last one was rejected too."""
    if state["rejected_decision"] and state["rejected_decision"] == state["decisions"] - 1:
        reason = encode_record(Reason(code="rejected_twice"))
        return {**_set_aside(question, state), "outcome": "not_healed", "reason": reason}
    return {"rejected_decision": state["decisions"], **_drop_decision(question, state)}


def _drop_decision(question: ReviewAsked, state: LoopState) -> dict[str, Any]:
    """Return the update that drops the decision. A search that a person does not want is not proposed again."""
    update = _set_aside(question, state)
    return {**update, "searched": True} if question.stage == "search" else update


def _set_aside(question: ReviewAsked, state: LoopState) -> dict[str, Any]:
    """Return the update without moves and outcome. A candidate whose delivery was refused is rejected for good."""
    update: dict[str, Any] = {"moves": [], "outcome": "", "reason": None}
    if question.stage == "delivery":
        update["judged"] = encode_attempts(
            replace(attempt, rejected=True) if attempt.candidate == question.candidate else attempt
            for attempt in judged_attempts(state)
        )
    return update
