"""Read from a ledger how a run began, what its state is and how it ended, and what a fork of it copies.

A run that failed can be resumed. The event of its earlier end then no longer counts as an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from suture.core.file_locks import is_locked
from suture.core.ledger.event import Event, RawPayload, last_payload, select_events
from suture.core.ledger.kinds import (
    BudgetSettled,
    ModelCalled,
    MovesDecided,
    RepairUndetermined,
    ReviewAsked,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    SandboxSubstituted,
)
from suture.core.ledger.reading import FINAL_EVENT_KINDS, LedgerContents, find_first_payload, read_ledger
from suture.core.ledger.run_folder import RunFolder
from suture.core.records import Outcome, Result, Task
from suture.errors import StorageError, UsageError

RESUMED_KIND = RunResumed.event_kind
RunState = Literal["ended", "running", "waiting", "stopped"]
"""A run has ended, is running, is waiting for a person, or was `stopped`: its process died before the end."""
RunStatus = Outcome | RunState | Literal["error"]
"""The outcome of a finished run, `error` for a run that failed, and the state of any other run."""
Doubt = Literal["", "undecided", "unverified", "unsure"]
"""Why a healed result may still be wrong; empty if there is no such reason.

`undecided`: the tests do not decide between several changes, or notice few mistakes in the change. `unverified`:
nothing in the task shows what new code must do. `unsure`: the confidence is low for another reason.
"""
MIN_SURE_CONFIDENCE = 0.7
"""Below this confidence, a person must check the change (see docs/proof.md)."""
NOT_COPIED = (
    RunStarted.event_kind,
    RunResumed.event_kind,
    SandboxSubstituted.event_kind,
    RunPaused.event_kind,
    ReviewAsked.event_kind,
    *FINAL_EVENT_KINDS,
)
"""Kinds of events that a fork does not copy: they are about the other run itself, not about its work."""


def find_final_event(events: Sequence[Event]) -> Event | None:
    """Return the event that ended a run, or `None` if it runs, was killed, or was resumed afterwards."""
    for event in reversed(events):
        if event.kind in FINAL_EVENT_KINDS:
            return event
        if event.kind == RESUMED_KIND:
            return None
    return None


def find_doubt(events: Iterable[Event]) -> Doubt:
    """Return why the healed result of a run may still be wrong; empty if the run has no such result."""
    all_events = tuple(events)
    event = find_final_event(all_events)
    end = event.payload if event is not None else None
    if not isinstance(end, RunFinished) or end.outcome != "healed":
        return ""
    if {"project_unshown", "feature_unshown"} & {*end.reason.notes}:
        return "unverified"
    if last_payload(all_events, RepairUndetermined) is not None:
        return "undecided"
    return "unsure" if 0 < end.confidence < MIN_SURE_CONFIDENCE else ""


def drop_superseded_ends(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events without those that ended the run before it was resumed."""
    all_events = tuple(events)
    resumed_at = max((n for n, event in enumerate(all_events) if event.kind == RESUMED_KIND), default=-1)
    return tuple(
        event for n, event in enumerate(all_events) if n > resumed_at or event.kind not in FINAL_EVENT_KINDS
    )


def get_run_state(run: RunFolder, contents: LedgerContents) -> RunState:
    """Return the state of a run with these ledger contents."""
    events = contents.events
    if find_final_event(events) is not None:
        return "ended"
    if is_being_written(run):
        return "running"
    return "waiting" if events and isinstance(events[-1].payload, RunPaused) else "stopped"


def is_being_written(run: RunFolder) -> bool:
    """Return whether a process is writing the run's ledger: it holds a lock on it as long as it lives."""
    return is_locked(run.ledger_path)


def get_run_status(run: RunFolder, contents: LedgerContents) -> RunStatus:
    """Return the outcome of a finished run, `error` for a run that failed, and the state of any other run."""
    final = find_final_event(contents.events)
    if final is None:
        return get_run_state(run, contents)
    return final.payload.outcome if isinstance(final.payload, RunFinished) else "error"


def load_task(run: RunFolder) -> Task | None:
    """Return the task of a run, or `None` if its ledger does not name it.

    Raises:
        StorageError: The run folder is damaged.
    """
    started = find_first_payload(run.ledger_path, RunStarted)
    return run.load_record(Task, started.task) if started is not None and started.task else None


def load_result(run: RunFolder) -> Result | None:
    """Return the result of a run, or `None` if it has none.

    Raises:
        StorageError: The run folder is damaged.
    """
    finished = last_payload(read_ledger(run.ledger_path).events, RunFinished)
    return run.load_record(Result, finished.result) if finished is not None and finished.result else None


def events_until(events: Iterable[Event], step: int) -> tuple[Event, ...]:
    """Return the events up to the end of a step. A step carries out one decision of the policy.

    Args:
        step: Number of the step, from 1. Step 0 is the run before its first decision.
    """
    selected: list[Event] = []
    for event in drop_superseded_ends(events):
        if event.kind in FINAL_EVENT_KINDS or _decision_number(event) > step:
            break
        selected.append(event)
    return tuple(selected)


def decision_after(events: Iterable[Event], step: int) -> Event | None:
    """Return the decision that followed a step, or `None` if there is none yet."""
    return next((event for event in events if _decision_number(event) == step + 1), None)


def last_step(events: Sequence[Event]) -> int:
    """Return the number of the last step of a run.

    Raises:
        UsageError: The run ended before its first step.
    """
    numbers = [decided.decision for _, decided in select_events(events, MovesDecided)]
    if not numbers or not all(numbers):
        raise UsageError("the run has no numbered steps", remedy="it ended before the first one")
    final = find_final_event(events)
    has_finished = final is not None and final.kind == RunFinished.event_kind
    return max(numbers) - (1 if has_finished else 0)  # the last decision of a finished run is to stop


def _decision_number(event: Event) -> int:
    """Return the number of a decision, from 1; 0 for any other event."""
    return event.payload.decision if isinstance(event.payload, MovesDecided) else 0


def copy_events_for_fork(events: Iterable[Event], run: str, *, offset: int) -> list[RawPayload]:
    """Return the events that a fork copies from another run.

    In the fork, the attempts and tokens of the other run count as used, and its model calls as replayed.
    Each event is copied as it is on disk, so that events of a newer version of Suture lose nothing.

    Args:
        offset: The `seq` of the first copy in the fork's ledger.

    Raises:
        StorageError: An event settles a reservation that does not exist.
    """
    copies: list[RawPayload] = []
    new_seq: dict[int, int] = {}
    for event in events:
        if event.kind in NOT_COPIED:
            continue
        new_seq[event.seq] = offset + len(copies)
        data = {**event.data, "from_run": run}
        match event.payload:
            case BudgetSettled(reservation=reservation):
                if reservation not in new_seq:
                    raise StorageError(
                        f"the ledger of run {run} is damaged: event {event.seq} settles what was not reserved"
                    )
                data |= {"reservation": new_seq[reservation], "model_calls": 0, "unpriced_calls": 0}
            case ModelCalled():
                data["replayed"] = True
        copies.append(RawPayload(kind=event.kind, data=data, version=event.version))
    return copies
