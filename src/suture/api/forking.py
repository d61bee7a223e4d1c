"""Time travel: a new run from a step of another one, with something changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from suture.api.delivery import choose_handover
from suture.api.replay_resume import answered_calls, recorded_run
from suture.api.run_execution import carry_out, models_for
from suture.core.ledger.reading import Listener
from suture.core.records import Result
from suture.core.settings import Settings
from suture.core.settings.recording import settings_with
from suture.errors import UsageError
from suture.loop import RecordedRun
from suture.loop.review.reviewing import Reviewer
from suture.models import Model
from suture.sandbox import Sandbox
from suture.storage.database import checkpoint_place

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

NOTHING: Mapping[str, object] = {}
NO_FILES: Mapping[str, str] = {}


async def fork_from_iteration(
    run: str | Path,
    iteration: int,
    *,
    changes: Mapping[str, object] = NOTHING,
    hint: str = "",
    candidate: str | Mapping[str, str] = NO_FILES,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    on_review: Reviewer | None = None,
    run_id: str = "",
    on_event: Listener | None = None,
) -> Result:
    """Start a new run from a step of another one, with something changed; raises as `solve` does.

    What the other run had done until then counts for this one as it did, and is not paid again; so does any
    later call that is the very same. The other run is left as it is.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        iteration: How many of its decisions had been carried out; 0 is before the first.
        changes: Settings by their dotted key, such as `{"loop.recipe": "greedy"}`.
        hint: What the model is to be told from now on.
        candidate: Code to judge before anything else: the text of the task's module, or texts by path.
        settings: Whose keys and folders count; from environment and files where not given.
        model: Who answers; the recorded one, or that of `changes`, where not given.
        sandbox: The wall; the settings' where not given.
        apply: As in `solve` and `heal`.
        on_review: As in `solve`.
        run_id: What the new run is called, where that was said beforehand (`suture.core.ledger.new_run_id`).
        on_event: As in `solve`; it sees what was taken over too.

    Raises:
        UsageError: There is no such run, step or setting, or the candidate writes what it must not.
    """
    recorded = recorded_run(run, settings)
    if not recorded.own:
        raise UsageError(
            f"run {recorded.folder.id} is not among your own runs",
            remedy="only its record is here: replay it",
        )
    from suture.loop.resuming.forking import start_at  # LangGraph takes a second

    start = await start_at(recorded.folder, iteration, checkpoint_place(recorded.settings))
    chosen = settings_with(recorded.settings, changes)
    start = replace(start, hint=hint.strip(), files=_files(candidate, recorded))
    named = None if "model.name" in changes else recorded.model
    async with models_for(chosen, model or named, live=True) as models:
        spec = replace(
            recorded.spec(models, sandbox),
            run_id=run_id,
            settings=chosen,
            source=answered_calls(recorded.folder),
            or_live=True,
            start=start,
            on_review=on_review,
        )
        return await carry_out(spec, choose_handover(apply=apply), on_event=on_event)


def _files(candidate: str | Mapping[str, str], recorded: RecordedRun) -> Mapping[str, str]:
    if not isinstance(candidate, str):
        return candidate
    if recorded.task.kind == "heal":
        raise UsageError(
            "a project has many files: which one is the candidate?", remedy="give a mapping of path to text"
        )
    return {recorded.task.module: candidate}
