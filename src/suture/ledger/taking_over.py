"""What a fork takes over of the run that it begins in, as its own ledger tells it."""

from __future__ import annotations

from collections.abc import Iterable

from suture.errors import StorageError
from suture.ledger.event import Event
from suture.ledger.follow import LAST_EVENTS
from suture.ledger.kinds import BudgetSettled, ModelCalled, ReviewAsked, RunParked, RunResumed, RunStarted
from suture.ledger.payload import RawPayload

LEFT_BEHIND = (
    *(RunStarted.event_kind, RunResumed.event_kind, RunParked.event_kind, ReviewAsked.event_kind),
    *LAST_EVENTS,
)


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
