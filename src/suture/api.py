"""The one door to the core: solve, heal, and the class that an ancestor promised its users.

from suture import run_sync, solve
result = run_sync(solve("Write a function add(a, b) that adds two numbers. add(1, 2) == 3"))
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.errors import UsageError
from suture.ledger import Budget, Ledger, Limits, RunFolder, SystemClock, follow_ledger, new_run
from suture.loop import RunContext, load_recipe, run_task
from suture.loop.tasks import example_task, heal_task, write_task
from suture.models import Model, RecordedModel, open_model
from suture.records import Event, Result, Task
from suture.sandbox import Sandbox, discover_interpreter, open_sandbox
from suture.settings import Settings, flags_from_arguments, load_settings
from suture.store import open_checkpointer
from suture.workspace import apply_changes, overlay

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["SelfHealingAgent", "example_task", "heal", "run_sync", "solve"]

T = TypeVar("T")
Listener = Callable[[Event], None]


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run one of this module's coroutines to its end, where there is no event loop yet."""
    return asyncio.run(coroutine)


async def solve(
    task: str | Task,
    *,
    test: str | Path | None = None,
    asserts: str = "",
    entry_point: str | None = None,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    on_event: Listener | None = None,
) -> Result:
    """Write code for a task.

    Args:
        task: A statement in plain words, a signature with a docstring, or a whole `Task`.
        test: A file of tests: pytest's, or plain asserts.
        asserts: Plain asserts as text.
        entry_point: The name to define, where the statement does not tell.
        settings: The knobs; from flags, environment and files where not given.
        model: `provider:model`, a `Model` or a LangChain chat model; the settings' where not given.
        sandbox: The wall; the settings' where not given.
        apply: Write the code into the current folder when every trusted check passes.
        on_event: Called with each event of the run's ledger, read from it; what it raises is raised when
            the run has ended.

    Raises:
        UsageError: The task cannot be worked with.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    if isinstance(task, str):
        task = write_task(task, test=Path(test) if test else None, asserts=asserts, entry_point=entry_point)
    if apply and task.kind == "write":
        _require_new(Path(task.module))
    settings = settings or load_settings(Path.cwd()).settings
    return await _run(
        task, settings, Path.cwd(), model=model, sandbox=sandbox, apply=apply, on_event=on_event
    )


def _require_new(module: Path) -> None:
    if module.exists():
        raise UsageError(
            f"{str(module)!r} exists already and would be overwritten",
            remedy="move it away, or mend it with `suture heal`",
        )


async def heal(
    path: str | Path,
    *,
    test: str | Sequence[str] | None = None,
    protect: Iterable[str] = (),
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    on_event: Listener | None = None,
) -> Result:
    """Repair code that exists, until its test command passes.

    Args:
        path: A project folder.
        test: The test command; pytest where none is given and there are tests.
        protect: Globs of files that must stay as they are, besides the tests and the project's settings.
        settings: The knobs; from flags, environment and the project's files where not given.
        model: `provider:model`, a `Model` or a LangChain chat model; the settings' where not given.
        sandbox: The wall; the settings' where not given.
        apply: Write the verified change into the project; without it the project stays untouched.
        on_event: Called with each event of the run's ledger, read from it; what it raises is raised when
            the run has ended.

    Raises:
        UsageError: There is nothing to heal, or no way to test it.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    task, snapshot = heal_task(Path(path), test=test, protect=protect)
    settings = settings or load_settings(snapshot.root).settings
    project = snapshot.root
    return await _run(task, settings, project, model=model, sandbox=sandbox, apply=apply, on_event=on_event)


