"""How a run began and ended, as its ledger tells it: an end that the run went on from is none."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Sequence

from suture.core.ledger.event import Event, first_of, last_of
from suture.core.ledger.kinds import RunFinished, RunParked, RunResumed, RunStarted
from suture.core.ledger.reading import LAST_EVENTS, LedgerReading, read_ledger
from suture.core.ledger.run_folder import RunFolder
from suture.core.records import Result, Task

RESUMED = RunResumed.event_kind
"""The kind with which a run goes on that was killed, was parked, or met a fault that has passed."""


def last_end(events: Sequence[Event]) -> Event | None:
    """The event that a run ended with; `None` where it goes on, was cut off, or went on after it."""
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


def state_of(run: RunFolder, reading: LedgerReading) -> str:
    """`ended`, `running`, `waiting` for a person, or `stopped` where its process went away before the end."""
    if last_end(reading.events) is not None:
        return "ended"
    if is_being_written(run):
        return "running"
    return "waiting" if reading.events and isinstance(reading.events[-1].payload, RunParked) else "stopped"


def is_being_written(run: RunFolder) -> bool:
    """Whether a process has the run's ledger open: it holds the lock for as long as it lives."""
    with run.ledger_path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def stands(run: RunFolder, reading: LedgerReading) -> str:
    """The outcome of a run that ended with one, `error` for one that was refused, else its state."""
    end = last_end(reading.events)
    if end is None:
        return state_of(run, reading)
    return end.payload.outcome if isinstance(end.payload, RunFinished) else "error"


def task_of(run: RunFolder) -> Task | None:
    """What a run was to do; `None` where its ledger does not say.

    Raises:
        StorageError: Its folder is damaged.
    """
    started = first_of(read_ledger(run.ledger_path).events, RunStarted)
    return run.get_record(Task, started.task) if started is not None and started.task else None


def result_of(run: RunFolder) -> Result | None:
    """The result that a run ended with; `None` where it has none.

    Raises:
        StorageError: Its folder is damaged.
    """
    finished = last_of(read_ledger(run.ledger_path).events, RunFinished)
    return run.get_record(Result, finished.result) if finished is not None and finished.result else None
