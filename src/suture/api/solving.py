"""`solve`: from a task in words to its `Result`, and the code handed over as asked."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from suture.api.delivery import choose_handover, require_new, require_possible
from suture.api.run_execution import carry_out, models_for, replies_from
from suture.api.stopping import in_thread
from suture.core.ledger.reading import Listener
from suture.core.records import Result, Task
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.loop import RunSpec
from suture.loop.intake.building import write_task
from suture.loop.intake.projects import ProjectWish, existing_folder, project_kind, project_task
from suture.loop.review.reviewing import Reviewer
from suture.models import NO_MODEL, Model, without_model
from suture.project.languages import language_named
from suture.sandbox import Sandbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


async def solve(
    task: str | Task,
    *,
    test: str | Path | None = None,
    asserts: str = "",
    entry_point: str | None = None,
    language: str | None = None,
    project: str | None = None,
    existing: str | Path | None = None,
    sample: str | Path | None = None,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    into: str | Path | None = None,
    replies: str | Path | None = None,
    or_live: bool = False,
    on_review: Reviewer | None = None,
    run_id: str = "",
    asked_s: float | None = None,
    on_event: Listener | None = None,
) -> Result:
    """Write code for a task.

    Args:
        task: A statement in plain words, a signature with a docstring, or a whole `Task`.
        test: A file of tests: pytest's, or plain asserts.
        asserts: Plain asserts as text.
        entry_point: The name to define, where the statement does not tell.
        language: What the code is written in: `python`, `node`, `typescript` or `go`.
        project: What kind of project is made: `web_app`, `data_pipeline`, `cli_tool` or `library`; it is
            started behind the wall and looked at from outside.
        existing: The folder of a project that gets a feature; its own tests decide, and must pass before.
        sample: Data that a pipeline is run on.
        settings: The knobs; from flags, environment and files where not given.
        model: `provider:model`, a `Model` or a LangChain chat model; the settings' where not given.
        sandbox: The wall; the settings' where not given.
        apply: Write the code into the current folder, or into `existing`, when every trusted check passes.
        into: Write all files of the code into this folder then, which is made where it is not there; the code
            may be several files. With `existing` all of the project goes there.
        replies: A run (`last`, its id, its folder), or a file of replies, to answer from.
        or_live: Ask the model for what `replies` does not hold, instead of ending with an error.
        on_review: Called where `loop.autonomy` wants a person asked, plain or async; gets the question and
            gives the answer, or `None`, which parks the run (outcome `waiting`) as without it.
        run_id: What the new run is called, where that was said beforehand (`suture.core.ledger.new_run_id`).
        asked_s: When the user asked, in seconds since the epoch, where that was before this call: the
            budget's seconds count from then.
        on_event: Called with each event of the run's ledger, read from it; what it raises is raised when
            the run has ended.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    asked_s = time.time() if asked_s is None else asked_s
    if sample is not None and project is None and existing is None:
        raise UsageError("--sample is for a data pipeline", remedy="leave it out, or --project data_pipeline")
    handover = choose_handover(apply=apply, into=into)
    several = into is not None
    root = Path.cwd() if existing is None else existing_folder(Path(existing))
    settings = settings or load_settings(root).settings
    chosen = language_named(language) if language is not None else None
    if isinstance(task, str) and (project is not None or existing is not None):
        wish = ProjectWish(
            kind=project_kind(project) if project is not None else None,
            language=chosen,
            existing=root if existing is not None else None,
            test=Path(test) if test else None,
            asserts=asserts,
            sample=Path(sample) if sample else None,
            folder=Path(into) if into is not None else root if apply else None,
        )
        task = await in_thread(partial(project_task, task, wish, secrets=settings.sandbox.secrets))
        settings = settings.for_projects()
    elif isinstance(task, str):
        task = write_task(
            task,
            test=Path(test) if test else None,
            asserts=asserts,
            entry_point=entry_point,
            several=several,
            language=chosen or "python",
        )
    elif several:
        task = replace(task, several=True)
    require_possible(handover, root)
    if handover.how != "keep" and task.kind == "write":
        whole = into is not None and existing is not None
        new = [path for path in _first_files(task) if path not in task.given_files or whole]
        new += task.files if whole else ()
        require_new(Path(into) if into is not None else root, new)
    source = replies_from(replies, settings)
    async with models_for(settings, model, live=source is None or or_live) as models:
        if models.for_role("coder").model.name == NO_MODEL:
            raise without_model("code is written by a model")
        spec = RunSpec(
            task=task,
            settings=settings,
            project=root,
            models=models,
            sandbox=sandbox,
            run_id=run_id,
            asked_s=asked_s,
            source=source,
            or_live=or_live,
            on_review=on_review,
        )
        return await carry_out(spec, handover, on_event=on_event)


def _first_files(task: Task) -> tuple[str, ...]:
    """The new files that are known before anything is written."""
    return (*task.modules, *(task.project.scaffold if task.project else ()))
