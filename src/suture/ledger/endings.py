"""How a run ended, as its ledger tells it: an end that the run went on from is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from suture.ledger.event import Event
from suture.ledger.follow import LAST_EVENTS
from suture.ledger.kinds import RunResumed

RESUMED = RunResumed.event_kind
"""The kind with which a run goes on that was killed, was parked, or met a fault that has passed."""


def last_end(events: Sequence[Event]) -> Event | None:
    """The event that a run ended with; `None` where it goes on, was cut off, or went on after it.

    Args:
        events: A ledger's events, in order.
    """
    for event in reversed(events):
        if event.kind in LAST_EVENTS:
            return event
        if event.kind == RESUMED:
            return None
    return None


def without_earlier_ends(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events without the ends that the run went on from."""
    every = tuple(events)
    last = max((number for number, event in enumerate(every) if event.kind == RESUMED), default=-1)
    return tuple(e for number, e in enumerate(every) if number > last or e.kind not in LAST_EVENTS)
