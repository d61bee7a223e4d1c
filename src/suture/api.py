"""The one door to the core: solve, heal, replay, resume, and the class that an ancestor promised its users.

from suture import run_sync, solve
result = run_sync(solve("Write a function add(a, b) that adds two numbers. add(1, 2) == 3"))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.errors import UsageError
from suture.ledger import Ledger, Limits, RunFolder, compare_runs, find_run
from suture.ledger.follow import Listener, listening
from suture.loop import Opening, RecordedRun, Replay, open_recorded, opened, resume_task, run_task
from suture.loop.tasks import example_task, heal_task, write_task
from suture.models import AbsentModel, Model, ReplySource, open_model, open_replies
from suture.records import Result, Task
from suture.sandbox import Sandbox
from suture.settings import Settings, flags_from_arguments, load_settings
from suture.workspace import apply_changes, overlay

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["Listener", "SelfHealingAgent", "example_task", "heal", "replay", "resume", "run_sync", "solve"]

T = TypeVar("T")


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
    replies: str | Path | None = None,
    or_live: bool = False,
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
        replies: A run (`last`, its id, its folder), or a file of replies, to answer from.
        or_live: Ask the model for what `replies` does not hold, instead of ending with an error.
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
    source = _replies(replies, settings)
    async with _answering(settings, model, live=source is None or or_live) as answering:
        wanted = Opening(
            task=task, settings=settings, project=Path.cwd(), model=answering, sandbox=sandbox
        ).answered_from(source, or_live=or_live)
        return await _run(wanted, apply=apply, on_event=on_event)


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
    replies: str | Path | None = None,
    or_live: bool = False,
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
        replies: A run (`last`, its id, its folder), or a file of replies, to answer from.
        or_live: Ask the model for what `replies` does not hold, instead of ending with an error.
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
    source = _replies(replies, settings)
    async with _answering(settings, model, live=source is None or or_live) as answering:
        wanted = Opening(
            task=task, settings=settings, project=snapshot.root, model=answering, sandbox=sandbox
        )
        wanted = replace(wanted, source=source, or_live=or_live)
        return await _run(wanted, apply=apply, on_event=on_event)


async def replay(
    run: str | Path,
    *,
    or_live: bool = False,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
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
        on_event: As in `solve`.

    Raises:
        UsageError: There is no such run, or it came to a call that was never recorded (`ReplyMissing`).
        PrerequisiteError: Something is missing: a sandbox, or with `or_live` a model or a key.
        Cancelled: The user stopped it.
        StorageError: A run folder cannot be read or written.
    """
    recorded = _recorded(run, settings)
    async with _answering(recorded.settings, model or recorded.model, live=or_live) as answering:
        wanted = Opening(
            task=recorded.task,
            settings=recorded.settings,
            project=recorded.project,
            model=answering,
            sandbox=sandbox,
            limits=Limits(**{**recorded.settings.budget.model_dump(), "seconds": None}),
            interpreter=recorded.interpreter,
            source=open_replies(recorded.folder.path, may_be_empty=True),
            or_live=or_live,
            about={"replays": recorded.folder.id},
        )
        result = await _run(wanted, on_event=on_event)
    again = find_run(recorded.settings.paths.home, result.run_id)
    return Replay(recorded=recorded.folder.id, result=result, difference=compare_runs(recorded.folder, again))


async def resume(
    run: str | Path,
    *,
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    on_event: Listener | None = None,
) -> Result:
    """Go on with a run whose process was killed, from its last checkpoint; raises as `solve` does.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose keys and folders count; from environment and files where not given.
        model: The run's own model, where it was handed in as an object; the recorded name where not given.
        sandbox: The wall; the recorded settings' where not given.
        apply: As in `solve` and `heal`.
        on_event: As in `solve`; it sees the run from its beginning.
    """
    recorded = _recorded(run, settings)
    recorded.require_resumable()
    async with _answering(recorded.settings, model or recorded.model, live=True) as answering:
        wanted = Opening(
            task=recorded.task,
            settings=recorded.settings,
            project=recorded.project,
            model=answering,
            sandbox=sandbox,
            folder=recorded.folder,
            interpreter=recorded.interpreter,
        )
        return await _run(wanted, apply=apply, on_event=on_event)


def _recorded(run: str | Path, settings: Settings | None) -> RecordedRun:
    present = settings or load_settings(Path.cwd()).settings
    return open_recorded(_folder_of(run, present), present)


def _folder_of(run: str | Path, settings: Settings) -> RunFolder:
    folder = RunFolder(Path(run))
    return folder if folder.ledger_path.is_file() else find_run(settings.paths.home, str(run))


def _replies(replies: str | Path | None, settings: Settings) -> ReplySource | None:
    if replies is None:
        return None
    where = Path(replies)
    return open_replies(where if where.exists() else find_run(settings.paths.home, str(replies)).path)


@contextlib.asynccontextmanager
async def _answering(
    settings: Settings, model: str | Model | BaseChatModel | None, *, live: bool
) -> AsyncIterator[Model]:
    """The model, closed at the end unless it was handed in; one that is not to be asked is not opened."""
    if not live and (model is None or isinstance(model, str)):
        model = AbsentModel(model or settings.model.name)
    answering = open_model(settings, model)
    try:
        yield answering
    finally:
        if answering is not model:
            await answering.close()


async def _run(wanted: Opening, *, apply: bool = False, on_event: Listener | None) -> Result:
    async with opened(wanted) as (context, checkpointer):
        go = run_task if wanted.folder is None else resume_task
        about = {"project": str(wanted.project), **wanted.about}
        async with listening(context.ledger.path, on_event):
            result = await go(context, checkpointer, about=about)
        if apply and result.outcome == "healed":
            _apply(wanted.task, result, wanted.project, context.ledger, context.folder)
    return result


def _apply(task: Task, result: Result, root: Path, ledger: Ledger, folder: RunFolder) -> None:
    """Write a verified change into the user's tree, and keep the patch that takes it back."""
    if result.candidate is None:
        return
    applied = apply_changes(root, task.files, overlay(task.files, result.candidate.files))
    undo = folder.write_text("undo.diff", applied.undo)
    ledger.append("tree.applied", {"root": str(root), "files": list(applied.paths), "undo": str(undo)})


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
