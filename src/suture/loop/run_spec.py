"""The specification of a run: what the user requests, before anything is opened for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suture.core.ledger import Event, Limits, RunFolder
from suture.core.ledger.kinds import RepairChosen
from suture.core.records import Task
from suture.core.settings import Settings
from suture.loop.review.questions import Reviewer
from suture.loop.state import LoopState
from suture.models import ReplyRecording, RoleModels
from suture.project.languages import Interpreter
from suture.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class ForkOrigin:
    """The point of another run at which a forked run begins.

    Attributes:
        run: The id of the other run.
        decision: The number of decisions that it had carried out.
        state: The graph's state at that time.
        events: The events until then.
        folder: The folder with the blobs that state and events name.
        hint: A hint for the model from the person who forks the run.
        files: That person's edits of the best candidate, path -> text; they are judged before anything else.
        choice: If `files` are a repair of the search that the person chose, that choice. The search is not repeated.
    """

    run: str
    decision: int
    state: LoopState
    events: Sequence[Event]
    folder: RunFolder
    hint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    choice: RepairChosen | None = None


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What the user requests; `open_run` opens everything that the run needs.

    Attributes:
        project: The project's folder. It decides what `python` means in the test command, and may have
            its own prompts, which are used if the project is trusted.
        models: The model of each role.
        sandbox: The sandbox; `None` to open one as the settings say.
        folder: The folder of a run that is resumed; `None` for a new run.
        requested_at_s: When the user asked for the run, in seconds since the epoch. Its time budget counts
            from then.
        run_id: The id of a new run, if one was reserved before.
        limits: The budget; `None` for that of the settings.
        interpreter: What `python` means in the test command, if that is known already.
        source: Recorded replies that answer model calls.
        or_live: Whether the model is asked for calls that `source` does not hold.
        origin: The point where the run begins, if it is a fork.
        replays: The id of the run that it replays; empty if it replays none.
        left_out: Files that no model and no sandbox sees, because they may hold secrets.
        on_review: Asks a person, if `loop.autonomy` or `asks_user` wants it. If it is missing, or
            has no answer, the run waits.
        asks_user: Whether a person is asked which of two repairs is right if both pass and differ, and
            whether results of new code are right if the task shows none.
        asks_at_once: Whether results are shown before the model is asked for a second version to compare: a run that
            had ended is resumed only for the question.
        recorded_events: All events of the run that is replayed: it recalls the same memories.
        budget_events: The same events if the run also repeats the budget decisions in them; else empty.
    """

    task: Task
    settings: Settings
    project: Path
    models: RoleModels
    sandbox: Sandbox | None = None
    folder: RunFolder | None = None
    requested_at_s: float | None = None
    run_id: str = ""
    limits: Limits | None = None
    interpreter: Interpreter | None = None
    source: ReplyRecording | None = None
    or_live: bool = False
    origin: ForkOrigin | None = None
    replays: str = ""
    left_out: tuple[str, ...] = ()
    on_review: Reviewer | None = None
    asks_user: bool = False
    asks_at_once: bool = False
    recorded_events: Sequence[Event] = ()
    budget_events: Sequence[Event] = ()

    @property
    def has_proposer(self) -> bool:
        """Return whether a program of the user replaces the model."""
        return self.task.kind == "heal" and bool(self.settings.proposer.command)
