"""What an agent did is not had again: it may have cost money, or asked others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from suture.core.ledger import Payload, current_place, find_run, select_events
from suture.loop.context import RunContext

StepT = TypeVar("StepT", bound=Payload)


def on_record(
    kind: type[StepT],
    is_it: Callable[[StepT], bool],
    blobs_of: Callable[[StepT], tuple[str, ...]],
    context: RunContext,
) -> tuple[StepT, list[Any]] | None:
    """What was done here by a process of this run that was killed, or in the run that is done again.

    What comes of the latter is then told of this run too, with the blobs that it speaks of.

    Args:
        kind: The event that tells of it.
        is_it: Whether it is the one, among those of this branch of the round.
        blobs_of: The hashes of what it made, each a JSON value.
        context: The run.

    Returns:
        The event and what it made, in the order of `blobs_of`; `None` where no record has it.
    """
    place = current_place()
    again = find_run(context.settings.paths.home, context.spec.replays) if context.spec.replays else None
    for folder, events in ((context.folder, context.ledger.events), (again, context.spec.follows)):
        for event, step in select_events(events, kind):
            is_here = (event.step, event.branch) == (place.get("step"), place.get("branch"))
            if folder is None or not is_here or not is_it(step):
                continue
            made = [folder.get_json(blob) for blob in blobs_of(step)]
            if folder is not context.folder:
                for value in made:
                    context.folder.put_json(value)
                context.ledger.append(step)
            return step, made
    return None
