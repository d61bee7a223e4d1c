"""The input and the result of one turn of an agent, and the search for a step that it has done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from suture.agents.calling.call_context import CallContext
from suture.agents.conversation.task_briefing import TaskBriefing
from suture.core.ledger import Payload, current_position, find_run, select_events
from suture.core.records import Candidate, Move
from suture.judge import Suite
from suture.models import Role
from suture.project.safety import Finding

StepT = TypeVar("StepT", bound=Payload)


@dataclass(frozen=True, kw_only=True)
class AgentTurn:
    """What one turn of an agent works with.

    Attributes:
        files: The copy of the project when the turn begins: path -> content.
        parent_files: The files of the candidate that the copy is made from: path -> text.
        scan: Returns what the safety scan finds in a candidate.
    """

    move: Move
    files: Mapping[str, bytes]
    parent_files: Mapping[str, str]
    briefing: TaskBriefing
    suite: Suite
    calls: CallContext
    scan: Callable[[Candidate], Sequence[Finding]]
    coder: Role
    max_steps: int

    @property
    def number(self) -> int:
        """Return the number of the turn, from 1, as the ledger counts them."""
        return self.move.index + 1

    @property
    def trust_threshold(self) -> float:
        """Return the trust below which a check does not decide."""
        return self.calls.settings.loop.trust_threshold


@dataclass(frozen=True, kw_only=True)
class AgentChange:
    """The files that an agent changed, and the hash of its last model call, if a model made the change."""

    files: dict[str, str]
    call: str = ""


def find_recorded_step(
    kind: type[StepT],
    matches: Callable[[StepT], bool],
    blobs_in: Callable[[StepT], tuple[str, ...]],
    calls: CallContext,
) -> tuple[StepT, list[Any]] | None:
    """Return `(event, blob values)` of a step that is recorded already; `None` if it is not.

    A step is not repeated, because it may have cost money. It comes from a killed process of this run, or from
    the run that is replayed; from there it is copied into this run's ledger, with the blobs that it names.

    Args:
        matches: Whether an event of this branch of the round is the step.
        blobs_in: Returns the hashes of the blobs that an event names; each holds a JSON value.
    """
    position = current_position()
    branch = (position.get("step"), position.get("branch"))
    replayed = find_run(calls.settings.paths.home, calls.replayed_run) if calls.replayed_run else None
    for folder, events in ((calls.folder, calls.ledger.events), (replayed, calls.replayed_events)):
        for event, step in select_events(events, kind):
            if folder is None or (event.step, event.branch) != branch or not matches(step):
                continue
            values = [folder.load_json(blob) for blob in blobs_in(step)]
            if folder is not calls.folder:
                for value in values:
                    calls.folder.save_json(value)
                calls.ledger.append(step)
            return step, values
    return None
