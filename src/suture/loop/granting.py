"""What an act may cost is decided once: made again after a kill, or in a replay, it gets what it got then."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NoReturn

from suture.errors import BudgetExceeded
from suture.ledger import Reservation, current_place
from suture.loop.context import RunContext
from suture.records import Event

__all__ = ["Act", "Precedent", "precedent_of", "refuse", "set_aside"]

DECIDED = ("budget.reserved", "budget.refused")
PLACE = ("step", "branch", "part")


@dataclass(frozen=True, kw_only=True)
class Act:
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
class Precedent:
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


def precedent_of(act: Act, context: RunContext) -> Precedent:
    """How the act went before; the same act twice in one branch is told apart by its turn."""
    earlier, now = _by_process(context.ledger.events)
    turn = len(_same(act, now))
    own = _decided(act, turn, earlier)
    before = own or _decided(act, turn, context.follows)
    booked = act.attempt and _bookings(act, earlier) > turn
    if before is None:
        return Precedent(booked=booked)
    data, refused = before.data, None
    if before.kind == "budget.refused":
        refused = BudgetExceeded(data["limited"], data["used"], data["limit"])
    return Precedent(most=data.get("most") or None, refused=refused, booked=booked, followed=own is None)


def set_aside(
    act: Act,
    context: RunContext,
    before: Precedent,
    *,
    tokens: int = 0,
    most: int = 0,
    money: float = 0.0,
    paid: bool = False,
) -> Reservation:
    """Reserve the most that an act can cost; its attempt only where that is not booked already.

    Args:
        act: It.
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
            about={"act": act.name, "most": most},
        )
    except BudgetExceeded as fault:
        refuse(act, fault, context)


def refuse(act: Act, fault: BudgetExceeded, context: RunContext) -> NoReturn:
    """Write down that an act is not paid for, and raise why."""
    limited = {"limited": fault.kind, "used": fault.used, "limit": fault.limit}
    context.ledger.append("budget.refused", {"what": act.what, "act": act.name, **limited})
    raise fault


def _by_process(events: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
    """What processes before this one wrote, and what this one has."""
    resumed = [number for number, event in enumerate(events) if event.kind == "run.resumed"]
    first = resumed[-1] + 1 if resumed else 0
    return events[:first], events[first:]


def _same(act: Act, events: Sequence[Event]) -> list[Event]:
    place = current_place()
    return [
        event
        for event in events
        if event.kind in DECIDED
        and event.data.get("act") == act.name
        and all(event.data.get(key) == place.get(key) for key in PLACE)
    ]


def _decided(act: Act, turn: int, events: Sequence[Event]) -> Event | None:
    """How it was the last time that a process came to this turn of the act; `None` where none did."""
    starts = [event.seq for event in events if event.kind == "run.resumed"]
    by_process = groupby(_same(act, events), key=lambda event: bisect(starts, event.seq))
    came = [turns[turn] for _, found in by_process if turn < len(turns := list(found))]
    return came[-1] if came else None


def _bookings(act: Act, events: Sequence[Event]) -> int:
    reserved = {event.seq for event in _same(act, events)}
    settled = {e.data["reservation"]: e for e in reversed(events) if e.kind == "budget.settled"}
    return sum(seq in settled and settled[seq].data["attempts"] > 0 for seq in reserved)
