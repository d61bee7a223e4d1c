"""`heal`: from the folder of a project to its `Result`, and the change handed over as asked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from suture.api.delivery import choose_handover, require_possible
from suture.api.run_execution import carry_out, models_for, replies_from
from suture.api.stopping import in_thread
from suture.core.ledger.reading import Listener
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.loop import RunSpec
from suture.loop.intake.building import heal_task
from suture.loop.recipes.recipe import load_recipe
from suture.loop.review.disambiguation import Asker, reviewer_with
from suture.loop.review.reviewing import Reviewer
from suture.models import NO_MODEL, Model, without_model
from suture.sandbox import Sandbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


async def heal(
    path: str | Path,
    *,
    test: str | Sequence[str] | None = None,
    protect: Iterable[str] = (),
    only: Iterable[str] = (),
    since: str | None = None,
    words: str = "",
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    commit: bool = False,
    branch: str | None = None,
    patch: str | Path | None = None,
    replies: str | Path | None = None,
    or_live: bool = False,
    ask: Asker | bool | None = None,
    on_review: Reviewer | None = None,
    run_id: str = "",
    asked_s: float | None = None,
    on_event: Listener | None = None,
) -> Result:
    """Repair code that exists, until its test command passes.

    Args:
        path: A project folder.
        test: The test command; where none is given, the setting `project.test`, else the one that the
            project's files show: pytest, unittest, `npm test` or `go test ./...`.
        protect: Globs of files that must stay as they are, besides the tests and the project's settings.
        only: Globs of the files that may change; any that is not protected where there are none.
        since: The oldest commit that may have broken the tests. Which one did is found by running the failing
            tests on earlier code, and the search begins with what it changed. Where none is named, the last
            few commits of a git repository are looked at.
        words: What you know of it: a bug report, a log, a hint. A model reads it. Where every test passes, it
            writes a test that shows the fault, and `on_review` is asked whether that may decide.
        settings: The knobs; from flags, environment and the project's files where not given.
        model: `provider:model`, a `Model` or a LangChain chat model; the settings' where not given.
        sandbox: The wall; the settings' where not given.
        apply: Write the verified change into the project; without any of these it stays untouched.
        commit: Write it there, and commit it beside whatever else is changed or staged.
        branch: Commit it on a new branch of this name; nothing else changes.
        patch: Write it into a new file as a diff.
        replies: A run (`last`, its id, its folder), or a file of replies, to answer from.
        or_live: Ask the model for what `replies` does not hold, instead of ending with an error.
        ask: Called once where two repairs that a search without a model found differ, plain or async: it
            gets the input that tells them apart, and says which answer is right, or `None`, where nobody
            knows. With `True` that is a question to `on_review` like others, and without it parks the run.
            Nobody is asked where it is not given.
        on_review: Called where `loop.autonomy` wants a person asked, plain or async; gets the question and
            gives the answer, or `None`, which parks the run (outcome `waiting`) as without it.
        run_id: What the new run is called, where that was said beforehand (`suture.core.ledger.new_run_id`).
        asked_s: When the user asked, in seconds since the epoch, where that was before this call: the
            budget's seconds count from then.
        on_event: Called with each event of the run's ledger, read from it; what it raises is raised when
            the run has ended.

    Raises:
        UsageError: There is nothing to heal, no way to test it, or no way to hand it over as asked.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    asked_s = time.time() if asked_s is None else asked_s
    handover = choose_handover(apply=apply, commit=commit, branch=branch, patch=patch)
    settings = settings or load_settings(Path(path)).settings
    test = settings.project.test if test is None else test
    making = partial(heal_task, Path(path), test=test, protect=protect, only=only, since=since, words=words)
    sandboxed = settings.sandbox
    task, snapshot = await in_thread(partial(making, secrets=sandboxed.secrets, python=sandboxed.python))
    require_possible(handover, snapshot.root)
    source = replies_from(replies, settings)
    proposer = bool(settings.proposer.command)
    model = NO_MODEL if proposer else model
    later = settings.repair.enabled and load_recipe(settings.loop, settings.model.temperature).mutate
    async with models_for(settings, model, live=source is None or or_live, later=later) as models:
        if not proposer and not later and models.for_role("coder").model.name == NO_MODEL:
            raise without_model("only a model mends where the search is off")
        if not proposer and words.strip() and models.for_role("coder").model.name == NO_MODEL:
            raise without_model("what you say of the fault is for a model to read")
        spec = RunSpec(
            task=task,
            settings=settings,
            project=snapshot.root,
            models=models,
            sandbox=sandbox,
            run_id=run_id,
            asked_s=asked_s,
            source=source,
            or_live=or_live,
            left_out=tuple(snapshot.secrets),
            on_review=reviewer_with(ask, on_review) if callable(ask) else on_review,
            distinguishes=bool(ask),
        )
        return await carry_out(spec, handover, on_event=on_event)
