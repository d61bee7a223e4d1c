"""The input of one turn of an agent, and the search for a step that it has done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from suture.agents.calling.call_context import CallContext
from suture.agents.conversation.task_briefing import TaskBriefing
from suture.core.ledger import Payload, current_position, find_run, select_events
from suture.core.records import Candidate, Move, Verdict
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
        verdict: The verdict on that candidate; `None` if there is none yet.
        baseline: The verdict on the user's own code; `None` if there is no such code.
        briefing: The task and the failing tests.
        scan: Returns what the safety scan finds in a candidate.
        max_steps: The model's replies in the turn.
    """

    move: Move
    files: Mapping[str, bytes]
    parent_files: Mapping[str, str]
    verdict: Verdict | None
    baseline: Verdict | None
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
    def offers_tools(self) -> bool:
        """Return whether there is anything that tools could show."""
        return bool(self.files)

    @property
    def trust_threshold(self) -> float:
        """Return the trust below which a check does not decide."""
        return self.calls.settings.loop.trust_threshold


class PatchJudge(Protocol):
    """Judges the patches of a conversation as candidates of the run."""

    async def judge(self, changed: Mapping[str, str], number: int, call: str) -> Verdict | None:
        """Propose a patch as a candidate, run the deciding tests on it, and record both.

        Args:
            changed: The files that differ from those at the beginning of the turn: path -> text.
            number: The number of the patch in its turn, from 1.
            call: The hash of the model call that it comes from.

        Returns:
            The verdict; `None` if a person has to allow the patch before it may run.

        Raises:
            BudgetExceeded: The time is up.
            MalformedReply: The patch cannot be a candidate.
            SandboxError: The sandbox failed.
        """
        ...

    def restore(self, changed: Mapping[str, str], number: int, verdict: Verdict | None) -> None:
        """Take over a patch that an earlier process of this run has judged and recorded."""
        ...


@dataclass(frozen=True, kw_only=True)
class RecordedStep(Generic[StepT]):
    """A step that is in a ledger already.

    Attributes:
        payload: The event of the step.
        blobs: Hash -> JSON value of the blobs that the event names.
        is_own: Whether it is from an earlier process of this run; otherwise it is from the replayed run.
    """

    payload: StepT
    blobs: Mapping[str, Any]
    is_own: bool

    def adopt(self, calls: CallContext) -> None:
        """Copy a step of the replayed run, with its blobs, into this run."""
        if not self.is_own:
            for value in self.blobs.values():
                calls.folder.save_json(value)
            calls.ledger.append(self.payload)


def find_recorded_step(
    kind: type[StepT],
    matches: Callable[[StepT], bool],
    blobs_in: Callable[[StepT], tuple[str, ...]],
    calls: CallContext,
) -> RecordedStep[StepT] | None:
    """Return a step that is recorded already; `None` if it is not.

    A step is not repeated, because it may have cost money. It comes from a killed process of this run, or from
    the run that is replayed.

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
            blobs = {blob: folder.load_json(blob) for blob in blobs_in(step) if blob}
            return RecordedStep(payload=step, blobs=blobs, is_own=folder is calls.folder)
    return None
