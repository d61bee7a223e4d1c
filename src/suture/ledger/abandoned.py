"""What a crash left open."""

from __future__ import annotations

from collections.abc import Iterable

from suture.ledger.budget import Reservation
from suture.records import Event

__all__ = ["abandoned_reservations"]


def abandoned_reservations(events: Iterable[Event]) -> tuple[Reservation, ...]:
    """Reservations that were never settled: acts that a crash cut off.

    Args:
        events: The ledger of a run that no process writes any more, in order.
    """
    held: dict[int, Reservation] = {}
    for event in events:
        data = event.data
        if event.kind == "budget.reserved":
            held[event.seq] = Reservation(
                id=event.seq,
                attempts=data["attempts"],
                tokens=data["tokens"],
                money=data.get("money", 0.0),
            )
        elif event.kind == "budget.settled":
            held.pop(data["reservation"], None)
    return tuple(held.values())
