"""What a run folder says of how its run began: all that is needed to do it again, or to go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from suture import errors
from suture.core.ledger import Divergence, Event, RunFolder, first_of, last_end, read_ledger
from suture.core.ledger.kinds import RunFinished, RunRefused, RunStarted
from suture.core.records import Result, Task, to_plain
from suture.core.settings import Settings
from suture.core.settings.writing import settings_as_plain, settings_of_record
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.loop.context import RunContext
from suture.loop.recipes.recipe import list_recipes, recipe_as_toml
from suture.loop.run_spec import ForkStart, RunSpec
from suture.loop.state import SCHEMA_VERSION, LoopState, first_state
from suture.models import Models
from suture.project.languages import Interpreter
from suture.project.recorded_task import is_among, recorded_interpreter
from suture.sandbox import Sandbox

RECIPE_FILE = "recipe.toml"
"""In a run folder: the recipe, where it does not ship with Suture."""

NOT_ITS_OWN = ("infra_error", "cancelled")
"""Outcomes that say nothing about the task."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run as its folder tells it.

    Attributes:
        folder: Its folder.
        task: What was wanted, files included.
        settings: Its knobs, with the keys and the folders of whoever asks now.
        model: Who answered for roles without a model of their own, as `provider:model`.
        interpreter: What `python` meant in its test command; `None` where it had none, or where that
            program is gone.
        project: The folder that it was about; it may be gone.
        schema_version: Of its state.
        ended: Whether it came to its end.
        may_go_on: Whether that end was none of its own: the machinery failed, something was missing that can
            be set right, or the user stopped it.
        own: Whether it lies among the runs of whoever asks. A stranger's brings neither a wall, an address
            nor an interpreter, and changes no files.
        replays: The run that it does again; empty where it does none.
        events: All that its ledger tells, read once.
    """

    folder: RunFolder
    task: Task
    settings: Settings
    model: str
    interpreter: Interpreter | None
    project: Path
    schema_version: int
    ended: bool
    own: bool
    may_go_on: bool = False
    replays: str = ""
    events: tuple[Event, ...] = ()

    def spec(self, models: Models, sandbox: Sandbox | None) -> RunSpec:
        """What a run is to be that has this one's task, settings and surroundings."""
        return RunSpec(
            task=self.task,
            settings=self.settings,
            project=self.project,
            models=models,
            sandbox=sandbox,
            interpreter=self.interpreter,
        )

    def require_resumable(self) -> None:
        """Refuse to go on with a run that cannot.

        Raises:
            UsageError: It has ended, is somebody else's or a replay, or its state is of another version.
        """
        if not self.own:
            raise UsageError(
                f"run {self.folder.id} is not among your own runs",
                remedy="do it again from its record: `suture replay` changes nothing",
            )
        if self.ended and not self.may_go_on:
            raise UsageError(
                f"run {self.folder.id} has ended",
                remedy=f"see how: suture show {self.folder.id}; or go on from one of its steps in a new run: "
                f"suture fork {self.folder.id} --at N",
            )
        if self.replays:  # it would ask the model for what the record holds
            raise UsageError(
                f"run {self.folder.id} is a replay, and a replay does not go on",
                remedy=f"begin it again: suture replay {self.replays}",
            )
        if self.schema_version != SCHEMA_VERSION:
            raise UsageError(
                f"the state of run {self.folder.id} is of another version of Suture",
                remedy="go on with that version, or start anew: `suture replay` needs no state",
            )


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A recorded run, done again.

    Attributes:
        recorded: The id of the run that was replayed.
        result: How the replay ended.
        difference: Where the two ledgers part first; `None` where they tell the same.
    """

    recorded: str
    result: Result
    difference: Divergence | None

    @property
    def same(self) -> bool:
        """Whether the run went the same way."""
        return self.difference is None


def started_with(context: RunContext) -> RunStarted:
    """The first event of a run. What is large lies in the folder; keys lie nowhere."""
    task, folder, now_s = context.task, context.folder, context.budget.now_s()
    if context.settings.loop.recipe not in list_recipes():
        folder.write_text(RECIPE_FILE, recipe_as_toml(context.recipe))
    stronger = context.models.stronger
    return RunStarted(
        stronger=stronger.model.name if stronger else "",
        schema_version=SCHEMA_VERSION,
        kind=task.kind,
        statement=task.statement[:2000],
        task=folder.put_json(to_plain(task)),
        recipe=context.recipe.name,
        model=context.model.name,
        unpriced=tuple(context.models.unpriced),
        common_model=context.models.common,
        sandbox=context.sandbox.name,
        limits=vars(context.budget.limits),
        settings=folder.put_json(settings_as_plain(context.settings)),
        interpreter=to_plain(context.interpreter) if context.interpreter else None,
        project=str(context.spec.project),
        replays=context.spec.replays,
        left_out=context.spec.left_out,
        namespace=context.settings.store.namespace,
        seconds=round(max(0.0, now_s - (context.spec.asked_s or now_s)), 3),
    )


def open_recorded(folder: RunFolder, present: Settings) -> RecordedRun:
    """Read how a run began.

    Args:
        folder: Its folder.
        present: The settings of whoever asks; keys and folders are taken from them.

    Raises:
        UsageError: The run never began, or was recorded before runs could be done again.
        StorageError: Its folder is damaged.
    """
    events = read_ledger(folder.ledger_path).events
    end = last_end(events)
    started = first_of(events, RunStarted)
    if started is None or not started.settings:
        raise UsageError(
            f"run {folder.id} does not say how it began",
            remedy="start it anew: it was killed at once, or its ledger is damaged",
        )
    try:
        own = is_among(folder, present.paths.home)
        return RecordedRun(
            folder=folder,
            task=folder.get_record(Task, started.task),
            settings=_with_recipe_of(
                folder, settings_of_record(folder.get_json(started.settings), present, own=own)
            ),
            model=started.common_model,
            interpreter=recorded_interpreter(started, folder, present.paths.home),
            project=Path(started.project or "."),
            schema_version=started.schema_version,
            ended=end is not None,
            may_go_on=end is not None and has_passed(end),
            own=own,
            replays=started.replays,
            events=events,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise StorageError(f"the first event of run {folder.id} is damaged: {fault!r}") from fault


def has_passed(end: Event) -> bool:
    """Whether what ended a run may be gone by now, so that it could go on."""
    if isinstance(end.payload, RunFinished):
        return end.payload.outcome in NOT_ITS_OWN
    kind = getattr(errors, end.payload.kind, None) if isinstance(end.payload, RunRefused) else None
    return isinstance(kind, type) and issubclass(kind, PrerequisiteError)


def _with_recipe_of(folder: RunFolder, settings: Settings) -> Settings:
    """The settings with the recipe as it was, where it was a file of the user's own."""
    kept = folder.path / RECIPE_FILE
    if not kept.is_file():
        return settings
    return settings.model_copy(update={"loop": settings.loop.model_copy(update={"recipe": str(kept)})})


def recorded_start(folder: RunFolder, events: Sequence[Event]) -> ForkStart | None:
    """Where a recorded run began, if it was a fork; itself holds all that it took over.

    Raises:
        StorageError: The run ended, or was killed, before it had taken over everything.
    """
    started = first_of(events, RunStarted)
    forks = started.forks if started else None
    if forks is None:
        return None
    taken = events[1 : 1 + forks.events]
    if len(taken) != forks.events:
        raise StorageError(f"run {folder.id} ended while it began", remedy=f"fork {forks.run} again")
    state = folder.get_json(forks.state)
    if not isinstance(state, dict) or not first_state("").keys() <= state.keys():
        raise StorageError(f"blob {forks.state!r} of run {folder.id!r} is no state of a run")
    return ForkStart(run=forks.run, at=forks.at, state=cast(LoopState, state), events=taken, folder=folder)
