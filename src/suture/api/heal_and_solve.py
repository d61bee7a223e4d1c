"""Start new runs: `heal` a project, `solve` a task, or `stream` the events of either."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from pathlib import Path

from suture.api.delivery.deliver import choose_delivery, require_deliverable, require_no_overwrite
from suture.api.delivery.transactions import recover_interrupted_changes
from suture.api.options import HealOptions, WriteOptions
from suture.api.run_lifecycle import execute_run, load_replies, open_run_models
from suture.core.interruption import run_in_daemon_thread
from suture.core.ledger import Event
from suture.core.records import Result, Task
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.loop import RunSpec
from suture.loop.intake.heal_task import build_heal_task
from suture.loop.intake.project_skeleton import add_skeleton
from suture.loop.intake.project_task import (
    ProjectRequest,
    build_project_task,
    parse_project_kind,
    require_project_folder,
)
from suture.loop.intake.write_task import build_write_task
from suture.loop.recipes.recipe_files import load_recipe
from suture.loop.review.questions import reviewer_with_asker
from suture.models import NO_MODEL, find_profile, model_required_error
from suture.project.languages import find_language


async def heal(project: str | Path, options: HealOptions | None = None) -> Result:
    """Repair existing code until its test command passes.

    Args:
        project: The project's folder, or a file in it.
        options: How to repair and test it, and what to do with the result. By default the project's files
            are left as they are, and the verified change is kept in the run folder.

    Raises:
        UsageError: There is nothing to heal, no way to test it, or no way to deliver the result as requested.
        PrerequisiteError: A sandbox, a model or a key is missing.
        Cancelled: The user stopped the run.
        StorageError: The run folder cannot be written.
    """
    options = options or HealOptions()
    requested_at_s = time.time() if options.requested_at_s is None else options.requested_at_s
    delivery = choose_delivery(
        apply=options.apply, commit=options.commit, branch=options.branch, patch=options.patch
    )
    settings = options.settings or load_settings(Path(project)).settings
    recover_interrupted_changes(settings.paths.home, Path(project))
    build = partial(
        build_heal_task,
        Path(project),
        test=settings.project.test if options.test is None else options.test,
        protect=options.protect,
        only=options.only,
        since=options.since,
        bug_report=options.bug_report,
        secrets=settings.sandbox.secrets,
        python=settings.sandbox.python,
        reads_parents=options.reads_parents,
    )
    task, snapshot = await run_in_daemon_thread(build)
    task = replace(task, services=settings.project.services)
    require_deliverable(delivery, snapshot.root)
    source = load_replies(options.replies, settings)
    has_proposer = bool(settings.proposer.command)
    model = NO_MODEL if has_proposer else options.model
    if has_proposer and settings.loop.autonomy != "full_auto":
        raise UsageError(
            f"a proposer's change is judged, and not reviewed as loop.autonomy={settings.loop.autonomy} wants",
            remedy="set loop.autonomy=full_auto, and review the diff: nothing is applied without --apply",
        )
    searches_first = settings.repair.enabled and load_recipe(settings.loop, settings.model.temperature).mutate
    async with open_run_models(
        settings, model, live=source is None or options.or_live, deferred=searches_first
    ) as models:
        has_model = models.for_role("coder").model.name != NO_MODEL
        if not has_proposer and not has_model and not searches_first:
            reason = "this recipe makes no small edits" if settings.repair.enabled else "the search is off"
            raise model_required_error(f"{reason}, so only a model could repair this")
        if not has_proposer and not has_model and options.bug_report.strip():
            raise model_required_error("only a model can read a bug report")
        ask = options.ask  # A function that answers, `True` to ask `on_review`, or nothing.
        spec = RunSpec(
            task=task,
            settings=models.apply_served_contexts(settings),
            project=snapshot.root,
            models=models,
            sandbox=options.sandbox,
            run_id=options.run_id,
            requested_at_s=requested_at_s,
            source=source,
            or_live=options.or_live,
            left_out=tuple(snapshot.secrets),
            on_review=reviewer_with_asker(ask, options.on_review) if callable(ask) else options.on_review,
            asks_user=bool(ask),
        )
        return await execute_run(spec, delivery, on_event=options.on_event)


async def solve(task: str | Task, options: WriteOptions | None = None) -> Result:
    """Write code for a task.

    Args:
        task: A statement in plain words, a signature with a docstring, or a complete `Task`.
        options: Tests, language, and what to do with the result. By default the code is kept in the run
            folder.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: A sandbox, a model or a key is missing.
        Cancelled: The user stopped the run.
        StorageError: The run folder cannot be written.
    """
    options = options or WriteOptions()
    requested_at_s = time.time() if options.requested_at_s is None else options.requested_at_s
    if options.sample is not None and options.project is None and options.existing is None:
        raise UsageError("--sample is for a data pipeline", remedy="leave it out, or --project data_pipeline")
    delivery = choose_delivery(apply=options.apply, into=options.into)
    root = Path.cwd() if options.existing is None else require_project_folder(Path(options.existing))
    settings = options.settings or load_settings(root).settings
    if options.existing is not None:
        settings = settings.for_features()
    recover_interrupted_changes(settings.paths.home, root)
    task = await _build_task(task, options, root, settings)
    require_deliverable(delivery, root)
    if delivery.how != "keep" and task.kind == "write":
        _require_room_for_new_files(task, options, root)
    source = load_replies(options.replies, settings)
    async with open_run_models(settings, options.model, live=source is None or options.or_live) as models:
        if models.for_role("coder").model.name == NO_MODEL:
            raise model_required_error("code is written by a model")
        if _uses_skeleton(options, models.for_role("coder").model.name, settings):
            task = add_skeleton(task)
            if delivery.how != "keep":
                _require_room_for_new_files(task, options, root)
        spec = RunSpec(
            task=task,
            settings=models.apply_served_contexts(settings),
            project=root,
            models=models,
            sandbox=options.sandbox,
            run_id=options.run_id,
            requested_at_s=requested_at_s,
            source=source,
            or_live=options.or_live,
            on_review=options.on_review,
            asks_user=options.ask,
        )
        return await execute_run(spec, delivery, on_event=options.on_event)


def _uses_skeleton(options: WriteOptions, model: str, settings: Settings) -> bool:
    """Return whether the model gets a skeleton, in which it writes one file."""
    if options.skeleton is not None:
        return options.skeleton
    return options.project is not None and not find_profile(model, settings).is_capable


async def _build_task(task: str | Task, options: WriteOptions, root: Path, settings: Settings) -> Task:
    """Return the task that the options describe."""
    into = Path(options.into) if options.into is not None else None
    if not isinstance(task, str):
        return task if into is None else replace(task, allows_more_files=True)
    language = find_language(options.language) if options.language is not None else None
    test = Path(options.test) if options.test else None
    if options.project is None and options.existing is None:
        return build_write_task(
            task,
            test=test,
            asserts=options.asserts,
            entry_point=options.entry_point,
            several=into is not None,
            language=language or "python",
        )
    result_folder = root if options.apply else None
    request = ProjectRequest(
        kind=parse_project_kind(options.project) if options.project is not None else None,
        language=language,
        existing=root if options.existing is not None else None,
        test=test,
        asserts=options.asserts,
        sample=Path(options.sample) if options.sample else None,
        folder=into if into is not None else result_folder,
    )
    build = partial(build_project_task, task, request, secrets=settings.sandbox.secrets)
    return await run_in_daemon_thread(build)


def _require_room_for_new_files(task: Task, options: WriteOptions, root: Path) -> None:
    """Refuse, before anything is spent, a task whose known files would overwrite existing ones."""
    # With `into`, the result and the whole existing project are written to another folder, so that every file
    # is new there. Otherwise the given files are where they belong already.
    copies_project = options.into is not None and options.existing is not None
    planned = (*task.modules, *(task.project.scaffold if task.project else ()))
    new_paths = [path for path in planned if path not in task.given_files or copies_project]
    if copies_project:
        new_paths += task.files
    require_no_overwrite(Path(options.into) if options.into is not None else root, new_paths)


async def stream(
    task: str | Task | Path, options: HealOptions | WriteOptions | None = None
) -> AsyncGenerator[Event | Result, None]:
    """Heal a project or solve a task, and yield each event as it happens.

    The events are read from the run's ledger, so a slow consumer does not slow the run. Closing the iterator
    before its end stops the run.

    Args:
        task: The `Path` of a project to heal; or a statement or a `Task` to solve.
        options: `HealOptions` for a project, `WriteOptions` for a task; without `on_event`.

    Yields:
        Every event, and the result at the end.

    Raises:
        UsageError: The task cannot be worked with, or the options do not fit it.
        SutureError: As `heal` and `solve`, after the last event.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    if options is not None and options.on_event is not None:
        raise UsageError(
            "stream() cannot have an on_event, because it yields the events", remedy="leave out on_event"
        )
    if isinstance(task, Path):
        if isinstance(options, WriteOptions):
            raise UsageError("WriteOptions do not fit a project", remedy="pass HealOptions")
        run = heal(task, replace(options or HealOptions(), on_event=events.put_nowait))
    else:
        if isinstance(options, HealOptions):
            raise UsageError(
                "HealOptions do not fit a task", remedy="pass WriteOptions, or the project as a Path"
            )
        run = solve(task, replace(options or WriteOptions(), on_event=events.put_nowait))
    run_task = asyncio.get_running_loop().create_task(run)
    run_task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await run_task
    finally:
        run_task.cancel()
        await asyncio.wait([run_task])
        if not run_task.cancelled():
            # Retrieve the exception, so that asyncio does not log it. `await run_task` has raised it for a consumer
            # that read to the end.
            run_task.exception()
