"""What all doors share: whose models answer, from which record, and a run from its start to its hand-over."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.api.delivery.deliver import Delivery, DeliverableRun, deliver
from suture.api.interruption import run_interruptibly
from suture.core.ledger import find_run
from suture.core.ledger.event_log import EventLog
from suture.core.ledger.reading import Heard, Listener, listening
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import Cancelled, PrerequisiteError, SandboxError, StorageError, SutureError, UsageError
from suture.loop import RunContext, RunSpec, load_recipe, open_run
from suture.loop.review.reviewing import Review, ReviewAnswer, Reviewer
from suture.models import Model, Models, ReplySource, absent_model, open_models, open_replies
from suture.models.providers.registry import open_named, open_or_defer
from suture.project.recorded_task import accepted_files
from suture.storage.memory import kept_of
from suture.storage.tracing import export_run, wants_traces

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

T = TypeVar("T")
KEPT = Delivery()
HANDOVER_FAULTS = (UsageError, PrerequisiteError, SandboxError, StorageError)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run one of this module's coroutines to its end, where there is no event loop yet.

    Raises:
        KeyboardInterrupt: The user stopped it where nothing of a run was there yet.
    """
    return run_interruptibly(coroutine)


async def execute_run(spec: RunSpec, handover: Delivery = KEPT, *, on_event: Listener | None) -> Result:
    """Do one run, prove what it healed, and hand that over as the user asked."""
    heard = Heard(on_event) if on_event is not None else None
    if heard is not None and spec.on_review is not None:
        spec = replace(spec, on_review=_asks_when_heard(spec.on_review, heard))
    async with _opened(spec) as (context, checkpointer), _logged(context):
        go = _how(spec)
        if heard is not None:
            heard.written = lambda: context.ledger.events
        async with (
            _traced(context),
            listening(context.ledger.path, heard, seen=len(context.ledger.events)),
        ):
            result = await go(context, checkpointer)
            await _remembered(context)
        try:
            await deliver(handover, result, spec.project, _healed(context))
        except asyncio.CancelledError:
            raise _kept(Cancelled("stopped"), result, context) from None
        except HANDOVER_FAULTS as fault:
            raise _kept(fault, result, context) from fault
    return result


def _asks_when_heard(ask: Reviewer, heard: Heard) -> Reviewer:
    """Ask a person once they have been told all that led to the question."""

    async def asked(review: Review) -> ReviewAnswer | None:
        await heard.all_so_far()
        said = ask(review)
        return await said if inspect.isawaitable(said) else said

    return asked


@contextlib.asynccontextmanager
async def _opened(spec: RunSpec) -> AsyncIterator[tuple[RunContext, Any]]:
    """Open what a run needs; when it has let go of all that, its rows go to the database that is named."""
    folder = None
    try:
        async with open_run(spec) as (context, checkpointer):
            folder = context.folder
            yield context, checkpointer
    finally:
        if folder is not None and (spec.settings.store.url or spec.settings.store.fallback_url):
            from suture.storage.database.projection_updates import record_run

            await asyncio.to_thread(record_run, spec.settings, folder)


async def _remembered(context: RunContext) -> None:
    """Keep what the run taught, where memories are used; a replay teaches nothing new."""
    if context.settings.memory.use != "off" and not context.spec.replays:
        kept = await asyncio.to_thread(kept_of, context.settings, context.folder, context.ledger.events)
        context.ledger.append(kept)


def _healed(context: RunContext) -> DeliverableRun:
    return DeliverableRun(
        task=context.spec.task,
        folder=context.folder,
        ledger=context.ledger,
        prepare=context.prepare,
        accepted=accepted_files(context.ledger.events),
    )


@contextlib.asynccontextmanager
async def _traced(context: RunContext) -> AsyncIterator[None]:
    """Send the run's spans when it has ended, however, where the environment asks for them."""
    try:
        yield
    finally:
        if wants_traces(os.environ):
            await asyncio.to_thread(export_run, context.folder)


@contextlib.asynccontextmanager
async def _logged(context: RunContext) -> AsyncIterator[None]:
    """Write the run's events to the log that the settings name, while it goes on."""
    settings = context.settings.log
    if settings.file is None:
        yield
        return
    seen = len(context.ledger.events)
    most_bytes = settings.most_mb * 2**20
    log = EventLog(settings.file, most_bytes=most_bytes, kept=settings.kept, seen=seen)
    with contextlib.closing(log):
        try:
            async with listening(context.ledger.path, log.write, seen=seen):
                yield
        finally:  # a run that was stopped has events that nobody has listened to
            for event in context.ledger.events:
                log.write(event)


def _how(spec: RunSpec) -> Callable[..., Coroutine[Any, Any, Result]]:
    from suture.loop.run import fork_task, resume_task, run_task  # LangGraph takes a second

    if spec.folder is not None:
        return resume_task
    return run_task if spec.start is None else partial(fork_task, start=spec.start)


def _kept(fault: SutureError, result: Result, context: RunContext) -> SutureError:
    """The same fault, naming the healed result that it leaves in the run folder."""
    where = context.folder.path / "result.diff"
    named = type(fault)(
        f"{fault.message}; run {result.run_id} is healed and its verified diff is kept: {where}",
        remedy=fault.remedy,
    )
    named.run_id = result.run_id
    return named


def load_replies(replies: str | Path | None, settings: Settings) -> ReplySource | None:
    """The record that `replies` names: a run, or a file; `None` where there is none.

    Raises:
        UsageError: There is no such run or file.
    """
    if replies is None:
        return None
    where = Path(replies)
    return open_replies(where if where.exists() else find_run(settings.paths.home, str(replies)).path)


@contextlib.asynccontextmanager
async def open_run_models(
    settings: Settings, model: str | Model | BaseChatModel | None, *, live: bool, later: bool = False
) -> AsyncIterator[Models]:
    """The models, closed at the end unless handed in; where they are not to be asked, none is opened.

    Where they may not be needed (`later`), one that is missing is an error only when it is asked.
    """
    opener = (open_or_defer if later else open_named) if live else lambda _, name: absent_model(name)
    helpers = load_recipe(settings.loop, settings.model.temperature).helpers
    models = open_models(settings, model, opener=opener, in_use=("coder", *helpers.seats))
    try:
        yield models
    finally:
        await models.close()
