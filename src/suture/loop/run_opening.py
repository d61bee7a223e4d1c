"""Open everything that a run works with, and close it at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from suture.agents.prompting.prompt_files import PromptBook
from suture.core.ledger import Budget, Ledger, Limits, SystemClock, new_run
from suture.core.ledger.kinds import SandboxSubstituted
from suture.core.settings import project_prompts
from suture.loop.context import RunContext
from suture.loop.evaluation.search_setup import run_first_tests
from suture.loop.recipes.recipe_files import load_extensions, load_recipe
from suture.loop.run_spec import RunSpec
from suture.models import RecordedModel
from suture.project.languages import LANGUAGES, find_working_folder
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.safety import resolve_levels
from suture.sandbox import AutomaticSandbox, Sandbox, discover_programs, open_sandbox
from suture.storage.database import checkpoint_location, open_checkpointer, share_run

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver


@asynccontextmanager
async def open_run(spec: RunSpec) -> AsyncIterator[tuple[RunContext, BaseCheckpointSaver[Any]]]:
    """Open what a run needs. Its sandbox is closed at the end unless the caller passed it in.

    Yields:
        The context of the run, and the checkpointer of its graph.

    Raises:
        UsageError: There is no such recipe or safety rule, or another process writes this run.
        PrerequisiteError: There is no sandbox, the task's language is not installed, or money is limited and
            a model's price is not known.
        StorageError: The run folder or the checkpoints cannot be written.
    """
    settings, task = spec.settings, spec.task
    recipe = load_recipe(settings.loop, spec.models.for_role("coder").temperature)
    extensions = load_extensions(recipe.helpers)
    resolve_levels(settings.safety)  # An unknown rule is an error before anything is opened.
    clock = SystemClock()
    limits = spec.limits or Limits(**settings.budget.model_dump())
    if limits.money is not None:
        spec.models.require_prices()
    sandbox = spec.sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        folder = spec.folder or new_run(settings.paths.home, run_id=spec.run_id)
        interpreter = spec.interpreter
        if interpreter is None and (task.full_command or task.project or LANGUAGES[task.language].program):
            python = settings.sandbox.python
            interpreter = discover_programs(
                spec.project,
                os.environ,
                find_runtime_language(task),
                python,
                folder=find_working_folder(task.test_command or next(iter(task.tools), ())),
            )
        with (
            share_run(settings, folder) as share,
            Ledger(folder.ledger_path, clock, on_written=share) as ledger,
            _record_substitution(sandbox, ledger) as record_substitution,
        ):
            recorded_model = partial(
                RecordedModel,
                replies_dir=folder.replies_path,
                source=spec.source,
                or_live=spec.or_live,
                on_stored=share,
            )
            prompts = settings.paths.prompts or project_prompts(settings.paths.home, spec.project)
            context = RunContext(
                spec=spec,
                folder=folder,
                ledger=ledger,
                budget=Budget(ledger, limits, clock),
                models=spec.models.with_wrapped_models(recorded_model),
                sandbox=sandbox,
                recipe=recipe,
                interpreter=interpreter,
                prompts=PromptBook(prompts),
                extensions=extensions,
                record_substitution=record_substitution,
            )
            is_new = spec.folder is None and spec.origin is None
            if task.kind == "heal" and is_new and context.budget.remaining_s() != 0:
                context.prefetch.first_tests = asyncio.create_task(run_first_tests(context))
            try:
                # LangGraph takes long to import. In the meantime the sandbox starts, and the first tests run.
                await asyncio.to_thread(import_module, "suture.loop.run")
                async with open_checkpointer(checkpoint_location(settings)) as checkpointer:
                    yield context, checkpointer
            finally:
                await context.prefetch.close()
    finally:
        if sandbox is not spec.sandbox:
            await sandbox.close()


@contextmanager
def _record_substitution(sandbox: Sandbox, ledger: Ledger) -> Iterator[Callable[[], None]]:
    """Write one event to the ledger when the run first uses a sandbox that replaces the preferred one.

    Yields:
        A function that writes the event if the sandbox was used before the run had written its first event.
    """
    used: SandboxSubstituted | None = None
    is_recorded = False

    def record_waiting() -> None:
        nonlocal is_recorded
        if used is not None and ledger.events and not is_recorded:
            is_recorded = True
            ledger.append(used)

    def record(substitution: SandboxSubstituted) -> None:
        nonlocal used
        used = substitution
        record_waiting()

    if not isinstance(sandbox, AutomaticSandbox):
        yield record_waiting
        return
    with sandbox.report_substitution(record):
        yield record_waiting
