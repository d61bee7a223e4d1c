"""What a run is to be: all that is said of it before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suture.core.ledger import Event, Limits, RunFolder
from suture.core.records import Task
from suture.core.settings import Settings
from suture.loop.review.reviewing import Reviewer
from suture.loop.state import LoopState
from suture.models import Models, ReplySource
from suture.project.languages import Interpreter
from suture.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class ForkStart:
    """Where a run begins that is a fork.

    Attributes:
        run: The run that it is a fork of.
        at: How many decisions of that run had been carried out.
        state: The graph's state then.
        events: What had happened until then.
        folder: Where the blobs lie that both speak of.
        hint: What the model is to be told from now on.
        files: A person's files over the best candidate's; judged before anything else.
    """

    run: str
    at: int
    state: LoopState
    events: Sequence[Event]
    folder: RunFolder
    hint: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What a run is to be; `open_run` opens what it needs.

    Attributes:
        task: What is wanted.
        settings: The knobs.
        project: The folder it is about; decides what `python` means in its test command,
            and may have prompts of its own, which count where it is trusted.
        models: Who answers each role.
        sandbox: The wall; the settings' where not given.
        folder: The folder of a run that goes on; a new one where not given.
        asked_s: When the user asked for it, in seconds since the epoch: its own seconds count from then.
        run_id: What a new run is called, where somebody has said so beforehand.
        limits: What it may use; the settings' where not given.
        interpreter: What `python` means, where that is known already.
        source: Replies of another run, to answer from.
        or_live: Whether the model is asked for what the source does not hold.
        start: Where it begins, where it is a fork of another run.
        replays: The run that it does again; empty where it does none.
        left_out: Files that it does not see, as they may hold secrets.
        on_review: Asks a person: where `loop.autonomy` wants it, and where `distinguishes` does. Without it,
            and where it has no answer, the run is parked.
        distinguishes: Whether a person is asked which is right where two repairs pass and differ.
        recorded: All events of the run that is done again: what it recalled, this one recalls too.
        follows: The events of the run that is done again; what was granted or refused there, is so here.
    """

    task: Task
    settings: Settings
    project: Path
    models: Models
    sandbox: Sandbox | None = None
    folder: RunFolder | None = None
    asked_s: float | None = None
    run_id: str = ""
    limits: Limits | None = None
    interpreter: Interpreter | None = None
    source: ReplySource | None = None
    or_live: bool = False
    start: ForkStart | None = None
    replays: str = ""
    left_out: tuple[str, ...] = ()
    on_review: Reviewer | None = None
    distinguishes: bool = False
    recorded: Sequence[Event] = ()
    follows: Sequence[Event] = ()
