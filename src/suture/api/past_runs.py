"""Work with recorded runs: replay one, resume it, fork it, or read the question that it waits with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from suture.api.delivery.deliver import choose_delivery
from suture.api.run_lifecycle import execute_run, open_run_models
from suture.core.ledger import Event, Limits, RunFolder, compare_runs, find_run
from suture.core.ledger.kinds import MovesDecided, SearchEnding, SearchFinished
from suture.core.ledger.reading import Listener
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.core.settings.rendering import get_setting, setting_fields
from suture.core.settings.setting_changes import override_settings
from suture.errors import UsageError
from suture.loop import RecordedRun, Replay, read_recorded_run
from suture.loop.resume.recorded_run import ended_unconfirmed, load_fork_origin
from suture.loop.review.questions import (
    Review,
    ReviewAnswer,
    Reviewer,
    asked_user,
    find_pending_review,
    make_recorded_reviewer,
    make_single_answer_reviewer,
)
from suture.loop.run_spec import ForkOrigin
from suture.models import NO_MODEL, Model, ReplyRecording, load_recording
from suture.sandbox import Sandbox
from suture.storage.database import checkpoint_location, fetch_shared_run

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

SEARCH_SETTINGS = ("repair.", "sandbox.", "project.")
"""Beginnings of the keys of settings on which the result of a search depends."""
FINAL_ENDINGS: tuple[SearchEnding, ...] = (
    "all_tried",
    "likely_changes_tried",
    "candidate_limit",
    "no_parsable_text",
    "parsable_texts_tried",
)
"""Endings of a search that would end the same way again. Others may depend on the machine, such as `workers_lost`."""
NO_CHANGES: Mapping[str, object] = MappingProxyType({})


async def replay(
    run: str | Path,
    *,
    or_live: bool = False,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    run_id: str = "",
    on_event: Listener | None = None,
) -> Replay:
    """Replay a recorded run with its recorded replies, and report whether it went the same way.

    The task, its files and the settings come from the run folder, and nothing is applied. The time is not
    limited, because it is not part of the comparison.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        or_live: Ask the model for replies that the record does not hold.
        settings: Settings for keys and folders; by default from the environment and the settings files.
        model: The model to ask with `or_live`; by default the recorded one.
        sandbox: The sandbox; by default that of the recorded settings.
        run_id: The id of the new run, where one was reserved before.
        on_event: Called with each event, as in `HealOptions`.

    Raises:
        UsageError: There is no such run, or it reached a call that was never recorded (`ReplyNotRecorded`).
        PrerequisiteError: A sandbox is missing, or with `or_live` a model or a key.
        Cancelled: The user stopped the run.
        StorageError: A run folder cannot be read or written.
    """
    recorded = load_recorded_run(run, settings)
    folder, events = recorded.folder, recorded.events
    budget = recorded.settings.budget.model_dump() | {"seconds": None}
    async with open_run_models(recorded.settings, model or recorded.model, live=or_live) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            run_id=run_id,
            limits=Limits(**budget),
            source=load_recording(folder.path, may_be_empty=True),
            or_live=or_live,
            origin=load_fork_origin(folder, events),
            replays=folder.id,
            recorded_events=events,  # The replay recalls the memories that are recorded here.
            on_review=make_recorded_reviewer(folder, events),
            asks_user=asked_user(events),  # which of two differing repairs is right
            asks_at_once=ended_unconfirmed(events),
            # A replay repeats the recorded budget decisions, except where it may pay for replies itself.
            budget_events=() if or_live else events,
        )
        result = await execute_run(spec, on_event=on_event)
    replayed = find_run(recorded.settings.paths.home, result.run_id)
    return Replay(recorded=folder.id, result=result, difference=compare_runs(folder, replayed))


async def resume(
    run: str | Path,
    *,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    answer: ReviewAnswer | None = None,
    on_review: Reviewer | None = None,
    on_event: Listener | None = None,
) -> Result:
    """Continue a run that waits for an answer, was killed or stopped, or whose machinery failed.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        settings: Settings for keys and folders; by default from the environment and the settings files.
        model: The model, if the run was started with an object; by default the recorded name.
        sandbox: The sandbox; by default that of the recorded settings.
        apply: Write the verified change into the project.
        answer: The answer to the question that the run waits with. Later questions go to `on_review`.
        on_review: Answers questions, as in `HealOptions`.
        on_event: Called with each event of the run from its beginning.

    Raises:
        UsageError: There is no such run, or it cannot be resumed.
        SutureError: As `solve` and `heal`.
    """
    recorded = load_recorded_run(run, settings)
    recorded.require_resumable()
    if answer is not None:
        question = find_pending_review(recorded.folder)
        if question is None:
            raise UsageError(
                f"run {recorded.folder.id} waits for no answer", remedy="resume it: `suture resume` alone"
            )
        on_review = make_single_answer_reviewer(answer, question, on_review)
    async with open_run_models(recorded.settings, model or recorded.model, live=True) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            folder=recorded.folder,
            source=_load_replies_of_origin(recorded),
            or_live=True,
            on_review=on_review,
            asks_user=asked_user(recorded.events) or ended_unconfirmed(recorded.events),
            asks_at_once=ended_unconfirmed(recorded.events),
        )
        return await execute_run(spec, choose_delivery(apply=apply), on_event=on_event)


async def fork_from_iteration(
    run: str | Path,
    iteration: int | None = None,
    *,
    changes: Mapping[str, object] = NO_CHANGES,
    hint: str = "",
    candidate: str | Mapping[str, str] = "",
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    on_review: Reviewer | None = None,
    run_id: str = "",
    on_event: Listener | None = None,
) -> Result:
    """Start a new run from a step of another one, with something changed.

    What the other run had done until then counts for the new run too and is not paid for again; nor is a
    later call that is identical. The other run stays as it is.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        iteration: The number of decisions that the run had carried out; 0 is before the first. By default, the new
            run starts after a search for small edits that found no repair and would find none again, and otherwise
            at the first step that the run has.
        changes: Settings by their dotted key, such as `{"loop.recipe": "greedy"}`.
        hint: A hint that the model gets from now on.
        candidate: Code to judge before anything else: the text of the task's module, or path -> text.
        settings: Settings for keys and folders; by default from the environment and the settings files.
        model: The model; by default that of `changes`, or the recorded one.
        sandbox: The sandbox; by default that of the settings.
        apply: Write the verified change into the project.
        on_review: Answers questions, as in `HealOptions`.
        run_id: The id of the new run, where one was reserved before.
        on_event: Called with each event, including those that were taken over from the other run.

    Raises:
        UsageError: There is no such run, step or setting, or the candidate writes a protected file.
        SutureError: As `solve` and `heal`.
    """
    recorded = load_recorded_run(run, settings)
    changed_settings = override_settings(recorded.settings, changes)
    recorded_model = None if "model.name" in changes else recorded.model
    if iteration is None:
        new_model = model or recorded_model or changed_settings.model.name
        step = find_step_after_search(
            recorded.events,
            recorded.settings,
            changed_settings,
            drops_model=new_model == NO_MODEL != recorded.model,
        )
        origin = await load_fork_state(recorded, step, or_nearest=True)
    else:
        origin = await load_fork_state(recorded, iteration)
    origin = replace(origin, hint=hint.strip(), files=_candidate_files(candidate, recorded))
    async with open_run_models(changed_settings, model or recorded_model, live=True) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            run_id=run_id,
            settings=changed_settings,
            source=load_successful_replies(recorded.folder),
            or_live=True,
            origin=origin,
            # `asks_user` stays off: of two differing repairs, a fork takes the likelier one without asking. By
            # judgement.
            on_review=on_review,
        )
        return await execute_run(spec, choose_delivery(apply=apply), on_event=on_event)


def find_step_after_search(
    events: Sequence[Event], recorded: Settings, changed: Settings, *, drops_model: bool = False
) -> int:
    """Return the step after a search that found no repair and would find none again; 0 if there is none.

    The files and the tests of a fork are those of the run. A search is repeated if a setting may change what it
    finds, if it ended by the clock and the fork has more time, and if its ending depends on the machine, which the
    user may have repaired.

    Args:
        recorded: The settings of the run.
        changed: The settings of the fork.
        drops_model: Whether only the run asked a model, so that the fork leaves more of its time to the search.
    """
    step = decision = 0
    has_more_time = drops_model or changed.budget.seconds > recorded.budget.seconds
    is_changed = any(
        get_setting(recorded, key) != get_setting(changed, key)
        for key in setting_fields()
        if key.startswith(SEARCH_SETTINGS)
    )
    for event in events:
        match event.payload:
            case MovesDecided(decision=number):
                decision = number
            case SearchFinished(repairs=repairs, ending=ending):
                is_final = ending in FINAL_ENDINGS or (ending == "time_over" and not has_more_time)
                step = decision if is_final and not repairs and not is_changed else 0
    return step


async def load_fork_state(recorded: RecordedRun, iteration: int, *, or_nearest: bool = False) -> ForkOrigin:
    """Return where a run was after a number of its decisions had been carried out.

    Args:
        or_nearest: Whether another step may take its place, as in `load_state_at`.

    Raises:
        UsageError: The run belongs to somebody else, or has no such step.
    """
    if not recorded.is_own:
        raise UsageError(
            f"run {recorded.folder.id} is not among your own runs",
            remedy="only its record is here: replay it",
        )
    from suture.loop.resume.forking import load_state_at  # LangGraph takes a second to import.

    database = checkpoint_location(recorded.settings)
    return await load_state_at(recorded.folder, iteration, database, or_nearest=or_nearest)


def _candidate_files(candidate: str | Mapping[str, str], recorded: RecordedRun) -> Mapping[str, str]:
    """Return the files of a candidate that a user gave: path -> text, or the text of the task's module."""
    if not isinstance(candidate, str):
        return candidate
    if not candidate:
        return {}
    if recorded.task.kind == "heal":
        raise UsageError(
            "a project has many files: which one is the candidate?", remedy="give a mapping of path to text"
        )
    return {recorded.task.module: candidate}


