"""A run up to one of its steps, and what a fork that begins there takes over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from suture.core.ledger.endings import last_end, without_earlier_ends
from suture.core.ledger.event import Event, those_of
from suture.core.ledger.kinds import (
    BudgetSettled,
    Decided,
    ModelCalled,
    ReviewAsked,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
)
from suture.core.ledger.payload import RawPayload
from suture.core.ledger.reading import LAST_EVENTS
from suture.errors import StorageError, UsageError

LEFT_BEHIND = (
    *(RunStarted.event_kind, RunResumed.event_kind, RunParked.event_kind, ReviewAsked.event_kind),
    *LAST_EVENTS,
)


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


def taken_over(events: Iterable[Event], run: str, *, offset: int) -> list[RawPayload]:
    """The events as another run tells them: attempts and tokens count as they did, and nothing is paid.

    Each is kept as it lies on disk, so that nothing is lost that only a newer Suture understands.

    Args:
        events: The other run's, in order.
        run: Its id.
        offset: The `seq` of the first of them in the new ledger.

    Raises:
        StorageError: One of them settles what none of them reserves.
    """
    taken: list[RawPayload] = []
    place: dict[int, int] = {}
    for event in events:
        if event.kind in LEFT_BEHIND:
            continue
        place[event.seq] = offset + len(taken)
        data = {**event.data, "from_run": run}
        match event.payload:
            case BudgetSettled(reservation=reservation):
                if reservation not in place:
                    raise StorageError(
                        f"the ledger of run {run} is damaged: event {event.seq} settles what was not reserved"
                    )
                data |= {"reservation": place[reservation], "model_calls": 0, "unpriced_calls": 0}
            case ModelCalled():
                data["replayed"] = True
        taken.append(RawPayload(kind=event.kind, data=data, version=event.version))
    return taken