async def _run(
    task: Task,
    settings: Settings,
    project: Path,
    *,
    model: str | Model | BaseChatModel | None,
    sandbox: Sandbox | None,
    apply: bool,
    on_event: Listener | None,
) -> Result:
    recipe = load_recipe(settings.loop, settings.model.temperature)
    clock = SystemClock()
    answering = open_model(settings, model)
    wall = sandbox or open_sandbox(settings.sandbox)
    folder = new_run(settings.paths.home)
    limits = Limits(**settings.budget.model_dump())
    with Ledger(folder.ledger_path, clock) as ledger:
        context = RunContext(
            task=task,
            folder=folder,
            ledger=ledger,
            budget=Budget(ledger, limits, clock),
            model=RecordedModel(answering, folder.replies_path),
            sandbox=wall,
            settings=settings,
            recipe=recipe,
            interpreter=discover_interpreter(project, os.environ) if task.test_command else None,
        )
        database = settings.paths.home / "checkpoints.db"
        try:
            async with open_checkpointer(database) as checkpointer, _listening(folder, on_event):
                result = await run_task(context, checkpointer)
        finally:
            if answering is not model:
                await answering.close()
            if wall is not sandbox:
                await wall.close()
        if apply and result.outcome == "healed":
            _apply(task, result, project, ledger, folder)
    return result


def _apply(task: Task, result: Result, root: Path, ledger: Ledger, folder: RunFolder) -> None:
    """Write a verified change into the user's tree, and keep the patch that takes it back."""
    if result.candidate is None:
        return
    applied = apply_changes(root, task.files, overlay(task.files, result.candidate.files))
    undo = folder.write_text("undo.diff", applied.undo)
    ledger.append("tree.applied", {"root": str(root), "files": list(applied.paths), "undo": str(undo)})


@contextlib.asynccontextmanager
async def _listening(folder: RunFolder, on_event: Listener | None) -> AsyncIterator[None]:
    """Pass events on to a listener. It reads the ledger like everyone else, in a task of its own."""
    if on_event is None:
        yield
        return

    async def listen(listener: Listener) -> None:
        async for event in follow_ledger(folder.ledger_path):
            listener(event)

    task = asyncio.get_running_loop().create_task(listen(on_event))
    try:
        yield
        await task  # the run has ended, and so does its ledger: let the listener see the last line
    finally:
        task.cancel()


class SelfHealingAgent:
    """A specification in, code out: the interface that an ancestor promised its users.

    Args:
        model_provider: Such as `openai`, `anthropic`, `ollama`, `local`.
        model_name: The provider's name of the model.
        max_iterations: Attempts before it gives up.
        options: Other arguments that ancestors took; each works, or fails naming its successor.

    Raises:
        UsageError: An argument is unknown, or has no successor.
    """

    def __init__(
        self,
        model_provider: str = "openai",
        model_name: str = "gpt-4",
        max_iterations: int = 5,
        **options: object,
    ) -> None:
        if max_iterations < 1:
            raise UsageError(f"max_iterations must be at least 1, not {max_iterations!r}")
        given = {"model_provider": model_provider, "model_name": model_name, "max_iterations": max_iterations}
        self.max_iterations = max_iterations
        self.settings = load_settings(Path.cwd(), flags_from_arguments({**given, **options})).settings

    def run(self, specification: str) -> dict[str, Any]:
        """Write code for a specification.

        Returns:
            A mapping with `code`, `is_complete`, `iteration`, `specification`, `max_iterations`,
            `execution_output`, `execution_error`, `critic_feedback`, and `run_id`. `is_complete` is true only
            when every trusted check passed; without any check to trust it is false.

        Raises:
            UsageError: The specification is empty.
            PrerequisiteError: A key, a model or the sandbox is missing.
        """
        result = run_sync(solve(specification, settings=self.settings))
        files = dict(result.candidate.files) if result.candidate else {}
        facts = result.verdict.counterexamples if result.verdict else ()
        return {
            "specification": specification,
            "code": "\n".join(files.values()),
            "execution_output": result.verdict.output if result.verdict else "",
            "execution_error": facts[0].exception or facts[0].got if facts else "",
            "critic_feedback": "" if result.ok else result.reason,
            "iteration": result.spend.attempts,
            "max_iterations": self.max_iterations,
            "is_complete": result.ok,
            "run_id": result.run_id,
        }
