"""Execute one run: open its models and its record, run it, certify its result, and deliver that."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.api.delivery.deliver import DeliverableRun, Delivery, deliver
from suture.core.ledger import find_run
from suture.core.ledger.event_log import EventLog
from suture.core.ledger.reading import Listener, ListenerProgress, notify_listener
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import Cancelled, PrerequisiteError, SandboxError, StorageError, SutureError, UsageError
from suture.loop import RunContext, RunSpec, load_recipe, open_run
from suture.loop.review.questions import Review, ReviewAnswer, Reviewer
from suture.models import (
    Model,
    ReplyRecording,
    RoleModels,
    load_recording,
    open_role_models,
    replay_only_model,
)
from suture.models.providers.registry import open_model_by_name, open_model_lazily
from suture.project.recorded_task import get_accepted_files
from suture.storage.memory import store_run_memories
from suture.storage.tracing import export_run_trace, is_tracing_enabled

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

DELIVERY_FAULTS = (UsageError, PrerequisiteError, SandboxError, StorageError)
"""Faults of a delivery, after which the repair is still in the run folder."""


async def execute_run(
    spec: RunSpec, delivery: Delivery | None = None, *, on_event: Listener | None = None
) -> Result:
    """Execute the run that `spec` requests, deliver its repair, and return its result."""
    progress = ListenerProgress(on_event) if on_event is not None else None
    if progress is not None and spec.on_review is not None:
        spec = replace(spec, on_review=_after_all_events(spec.on_review, progress))
    async with _open_and_record(spec) as (context, checkpointer), _log_events(context):
        start = _choose_start(spec)
        if progress is not None:
            progress.written = lambda: context.ledger.events
        async with (
            _export_trace(context),
            notify_listener(context.ledger.path, progress, known_events=len(context.ledger.events)),
        ):
            result = await start(context, checkpointer)
            await _store_memories(context)
        try:
            run = DeliverableRun(
                task=context.spec.task,
                folder=context.folder,
                ledger=context.ledger,
                prepare=context.suites.prepare,
                accepted=get_accepted_files(context.ledger.events),
            )
            await deliver(delivery or Delivery(), result, spec.project, run)
        except asyncio.CancelledError:
            raise _mention_saved_result(Cancelled("stopped"), result, context) from None
        except DELIVERY_FAULTS as fault:
            raise _mention_saved_result(fault, result, context) from fault
    return result


def _after_all_events(reviewer: Reviewer, progress: ListenerProgress) -> Reviewer:
    """Return a reviewer that asks only after the listener has got every event that led to the question."""

    async def ask(review: Review) -> ReviewAnswer | None:
        await progress.wait_until_current()
        answer = reviewer(review)
        return await answer if inspect.isawaitable(answer) else answer

    return ask


@contextlib.asynccontextmanager
async def _open_and_record(spec: RunSpec) -> AsyncIterator[tuple[RunContext, Any]]:
    """Open what a run needs. When it is closed, write the run to the database, if one is configured."""
    folder = None
    try:
        async with open_run(spec) as (context, checkpointer):
            folder = context.folder
            yield context, checkpointer
    finally:
        if folder is not None and (spec.settings.store.url or spec.settings.store.fallback_url):
            from suture.storage.database.projection_updates import record_finished_run

            await asyncio.to_thread(record_finished_run, spec.settings, folder)


async def _store_memories(context: RunContext) -> None:
    """Store what the run taught, if memories are used. A replay teaches nothing new."""
    if context.settings.memory.use != "off" and not context.spec.replays:
        stored = await asyncio.to_thread(
            store_run_memories, context.settings, context.folder, context.ledger.events
        )
        context.ledger.append(stored)


@contextlib.asynccontextmanager
async def _export_trace(context: RunContext) -> AsyncIterator[None]:
    """Export the run's spans when it has ended in any way, if the environment asks for them."""
    try:
        yield
    finally:
        if is_tracing_enabled(os.environ):
            await asyncio.to_thread(export_run_trace, context.folder)


@contextlib.asynccontextmanager
async def _log_events(context: RunContext) -> AsyncIterator[None]:
    """Write the run's events to the log file of the settings while the run continues."""
    settings = context.settings.log
    if settings.file is None:
        yield
        return
    event_count = len(context.ledger.events)
    max_bytes = settings.max_mb * 2**20
    log = EventLog(settings.file, max_bytes=max_bytes, backups=settings.backups, written=event_count)
    with contextlib.closing(log):
        try:
            async with notify_listener(context.ledger.path, log.write, known_events=event_count):
                yield
        finally:  # The listener has not seen the last events of a run that was stopped.
            for event in context.ledger.events:
                log.write(event)


def _choose_start(spec: RunSpec) -> Callable[..., Coroutine[Any, Any, Result]]:
    """Return the function that starts a run, resumes one, or continues a fork."""
    from suture.loop.run import fork_task, resume_task, run_task  # LangGraph takes a second to import.

    if spec.folder is not None:
        return resume_task
    return run_task if spec.origin is None else partial(fork_task, origin=spec.origin)


def _mention_saved_result(fault: SutureError, result: Result, context: RunContext) -> SutureError:
    """Return the same error, with a message that names the repair which is kept in the run folder."""
    diff = context.folder.path / "result.diff"
    message = f"{fault.message}; run {result.run_id} is healed and its verified diff is kept: {diff}"
    extended = type(fault)(message, remedy=fault.remedy)
    extended.run_id = result.run_id
    return extended


def load_replies(replies: str | Path | None, settings: Settings) -> ReplyRecording | None:
    """Return the recorded replies of a run or a file; `None` if there is nothing to load."""
    if replies is None:
        return None
    path = Path(replies)
    return load_recording(path if path.exists() else find_run(settings.paths.home, str(replies)).path)


@contextlib.asynccontextmanager
async def open_run_models(
    settings: Settings,
    model: str | Model | BaseChatModel | None,
    *,
    live: bool,
    deferred: bool = False,
) -> AsyncIterator[RoleModels]:
    """Open the models of a run, and close at the end those that the caller did not pass in.

    Args:
        model: The model that the caller passed in or named; `None` for those of the settings.
        live: Whether models are asked at all; if not, none is opened.
        deferred: Whether the run may end without asking a model. A missing model is then an error only when it
            is asked.
    """

    def open_model(model_settings: Settings, name: str) -> Model:
        if not live:
            return replay_only_model(name)
        return (open_model_lazily if deferred else open_model_by_name)(model_settings, name)

    helpers = load_recipe(settings.loop, settings.model.temperature).helpers
    models = open_role_models(settings, model, opener=open_model, in_use=("coder", *helpers.model_roles))
    try:
        yield models
    finally:
        await models.close()