def pending_review(run: str | Path, *, settings: Settings | None = None) -> Review | None:
    """Return the question that a run waits for an answer to; `None` if it waits for none.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        settings: Settings for the folder of the runs; by default from the environment and the settings files.

    Raises:
        UsageError: There is no such run.
        StorageError: Its folder is damaged.
    """
    return find_pending_review(find_run_folder(run, settings))


def load_successful_replies(folder: RunFolder) -> ReplyRecording:
    """Return the replies of a run without the failed calls, which may be tried again."""
    recording = load_recording(folder.path, may_be_empty=True)
    return replace(
        recording, entries={key: entry for key, entry in recording.entries.items() if "reply" in entry}
    )


def _load_replies_of_origin(recorded: RecordedRun) -> ReplyRecording | None:
    """Return the replies of the run that a fork began in, if that run is still there."""
    origin = load_fork_origin(recorded.folder, recorded.events)
    path = recorded.settings.paths.home / "runs" / origin.run if origin else None
    return load_successful_replies(RunFolder(path)) if path and path.is_dir() else None


def load_recorded_run(run: str | Path, settings: Settings | None = None) -> RecordedRun:
    """Read from a run's folder how the run began.

    Args:
        run: `last`, an id, the unique start or end of one, or a run folder.
        settings: Settings for keys and folders; by default from the environment and the settings files.

    Raises:
        UsageError: There is no such run, or it does not say how it began.
        StorageError: Its folder is damaged.
    """
    settings = settings or load_settings(Path.cwd()).settings
    return read_recorded_run(find_run_folder(run, settings), settings)


def find_run_folder(run: str | Path, settings: Settings | None = None) -> RunFolder:
    """Return the folder of a run: `last`, an id, the unique start or end of one, or the folder itself.

    Raises:
        UsageError: There is no such run.
    """
    folder = RunFolder(Path(run))
    if os.path.isfile(folder.ledger_path):  # noqa: PTH113  # Unlike Path.is_file, it accepts any text as a name.
        return folder
    # To find a folder runs nothing, so settings that the project may not set are ignored without an error.
    # `load_recorded_run` loads settings for a new run, where they are an error.
    settings = settings or load_settings(Path.cwd(), read_only=True).settings
    fetch_shared_run(settings, str(run))
    return find_run(settings.paths.home, str(run))
