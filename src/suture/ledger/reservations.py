"""What is set aside for acts that go on, or that a crash cut off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from suture.ledger.event import Event
from suture.ledger.kinds import BudgetReserved, BudgetSettled


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A promise to spend at most this much; `id` is the `seq` of its event.

    `tokens` are those of prompt and reply together, `completion_tokens` those of the reply among them.
    """

    id: int
    attempts: int
    tokens: int
    completion_tokens: int = 0
    money: float = 0.0


def open_reservations(events: Iterable[Event]) -> tuple[Reservation, ...]:
    """Reservations that are not settled; where no process writes the run any more, a crash cut them off.

    Args:
        events: A ledger's events, in order.
    """
    held: dict[int, Reservation] = {}
    for event in events:
        match event.payload:
            case BudgetReserved() as reserved:
                held[event.seq] = Reservation(
                    id=event.seq,
                    attempts=reserved.attempts,
                    tokens=reserved.tokens,
                    completion_tokens=reserved.completion_tokens,
                    money=reserved.money,
                )
            case BudgetSettled() as settled:
                held.pop(settled.reservation, None)
    return tuple(held.values())
