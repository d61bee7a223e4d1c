"""Runs that are there already: do one again, see what one asks, or go on with it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from suture.api.delivery.deliver import choose_delivery
from suture.api.run_lifecycle import execute_run, open_run_models
from suture.core.ledger import Limits, RunFolder, compare_runs, find_run
from suture.core.ledger.reading import Listener
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.loop import RecordedRun, Replay, open_recorded
from suture.loop.resuming.recorded import recorded_start
from suture.loop.review.reviewing import (
    Review,
    ReviewAnswer,
    Reviewer,
    answered_with,
    recorded_reviewer,
    was_asked_to_distinguish,
)
from suture.loop.review.reviewing import pending_review as question_of_run
from suture.models import Model, ReplySource, open_replies
from suture.sandbox import Sandbox
from suture.storage.database import fetched

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


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
    """Do a recorded run again with the model's replies of then, and say whether it went the same way.

    The task, its files and the settings are those in the run folder; nothing is applied. Seconds are not
    limited, because they are no part of the comparison.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        or_live: Ask the model for replies that the record does not hold.
        settings: Whose keys and folders count; from environment and files where not given.
        model: Who is asked with `or_live`; the recorded one where not given.
        sandbox: The wall; the recorded settings' where not given.
        run_id: What the new run is called, where that was said beforehand (`suture.core.ledger.new_run_id`).
        on_event: As in `solve`.

    Raises:
        UsageError: There is no such run, or it came to a call that was never recorded (`ReplyMissing`).
        PrerequisiteError: Something is missing: a sandbox, or with `or_live` a model or a key.
        Cancelled: The user stopped it.
        StorageError: A run folder cannot be read or written.
    """
    recorded = load_recorded_run(run, settings)
    folder, events = recorded.folder, recorded.events
    async with open_run_models(recorded.settings, model or recorded.model, live=or_live) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            run_id=run_id,
            limits=Limits(**{**recorded.settings.budget.model_dump(), "seconds": None}),
            source=open_replies(folder.path, may_be_empty=True),
            or_live=or_live,
            start=recorded_start(folder, events),
            replays=folder.id,
            recorded=events,
            on_review=recorded_reviewer(folder, events),
            distinguishes=was_asked_to_distinguish(events),
            follows=() if or_live else events,  # who may pay for a reply asks the budget of now
        )
        result = await execute_run(spec, on_event=on_event)
    again = find_run(recorded.settings.paths.home, result.run_id)
    return Replay(recorded=folder.id, result=result, difference=compare_runs(folder, again))


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
    """Go on with a run that waits for a person, was killed or stopped, or whose machinery failed.

    It raises as `solve` does.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose keys and folders count; from environment and files where not given.
        model: The run's own model, where it was handed in as an object; the recorded name where not given.
        sandbox: The wall; the recorded settings' where not given.
        apply: As in `solve` and `heal`.
        answer: To the question that it waits with; a later one goes to `on_review`.
        on_review: As in `solve`.
        on_event: As in `solve`; it sees the run from its beginning.
    """
    recorded = load_recorded_run(run, settings)
    recorded.require_resumable()
    if answer is not None:
        on_review = answered_with(answer, _question_of(recorded), on_review)
    async with open_run_models(recorded.settings, model or recorded.model, live=True) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            folder=recorded.folder,
            source=_forked_from(recorded),
            or_live=True,
            on_review=on_review,
            distinguishes=was_asked_to_distinguish(recorded.events),
        )
        return await execute_run(spec, choose_delivery(apply=apply), on_event=on_event)


def pending_review(run: str | Path, *, settings: Settings | None = None) -> Review | None:
    """The question that a run waits for an answer to; `None` where it waits for none.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose runs; from environment and files where not given.

    Raises:
        UsageError: There is no such run.
        StorageError: Its folder is damaged.
    """
    return question_of_run(find_run_folder(run, settings))


def _question_of(recorded: RecordedRun) -> Review:
    review = question_of_run(recorded.folder)
    if review is None:
        raise UsageError(
            f"run {recorded.folder.id} waits for no answer", remedy="go on with it: `suture resume` alone"
        )
    return review


def load_successful_replies(folder: RunFolder) -> ReplySource:
    """The replies of a run without the calls that failed: these may be tried again."""
    source = open_replies(folder.path, may_be_empty=True)
    return replace(source, entries={key: e for key, e in source.entries.items() if "reply" in e})


def _forked_from(recorded: RecordedRun) -> ReplySource | None:
    """What a fork answers from: the run that it began in, where that is still there."""
    start = recorded_start(recorded.folder, recorded.events)
    origin = recorded.settings.paths.home / "runs" / start.run if start else None
    return load_successful_replies(RunFolder(origin)) if origin and origin.is_dir() else None


def load_recorded_run(run: str | Path, settings: Settings | None = None) -> RecordedRun:
    """How a run began, as its folder tells it.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose keys and folders count; from environment and files where not given.

    Raises:
        UsageError: There is no such run, or it does not say how it began.
        StorageError: Its folder is damaged.
    """
    present = settings or load_settings(Path.cwd()).settings
    return open_recorded(find_run_folder(run, present), present)


def find_run_folder(run: str | Path, settings: Settings | None = None) -> RunFolder:
    """The folder of a run.

    Args:
        run: `last`, an id, the unique start or end of one, or the folder itself.
        settings: Whose runs; from environment and files where not given.

    Raises:
        UsageError: There is no such run.
    """
    folder = RunFolder(Path(run))
    if os.path.isfile(folder.ledger_path):  # noqa: PTH113  # it takes any text for a name
        return folder
    present = settings or load_settings(Path.cwd(), looks=True).settings
    fetched(present, str(run))
    return find_run(present.paths.home, str(run))
