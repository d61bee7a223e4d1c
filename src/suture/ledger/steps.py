"""A run up to one of its steps: what had happened when so many of its decisions had been carried out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from suture.errors import UsageError
from suture.ledger.endings import last_end, without_earlier_ends
from suture.ledger.event import Event, those_of
from suture.ledger.follow import LAST_EVENTS
from suture.ledger.kinds import Decided, RunFinished


def events_until(events: Iterable[Event], step: int) -> tuple[Event, ...]:
    """The events up to the end of a step.

    Args:
        events: A run's, in order.
        step: How many of its decisions had been carried out; 0 is the run before its first.
    """
    kept: list[Event] = []
    for event in without_earlier_ends(events):
        if event.kind in LAST_EVENTS or _number(event) > step:
            break
        kept.append(event)
    return tuple(kept)


def decision_after(events: Iterable[Event], step: int) -> Event | None:
    """The decision that came after a step; it says what was the best then. `None` where there is none yet."""
    return next((event for event in events if _number(event) == step + 1), None)


def last_step(events: Sequence[Event]) -> int:
    """The number of the last step.

    Raises:
        UsageError: The run took none, or its ledger does not number them.
    """
    numbers = [decided.decision for _, decided in those_of(events, Decided)]
    if not numbers or not all(numbers):
        raise UsageError(
            "the run has no numbered steps", remedy="it ended before the first, or an older Suture made it"
        )
    end = last_end(events)
    ended = end is not None and end.kind == RunFinished.event_kind
    return max(numbers) - (1 if ended else 0)


def _number(event: Event) -> int:
    """Of a decision, from 1; 0 for anything else."""
    return event.payload.decision if isinstance(event.payload, Decided) else 0
