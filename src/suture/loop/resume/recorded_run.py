"""Record how a run begins, and read it back from the run folder to replay, resume or fork the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from suture import errors
from suture.core.ledger import (
    Divergence,
    Event,
    RunFolder,
    find_final_event,
    first_payload,
    read_ledger,
    select_events,
)
from suture.core.ledger.kinds import RunFailed, RunFinished, RunStarted
from suture.core.records import Result, Task, encode_record
from suture.core.settings import Settings
from suture.core.settings.setting_changes import encode_settings, restore_settings
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.loop.context import RunContext
from suture.loop.recipes.recipe_files import list_recipes, render_recipe_toml
from suture.loop.run_spec import ForkOrigin, RunSpec
from suture.loop.state import SCHEMA_VERSION, LoopState, initial_state
from suture.loop.tuning import MAX_LISTED_STATEMENT_CHARS
from suture.models import RoleModels
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.recorded_task import is_own_run, load_interpreter
from suture.sandbox import Sandbox

RECIPE_FILE = "recipe.toml"
"""The recipe in a run folder, if it does not ship with Suture."""
RESUMABLE_OUTCOMES = ("infra_error", "cancelled")
"""Outcomes that say nothing about the task."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run as its folder describes it.

    Attributes:
        folder: The run folder.
        task: The task with its files.
        settings: The run's settings, with the keys and folders of the user who reads it.
        model: The default model, as `provider:model`.
        interpreter: What `python` meant in the test command; `None` if there was no such command, or the
            program is gone.
        project: The project's folder, which may be gone.
        schema_version: The version of the run's state.
        ended: Whether the run has ended.
        is_own: Whether it is among the runs of the user who reads it. A run of somebody else chooses neither the
            sandbox nor an address nor an interpreter, and changes no files.
        can_resume_after_end: Whether it can be resumed although it ended: the machinery failed, something was
            missing, the user stopped it, or a repair that it found waits for its verdict.
        replays: The run that it replays; empty if it replays none.
        events: All events of its ledger.
    """

    folder: RunFolder
    task: Task
    settings: Settings
    model: str
    interpreter: Interpreter | None
    project: Path
    schema_version: int
    ended: bool
    is_own: bool
    can_resume_after_end: bool = False
    replays: str = ""
    events: tuple[Event, ...] = ()

    def spec(self, models: RoleModels, sandbox: Sandbox | None) -> RunSpec:
        """Return a request for a run with the same task, settings and surroundings."""
        return RunSpec(
            task=self.task,
            settings=self.settings,
            project=self.project,
            models=models,
            sandbox=sandbox,
            interpreter=self.interpreter,
        )

    def require_resumable(self) -> None:
        """Refuse to resume a run that cannot be resumed.

        Raises:
            UsageError: The run has ended, belongs to somebody else, is a replay, or has a state of another
            version.
        """
        run = self.folder.id
        if not self.is_own:
            raise UsageError(
                f"run {run} is not among your own runs",
                remedy="replay it from its record: `suture replay` changes nothing",
            )
        if self.ended and not self.can_resume_after_end:
            raise UsageError(
                f"run {run} has ended",
                remedy=f"see how: suture show {run}; or continue from one of its steps in a new run: "
                f"suture fork {run} --at N",
            )
        if self.replays:  # A resumed replay would ask the model for what the record holds.
            raise UsageError(
                f"run {run} is a replay, and a replay cannot be resumed",
                remedy=f"start it again: suture replay {self.replays}",
            )
        if self.schema_version != SCHEMA_VERSION:
            raise UsageError(
                f"the state of run {run} is of another version of Suture",
                remedy="resume it with that version, or start again: `suture replay` needs no state",
            )


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A recorded run that was replayed.

    Attributes:
        recorded: The id of the recorded run.
        result: The result of the replay.
        difference: Where the two ledgers first differ; `None` if they do not.
    """

    recorded: str
    result: Result
    difference: Divergence | None

    @property
    def same(self) -> bool:
        """Return whether the replay went the same way."""
        return self.difference is None


