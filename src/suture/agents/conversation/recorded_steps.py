"""Find a step that an agent has done before, because a step is not repeated: it may have cost money."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from suture.agents.calling.call_context import CallContext
from suture.core.ledger import Payload, current_position, find_run, select_events

StepT = TypeVar("StepT", bound=Payload)


def find_recorded_step(
    kind: type[StepT],
    matches: Callable[[StepT], bool],
    blobs_in: Callable[[StepT], tuple[str, ...]],
    calls: CallContext,
) -> tuple[StepT, list[Any]] | None:
    """Return the step from a killed process of this run, or from the run that is replayed.

    A step of the replayed run is copied into this run's ledger, with the blobs that it names.

    Args:
        kind: The event that records such a step.
        matches: Whether an event of this branch of the round is the step.
        blobs_in: The hashes of the blobs that an event names; each holds a JSON value.
        calls: The run's folder and ledger, and the replayed run.

    Returns:
        The event and the values of its blobs in the order of `blobs_in`; `None` if no record has the step.
    """
    place = current_position()
    replayed = find_run(calls.settings.paths.home, calls.replayed_run) if calls.replayed_run else None
    for folder, events in ((calls.folder, calls.ledger.events), (replayed, calls.replayed_events)):
        for event, step in select_events(events, kind):
            is_here = (event.step, event.branch) == (place.get("step"), place.get("branch"))
            if folder is None or not is_here or not matches(step):
                continue
            values = [folder.load_json(blob) for blob in blobs_in(step)]
            if folder is not calls.folder:
                for value in values:
                    calls.folder.save_json(value)
                calls.ledger.append(step)
            return step, values
    return None
