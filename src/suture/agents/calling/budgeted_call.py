"""Decide once what a call may cost: after a kill, or in a replay, it gets the same budget as before."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

from suture.agents.calling.call_context import CallContext
from suture.core.ledger import Event, Reservation, current_position, select_events
from suture.core.ledger.kinds import BudgetRefused, BudgetReserved, BudgetSettled, RunResumed
from suture.errors import BudgetExceeded

BudgetDecision = BudgetReserved | BudgetRefused
"""The event that says what a call may cost, or that it is not paid for."""


@dataclass(frozen=True, kw_only=True)
class BudgetedCall:
    """Something that the budget pays for.

    Attributes:
        key: Distinguishes the call from the other calls of the same branch of a round.
        description: What it is, for people.
        role: The role that acts, if any.
        move: The kind of the move that it belongs to, if any.
        is_attempt: Whether it uses up an attempt.
    """

    key: str
    description: str
    role: str = ""
    move: str = ""
    is_attempt: bool = False


@dataclass(frozen=True, kw_only=True)
class PriorDecision:
    """What was decided on a call before: by a killed process of this run, or in the run that is replayed.

    Attributes:
        max_reply_tokens: The length of the reply that was granted, in tokens; `None` if none was granted.
        refusal: The error, if the call was refused.
        attempt_booked: Whether this run has already booked the attempt.
        is_replayed: Whether the decision comes from the replayed run.
    """

    max_reply_tokens: int | None = None
    refusal: BudgetExceeded | None = None
    attempt_booked: bool = False
    is_replayed: bool = False


def find_prior_decision(call: BudgetedCall, calls: CallContext) -> PriorDecision:
    """Return what was decided on a call before. Equal calls of one branch are distinguished by their
    order.
    """
    earlier, current = _split_by_process(calls.ledger.events)
    position = len(_decisions_on(call, current))
    own = _last_decision(call, position, earlier)
    decision = own or _last_decision(call, position, calls.replayed_events)
    booked = call.is_attempt and _count_booked_attempts(call, earlier) > position
    if decision is None:
        return PriorDecision(attempt_booked=booked)
    if isinstance(decision, BudgetRefused):
        refusal = BudgetExceeded(decision.limit_kind, decision.used, decision.limit)
        return PriorDecision(refusal=refusal, attempt_booked=booked, is_replayed=own is None)
    return PriorDecision(
        max_reply_tokens=decision.max_reply_tokens or None, attempt_booked=booked, is_replayed=own is None
    )


def reserve(
    call: BudgetedCall,
    calls: CallContext,
    prior: PriorDecision,
    *,
    tokens: int = 0,
    reply_tokens: int = 0,
    money: float = 0.0,
    is_paid: bool = False,
) -> Reservation:
    """Reserve the maximum cost of a call; an attempt only if it is not booked already.

    Args:
        call: What is to be paid for.
        calls: Where it is paid and recorded.
        prior: What was decided on it before.
        tokens: Upper bound of the tokens of prompt and reply together.
        reply_tokens: Upper bound of the tokens of the reply.
        money: Upper bound of the cost in US dollars.
        is_paid: Whether this run holds the reply already, so that nothing more can be spent.

    Raises:
        BudgetExceeded: The call could exceed a limit, or was refused before.
    """
    if prior.refusal is not None:
        refuse(call, prior.refusal, calls)
    try:
        return calls.budget.reserve(
            call.description,
            attempts=1 if call.is_attempt and not prior.attempt_booked else 0,
            tokens=0 if is_paid else tokens,
            completion_tokens=0 if is_paid else reply_tokens,
            money=0.0 if is_paid else money,
            role=call.role,
            move=call.move,
            is_granted=prior.is_replayed,
            act=call.key,
            max_reply_tokens=reply_tokens,
        )
    except BudgetExceeded as fault:
        refuse(call, fault, calls)


def refuse(call: BudgetedCall, fault: BudgetExceeded, calls: CallContext) -> NoReturn:
    """Record that a call is not paid for, and raise the reason."""
    calls.ledger.append(
        BudgetRefused(
            purpose=call.description, act=call.key, limit_kind=fault.kind, used=fault.used, limit=fault.limit
        )
    )
    raise fault


def _split_by_process(events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
    """Return the events of earlier processes of this run, and those of the current process."""
    resumed = [number for number, event in enumerate(events) if isinstance(event.payload, RunResumed)]
    first = resumed[-1] + 1 if resumed else 0
    return events[:first], events[first:]


def _decisions_on(call: BudgetedCall, events: Sequence[Event]) -> list[tuple[int, BudgetDecision]]:
    """Return the decisions on a call in the current branch of the round, each with its sequence number."""
    place = current_position()
    here = (place.get("step"), place.get("branch"), place.get("part"))
    return [
        (event.seq, event.payload)
        for event in events
        if isinstance(event.payload, BudgetReserved | BudgetRefused)
        and event.payload.act == call.key
        and (event.step, event.branch, event.part) == here
    ]


def _last_decision(call: BudgetedCall, position: int, events: Sequence[Event]) -> BudgetDecision | None:
    """Return the decision of the last process that reached the call at this position; `None` if none did."""
    starts = [event.seq for event, _ in select_events(events, RunResumed)]
    by_process = groupby(_decisions_on(call, events), key=lambda decision: bisect(starts, decision[0]))
    reached = [decisions[position][1] for _, group in by_process if position < len(decisions := list(group))]
    return reached[-1] if reached else None


def _count_booked_attempts(call: BudgetedCall, events: Sequence[Event]) -> int:
    reserved = {seq for seq, _ in _decisions_on(call, events)}
    settled = {event.reservation: event for _, event in select_events(reversed(events), BudgetSettled)}
    return sum(seq in settled and settled[seq].attempts > 0 for seq in reserved)