def make_start_event(context: RunContext) -> RunStarted:
    """Return the first event of a run. Large values go into the run folder; keys are never recorded."""
    task, folder, now_s = context.task, context.folder, context.budget.now_s()
    if context.settings.loop.recipe not in list_recipes():
        folder.write_text(RECIPE_FILE, render_recipe_toml(context.recipe))
    escalation = context.models.escalation
    return RunStarted(
        escalation_model=escalation.model.name if escalation else "",
        schema_version=SCHEMA_VERSION,
        kind=task.kind,
        statement=task.statement[:MAX_LISTED_STATEMENT_CHARS],
        task=folder.save_record(task),
        recipe=context.recipe.name,
        model=context.models.for_role("coder").model.name,
        unpriced_models=tuple(context.models.unpriced_models),
        default_model=context.models.default_model_name,
        sandbox=context.sandbox.name,
        limits=vars(context.budget.limits),
        settings=folder.save_json(encode_settings(context.settings)),
        interpreter=encode_record(context.interpreter) if context.interpreter else None,
        project=str(context.spec.project),
        replayed_run=context.spec.replays,
        excluded_files=context.spec.left_out,
        namespace=context.settings.store.namespace,
        unsearched_language=_find_unsearched_language(context),
        preparation_s=round(max(0.0, now_s - (context.spec.requested_at_s or now_s)), 3),
    )


def _find_unsearched_language(context: RunContext) -> str:
    task, facts = context.task, LANGUAGES[context.task.language]
    # Where there are tools, their fixes are tried.
    has_search = facts.parsed or facts.syntax is not None or bool(task.tools)
    return "" if task.kind != "heal" or has_search else facts.label


def read_recorded_run(folder: RunFolder, present: Settings) -> RecordedRun:
    """Read how a run began.

    Args:
        folder: The run folder.
        present: The settings of the reader. Keys and folders are taken from them.

    Raises:
        UsageError: The run never began.
        StorageError: The folder is damaged.
    """
    events = read_ledger(folder.ledger_path).events
    final_event = find_final_event(events)
    started = first_payload(events, RunStarted)
    if started is None or not started.settings:
        raise UsageError(
            f"run {folder.id} does not say how it began",
            remedy="start it again: it was killed at once, or its ledger is damaged",
        )
    try:
        is_own = is_own_run(folder, present.paths.home)
        settings = restore_settings(folder.load_json(started.settings), present, is_own=is_own)
        recipe_path = folder.path / RECIPE_FILE
        if recipe_path.is_file():
            loop_settings = settings.loop.model_copy(update={"recipe": str(recipe_path)})
            settings = settings.model_copy(update={"loop": loop_settings})
        return RecordedRun(
            folder=folder,
            task=folder.load_record(Task, started.task),
            settings=settings,
            model=started.default_model,
            interpreter=load_interpreter(started, folder, present.paths.home),
            project=Path(started.project or "."),
            schema_version=started.schema_version,
            ended=final_event is not None,
            can_resume_after_end=final_event is not None and is_transient_end(final_event),
            is_own=is_own,
            replays=started.replayed_run,
            events=events,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise StorageError(f"the first event of run {folder.id} is damaged: {fault!r}") from fault


def is_transient_end(final_event: Event) -> bool:
    """Return whether the cause of a run's end may no longer exist, so that the run could continue."""
    payload = final_event.payload
    if isinstance(payload, RunFinished):
        is_unverified = "repair_unverified" in payload.reason.notes or ended_unconfirmed([final_event])
        return payload.outcome in RESUMABLE_OUTCOMES or is_unverified
    error = getattr(errors, payload.error_type, None) if isinstance(payload, RunFailed) else None
    return isinstance(error, type) and issubclass(error, PrerequisiteError)


def ended_unconfirmed(events: Iterable[Event]) -> bool:
    """Return whether a run has ended without a check, so that a person can still say which results are right."""
    return any(
        finished.reason.code == "no_trusted_check" for _, finished in select_events(events, RunFinished)
    )


def load_fork_origin(folder: RunFolder, events: Sequence[Event]) -> ForkOrigin | None:
    """Return where a recorded run began, if it was a fork. Everything that it took over is in its own folder.

    Raises:
        StorageError: The run ended, or was killed, before it had taken over everything.
    """
    started = first_payload(events, RunStarted)
    fork = started.fork if started else None
    if fork is None:
        return None
    copied = events[1 : 1 + fork.events]  # They follow the first event, which is the start of the run.
    if len(copied) != fork.events:
        raise StorageError(f"run {folder.id} ended while it began", remedy=f"fork {fork.run} again")
    state = folder.load_json(fork.state)
    if not isinstance(state, dict) or not initial_state("").keys() <= state.keys():
        raise StorageError(f"blob {fork.state!r} of run {folder.id!r} is not a state of a run")
    return ForkOrigin(
        run=fork.run, decision=fork.step, state=cast(LoopState, state), events=copied, folder=folder
    )
