"""The input of one turn of an agent, and the search for a step that it has done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from suture.agents.calling.budgeted_call import CallContext
from suture.agents.context.failure_causes import count_deciding_checks
from suture.agents.context.failure_context import build_failure_context
from suture.agents.conversation.task_briefing import TaskBriefing
from suture.agents.conversation.tool_calls import render_text_tools
from suture.core.ledger import Payload, current_position, find_run, select_events
from suture.core.records import Candidate, Move, Verdict
from suture.judge import Suite
from suture.models import Message, Role
from suture.models.profiles import ModelProfile
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


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The beginning of a conversation.

    Attributes:
        messages: The first messages.
        shown_files: The files of which they show at least a part; empty if they show none.
    """

    messages: tuple[Message, ...]
    shown_files: tuple[str, ...] = ()


async def build_opening(turn: AgentTurn, profile: ModelProfile, max_tokens: int) -> Opening:
    """Return the beginning of a conversation.

    Args:
        max_tokens: Tokens of the description of the failing tests and the code.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The sandbox failed.
    """
    prompt = turn.calls.prompts.load("agent")
    rules = prompt.render("system")
    if turn.offers_tools and not profile.tools:
        rules += "\n" + prompt.render("text_tools", tools=render_text_tools())
    task, shown_files = await _describe_task(turn, max_tokens)
    messages = (Message(role="system", content=rules), Message(role="user", content=task))
    return Opening(messages=messages, shown_files=shown_files)


async def _describe_task(turn: AgentTurn, max_tokens: int) -> tuple[str, tuple[str, ...]]:
    """Return `(text, shown files)`: the task, and what fails with the code that it reaches if tests have run."""
    task, verdict = turn.suite.task, turn.verdict
    if verdict is None:
        is_single_file = task.kind == "write" and task.project is None
        parts = [turn.briefing.render_task(), *turn.briefing.hints]
        return "\n\n".join(parts) + "\n", (task.module,) if is_single_file else ()
    async with turn.calls.budget.time_limit():
        context = await build_failure_context(
            task,
            turn.files,
            verdict,
            turn.suite,
            # A search stops at its first repairs and may have seen few tests, so the tests are traced for this.
            None,
            threshold=turn.trust_threshold,
            max_tokens=max_tokens,
        )
    parts = [turn.briefing.render_task(), context.render().strip(), *turn.briefing.hints]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n", context.shown_files


@dataclass(frozen=True, kw_only=True)
class Patch:
    """All changes of a conversation at one point, and what the deciding tests say about them.

    Attributes:
        number: Its number in the turn, from 1; 0 is the code at the beginning.
        changed: The files that differ from those at the beginning: path -> text.
        verdict: The verdict; `None` for the beginning of a task that has no code yet.
        passed: Number of deciding tests that pass.
        failed: Number of deciding tests that fail.
        regressed: Number of deciding tests that passed on the user's own code and do not pass now.
    """

    number: int
    changed: Mapping[str, str]
    verdict: Verdict | None
    passed: int = 0
    failed: int = 0
    regressed: int = 0

    @property
    def passes(self) -> bool:
        """Return whether no deciding test fails."""
        return self.verdict is not None and not self.failed and not self.regressed

    @property
    def is_refused(self) -> bool:
        """Return whether the safety scan did not let it run."""
        return self.verdict is not None and any(note.code == "scan_refused" for note in self.verdict.notes)

    def is_better_than(self, other: Patch) -> bool:
        """Return whether it comes first in the trusted order."""
        return self._rank() > other._rank()

    def is_worse_than(self, other: Patch) -> bool:
        """Return whether the other one comes first in the trusted order."""
        return self._rank() < other._rank()

    def _rank(self) -> tuple[bool, bool, bool, int, int, int]:
        """Return the key of the trusted order (see `find_best`); any code comes before none."""
        has_code = self.verdict is not None
        return (not self.is_refused, has_code, self.passes, -self.regressed, self.passed, -self.failed)


def make_patch(
    number: int,
    changed: Mapping[str, str],
    verdict: Verdict | None,
    baseline: Verdict | None,
    threshold: float,
) -> Patch:
    """Return a patch with the numbers of its verdict."""
    if verdict is None:
        return Patch(number=number, changed=changed, verdict=None)
    passed, failed, regressed = count_deciding_checks(verdict, baseline, threshold)
    return Patch(
        number=number, changed=changed, verdict=verdict, passed=passed, failed=failed, regressed=regressed
    )
