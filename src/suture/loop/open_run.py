"""Everything that a run works with, opened together and closed together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from suture.languages import Interpreter
from suture.ledger import Budget, Event, Ledger, Limits, RunFolder, SystemClock, new_run
from suture.loop.context import RunContext
from suture.loop.recipes.plugins import load_extensions
from suture.loop.recipes.recipe import load_recipe
from suture.loop.resuming.forking import Start
from suture.loop.review.disambiguation import Asker
from suture.loop.review.reviewing import Reviewer
from suture.models import Model, Models, RecordedModel, ReplySource
from suture.records import Task
from suture.roles import PromptBook
from suture.sandbox import Sandbox, discover_programs, open_sandbox
from suture.settings import Settings, project_prompts
from suture.store import open_checkpointer

__all__ = ["Opening", "opened"]


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a run is to work with.

    Attributes:
        task: What is wanted.
        settings: The knobs.
        project: The folder it is about; decides what `python` means in its test command,
            and may have prompts of its own, which count where it is trusted.
        models: Who answers each role.
        sandbox: The wall; the settings' where not given.
        folder: The folder of a run that goes on; a new one where not given.
        limits: What it may use; the settings' where not given.
        interpreter: What `python` means, where that is known already.
        source: Replies of another run, to answer from.
        or_live: Whether the model is asked for what the source does not hold.
        start: Where it begins, where it is a fork of another run.
        replays: The run that it does again; empty where it does none.
        left_out: Files that it does not see, as they may hold secrets.
        ask_user: Asks the user which of two repairs is right, where there is a user to ask.
        on_review: Asks a person where `loop.autonomy` wants it; without it the run is parked there.
        follows: See `RunContext`.
    """

    task: Task
    settings: Settings
    project: Path
    models: Models
    sandbox: Sandbox | None = None
    folder: RunFolder | None = None
    limits: Limits | None = None
    interpreter: Interpreter | None = None
    source: ReplySource | None = None
    or_live: bool = False
    start: Start | None = None
    replays: str = ""
    left_out: tuple[str, ...] = ()
    ask_user: Asker | None = None
    on_review: Reviewer | None = None
    follows: Sequence[Event] = ()

    def answered_from(self, source: ReplySource | None, *, or_live: bool) -> Opening:
        """The same with recorded replies before the model, where there are any."""
        return replace(self, source=source, or_live=or_live)


@asynccontextmanager
async def opened(wanted: Opening) -> AsyncIterator[tuple[RunContext, BaseCheckpointSaver[Any]]]:
    """Open a run; its sandbox is closed at the end unless it was handed in.

    Yields:
        What the run works with, and where its state is kept.

    Raises:
        UsageError: There is no such recipe, or another process writes this run.
        PrerequisiteError: There is no sandbox, the task's language is not installed, or money is limited and
            a model's price is not known.
        StorageError: The run folder or the checkpoints cannot be written.
    """
    settings, task = wanted.settings, wanted.task
    recipe = load_recipe(settings.loop, wanted.models.for_role("coder").temperature)
    extensions = load_extensions(recipe.helpers)
    clock = SystemClock()
    limits = wanted.limits or Limits(**settings.budget.model_dump())
    if limits.money is not None:
        wanted.models.require_prices()
    wall = wanted.sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        folder = wanted.folder or new_run(settings.paths.home)
        interpreter = wanted.interpreter
        if interpreter is None and task.test_command:
            python = settings.sandbox.python
            interpreter = discover_programs(wanted.project, os.environ, task.language, python)
        with Ledger(folder.ledger_path, clock) as ledger:
            context = RunContext(
                task=task,
                folder=folder,
                ledger=ledger,
                budget=Budget(ledger, limits, clock),
                models=wanted.models.wrapped(partial(_recorded, wanted, folder)),
                sandbox=wall,
                settings=settings,
                recipe=recipe,
                interpreter=interpreter,
                prompts=PromptBook(
                    settings.paths.prompts or project_prompts(settings.paths.home, wanted.project)
                ),
                ask_user=wanted.ask_user,
                on_review=wanted.on_review,
                extensions=extensions,
                follows=wanted.follows,
            )
            async with open_checkpointer(settings.paths.home / "checkpoints.db") as checkpointer:
                yield context, checkpointer
    finally:
        if wall is not wanted.sandbox:
            await wall.close()


def _recorded(wanted: Opening, folder: RunFolder, model: Model) -> Model:
    return RecordedModel(model, folder.replies_path, source=wanted.source, or_live=wanted.or_live)
