"""What an act may cost is decided once: made again after a kill, or in a replay, it gets what it got then."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

from suture.core.ledger import Event, Reservation, current_place, select_events
from suture.core.ledger.kinds import BudgetRefused, BudgetReserved, BudgetSettled, RunResumed
from suture.errors import BudgetExceeded
from suture.loop.context import RunContext


@dataclass(frozen=True, kw_only=True)
class BudgetedCall:
    """What is paid for.

    Attributes:
        name: Tells it from whatever else the same branch of a round pays for.
        what: It, for people.
        role: Who acts, where it is a role.
        move: The kind of move that it belongs to; with one it is an attempt.
        attempt: Whether it uses one up.
    """

    name: str
    what: str
    role: str = ""
    move: str = ""
    attempt: bool = False


@dataclass(frozen=True, kw_only=True)
class PriorDecision:
    """How an act went before: in a process of this run that was killed, or in the run that is done again.

    Attributes:
        most: The longest reply that it was granted, in tokens; `None` where it was granted none.
        refused: Why it was refused.
        booked: Whether this run has booked its attempt.
        followed: Whether it went so in the run that is done again, whose budget has decided.
    """

    most: int | None = None
    refused: BudgetExceeded | None = None
    booked: bool = False
    followed: bool = False


def prior_decision(act: BudgetedCall, context: RunContext) -> PriorDecision:
    """How the act went before; the same act twice in one branch is told apart by its turn."""
    earlier, now = _by_process(context.ledger.events)
    turn = len(_same(act, now))
    own = _decided(act, turn, earlier)
    before = own or _decided(act, turn, context.spec.follows)
    booked = act.attempt and _bookings(act, earlier) > turn
    if before is None:
        return PriorDecision(booked=booked)
    if isinstance(before, BudgetRefused):
        refused = BudgetExceeded(before.limited, before.used, before.limit)
        return PriorDecision(refused=refused, booked=booked, followed=own is None)
    return PriorDecision(most=before.most or None, booked=booked, followed=own is None)


def reserve(
    act: BudgetedCall,
    context: RunContext,
    before: PriorDecision,
    *,
    tokens: int = 0,
    most: int = 0,
    money: float = 0.0,
    paid: bool = False,
) -> Reservation:
    """Reserve the most that an act can cost; its attempt only where that is not booked already.

    Args:
        act: What is to be paid for.
        context: The run.
        before: How it went before.
        tokens: An upper bound of the tokens of prompt and reply together.
        most: Of these, those of the reply.
        money: An upper bound of the US dollars.
        paid: Whether this run holds the reply, so that nothing more can be spent.

    Raises:
        BudgetExceeded: It could exceed a limit, or was refused before.
    """
    if before.refused is not None:
        refuse(act, before.refused, context)
    try:
        return context.budget.reserve(
            act.what,
            attempts=1 if act.attempt and not before.booked else 0,
            tokens=0 if paid else tokens,
            completion_tokens=0 if paid else most,
            money=0.0 if paid else money,
            role=act.role,
            move=act.move,
            granted=before.followed,
            act=act.name,
            most=most,
        )
    except BudgetExceeded as fault:
        refuse(act, fault, context)


def refuse(act: BudgetedCall, fault: BudgetExceeded, context: RunContext) -> NoReturn:
    """Write down that an act is not paid for, and raise why."""
    refused = BudgetRefused(
        what=act.what, act=act.name, limited=fault.kind, used=fault.used, limit=fault.limit
    )
    context.ledger.append(refused)
    raise fault


def _by_process(events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
    """What processes before this one wrote, and what this one has."""
    resumed = [number for number, event in enumerate(events) if isinstance(event.payload, RunResumed)]
    first = resumed[-1] + 1 if resumed else 0
    return events[:first], events[first:]


Granted = BudgetReserved | BudgetRefused
"""How it is decided what an act may cost."""


def _same(act: BudgetedCall, events: Sequence[Event]) -> list[tuple[int, Granted]]:
    """What was decided on the act in this branch of a round, each with its `seq`."""
    place = current_place()
    here = (place.get("step"), place.get("branch"), place.get("part"))
    return [
        (event.seq, event.payload)
        for event in events
        if isinstance(event.payload, BudgetReserved | BudgetRefused)
        and event.payload.act == act.name
        and (event.step, event.branch, event.part) == here
    ]


def _decided(act: BudgetedCall, turn: int, events: Sequence[Event]) -> Granted | None:
    """How it was the last time that a process came to this turn of the act; `None` where none did."""
    starts = [event.seq for event, _ in select_events(events, RunResumed)]
    by_process = groupby(_same(act, events), key=lambda granted: bisect(starts, granted[0]))
    came = [turns[turn][1] for _, found in by_process if turn < len(turns := list(found))]
    return came[-1] if came else None


def _bookings(act: BudgetedCall, events: Sequence[Event]) -> int:
    reserved = {seq for seq, _ in _same(act, events)}
    settled = {settled.reservation: settled for _, settled in select_events(reversed(events), BudgetSettled)}
    return sum(seq in settled and settled[seq].attempts > 0 for seq in reserved)
