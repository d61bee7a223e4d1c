"""How a run began and ended, as its ledger tells it: an end that the run went on from is none."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Sequence

from suture.core.ledger.event import Event, RawPayload, first_payload, last_payload, select_events
from suture.core.ledger.kinds import (
    BudgetSettled,
    ModelCalled,
    MovesDecided,
    ReviewAsked,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
)
from suture.core.ledger.reading import FINAL_EVENT_KINDS, LedgerContents, read_ledger
from suture.core.ledger.run_folder import RunFolder
from suture.core.records import Result, Task
from suture.errors import StorageError, UsageError

RESUMED = RunResumed.event_kind
"""The kind with which a run goes on that was killed, was parked, or met a fault that has passed."""


def find_final_event(events: Sequence[Event]) -> Event | None:
    """The event that a run ended with; `None` where it goes on, was cut off, or went on after it."""
    for event in reversed(events):
        if event.kind in FINAL_EVENT_KINDS:
            return event
        if event.kind == RESUMED:
            return None
    return None


def drop_superseded_ends(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events without the ends that the run went on from."""
    every = tuple(events)
    last = max((number for number, event in enumerate(every) if event.kind == RESUMED), default=-1)
    return tuple(e for number, e in enumerate(every) if number > last or e.kind not in FINAL_EVENT_KINDS)


def get_run_state(run: RunFolder, reading: LedgerContents) -> str:
    """`ended`, `running`, `waiting` for a person, or `stopped` where its process went away before the end."""
    if find_final_event(reading.events) is not None:
        return "ended"
    if is_being_written(run):
        return "running"
    return "waiting" if reading.events and isinstance(reading.events[-1].payload, RunPaused) else "stopped"


def is_being_written(run: RunFolder) -> bool:
    """Whether a process has the run's ledger open: it holds the lock for as long as it lives."""
    with run.ledger_path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def get_run_status(run: RunFolder, reading: LedgerContents) -> str:
    """The outcome of a run that ended with one, `error` for one that was refused, else its state."""
    end = find_final_event(reading.events)
    if end is None:
        return get_run_state(run, reading)
    return end.payload.outcome if isinstance(end.payload, RunFinished) else "error"


def load_task(run: RunFolder) -> Task | None:
    """What a run was to do; `None` where its ledger does not say.

    Raises:
        StorageError: Its folder is damaged.
    """
    started = first_payload(read_ledger(run.ledger_path).events, RunStarted)
    return run.get_record(Task, started.task) if started is not None and started.task else None


def load_result(run: RunFolder) -> Result | None:
    """The result that a run ended with; `None` where it has none.

    Raises:
        StorageError: Its folder is damaged.
    """
    finished = last_payload(read_ledger(run.ledger_path).events, RunFinished)
    return run.get_record(Result, finished.result) if finished is not None and finished.result else None


LEFT_BEHIND = (
    *(RunStarted.event_kind, RunResumed.event_kind, RunPaused.event_kind, ReviewAsked.event_kind),
    *FINAL_EVENT_KINDS,
)


def events_until(events: Iterable[Event], step: int) -> tuple[Event, ...]:
    """The events up to the end of a step.

    Args:
        events: A run's, in order.
        step: How many of its decisions had been carried out; 0 is the run before its first.
    """
    kept: list[Event] = []
    for event in drop_superseded_ends(events):
        if event.kind in FINAL_EVENT_KINDS or _number(event) > step:
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
    numbers = [decided.decision for _, decided in select_events(events, MovesDecided)]
    if not numbers or not all(numbers):
        raise UsageError(
            "the run has no numbered steps", remedy="it ended before the first, or an older Suture made it"
        )
    end = find_final_event(events)
    ended = end is not None and end.kind == RunFinished.event_kind
    return max(numbers) - (1 if ended else 0)


def _number(event: Event) -> int:
    """Of a decision, from 1; 0 for anything else."""
    return event.payload.decision if isinstance(event.payload, MovesDecided) else 0


def copy_events_for_fork(events: Iterable[Event], run: str, *, offset: int) -> list[RawPayload]:
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
