"""The one door to the core: solve, heal, replay, resume, verify, undo, and an ancestor's class.

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
from suture.ledger import Limits, RunFolder, compare_runs, find_run
from suture.ledger.follow import Listener, listening
from suture.loop import Opening, RecordedRun, Replay, open_recorded, opened, resume_task, run_task
from suture.loop.recipe import load_recipe
from suture.loop.tasks import example_task, heal_task, write_task
from suture.models import Model, Models, ReplySource, open_models, open_replies
from suture.models.deferred import open_or_defer
from suture.models.providers import open_named
from suture.models.source import absent_model
from suture.proof import (
    Finding,
    Handover,
    Undone,
    choose_handover,
    find_applied_run,
    hand_over,
    prove,
    require_possible,
    undo_run,
    verify_file,
)
from suture.records import Result, Task
from suture.sandbox import Sandbox
from suture.settings import Settings, flags_from_arguments, load_settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "Listener",
    "SelfHealingAgent",
    "example_task",
    "heal",
    "recorded_run",
    "replay",
    "resume",
    "run_sync",
    "solve",
    "undo",
    "verify",
]

T = TypeVar("T")
KEPT = Handover()


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
    async with _models(settings, model, live=source is None or or_live) as models:
        wanted = Opening(
            task=task, settings=settings, project=Path.cwd(), models=models, sandbox=sandbox
        ).answered_from(source, or_live=or_live)
        return await _run(wanted, choose_handover(apply=apply), on_event=on_event)


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
    only: Iterable[str] = (),
    settings: Settings | None = None,
    model: str | Model | BaseChatModel | None = None,
    sandbox: Sandbox | None = None,
    apply: bool = False,
    commit: bool = False,
    branch: str | None = None,
    patch: str | Path | None = None,
    replies: str | Path | None = None,
    or_live: bool = False,
    on_event: Listener | None = None,
) -> Result:
    """Repair code that exists, until its test command passes.

    Args:
        path: A project folder.
        test: The test command; pytest where none is given and there are tests.
        protect: Globs of files that must stay as they are, besides the tests and the project's settings.
        only: Globs of the files that may change; any that is not protected where there are none.
        settings: The knobs; from flags, environment and the project's files where not given.
        model: `provider:model`, a `Model` or a LangChain chat model; the settings' where not given.
        sandbox: The wall; the settings' where not given.
        apply: Write the verified change into the project; without any of these it stays untouched.
        commit: Write it there, and commit it beside whatever else is changed or staged.
        branch: Commit it on a new branch of this name; nothing else changes.
        patch: Write it into a new file as a diff.
        replies: A run (`last`, its id, its folder), or a file of replies, to answer from.
        or_live: Ask the model for what `replies` does not hold, instead of ending with an error.
        on_event: Called with each event of the run's ledger, read from it; what it raises is raised when
            the run has ended.

    Raises:
        UsageError: There is nothing to heal, no way to test it, or no way to hand it over as asked.
        PrerequisiteError: Something is missing: a sandbox, a model, a key.
        Cancelled: The user stopped it.
        StorageError: The run folder cannot be written.
    """
    handover = choose_handover(apply=apply, commit=commit, branch=branch, patch=patch)
    task, snapshot = heal_task(Path(path), test=test, protect=protect, only=only)
    require_possible(handover, snapshot.root)
    settings = settings or load_settings(snapshot.root).settings
    source = _replies(replies, settings)
    later = settings.repair.enabled and load_recipe(settings.loop, settings.model.temperature).mutate
    async with _models(settings, model, live=source is None or or_live, later=later) as models:
        wanted = Opening(task=task, settings=settings, project=snapshot.root, models=models, sandbox=sandbox)
        wanted = replace(wanted, source=source, or_live=or_live)
        return await _run(wanted, handover, on_event=on_event)


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
    recorded = recorded_run(run, settings)
    async with _models(recorded.settings, model or recorded.model, live=or_live) as models:
        wanted = Opening(
            task=recorded.task,
            settings=recorded.settings,
            project=recorded.project,
            models=models,
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
    recorded = recorded_run(run, settings)
    recorded.require_resumable()
    async with _models(recorded.settings, model or recorded.model, live=True) as models:
        wanted = Opening(
            task=recorded.task,
            settings=recorded.settings,
            project=recorded.project,
            models=models,
            sandbox=sandbox,
            folder=recorded.folder,
            interpreter=recorded.interpreter,
        )
        return await _run(wanted, choose_handover(apply=apply), on_event=on_event)


def recorded_run(run: str | Path, settings: Settings | None = None) -> RecordedRun:
    """How a run began, as its folder tells it.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose keys and folders count; from environment and files where not given.

    Raises:
        UsageError: There is no such run, or it does not say how it began.
        StorageError: Its folder is damaged.
    """
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
async def _models(
    settings: Settings, model: str | Model | BaseChatModel | None, *, live: bool, later: bool = False
) -> AsyncIterator[Models]:
    """The models, closed at the end unless handed in; where they are not to be asked, none is opened.

    Where they may not be needed (`later`), one that is missing is an error only when it is asked.
    """
    opener = (open_or_defer if later else open_named) if live else absent_model
    models = open_models(settings, model, opener=opener)
    try:
        yield models
    finally:
        await models.close()


async def verify(
    certificate: str | Path,
    *,
    project: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> AsyncIterator[Finding]:
    """Replay a certificate in a clean sandbox and without a model; raises as `proof.verify_file` does.

    Args:
        certificate: Its file, or a run: `last`, an id, or the unique start or end of one.
        project: The project, with the change or without; the files in the run folder where not given.
        settings: Whose limits hold; from environment and files where not given.
        sandbox: The wall; the settings' where not given.

    Yields:
        What was found out; the first finding that is not `ok` is the last.
    """
    settings = settings or load_settings(Path.cwd()).settings
    where = Path(project) if project is not None else None
    async for finding in verify_file(certificate, where, settings, sandbox):
        yield finding


def undo(run: str | None = None, *, settings: Settings | None = None) -> Undone:
    """Take back what a run changed; raises as `proof.undo_run` does.

    Args:
        run: An id, the unique start or end of one; the last run that changed something where not given.
        settings: Whose runs; from environment and files where not given.
    """
    home = (settings or load_settings(Path.cwd()).settings).paths.home
    return undo_run(find_applied_run(home) if run is None else find_run(home, run))


async def _run(wanted: Opening, handover: Handover = KEPT, *, on_event: Listener | None) -> Result:
    async with opened(wanted) as (context, checkpointer):
        context.prove = prove
        go = run_task if wanted.folder is None else resume_task
        about = {"project": str(wanted.project), **wanted.about}
        async with listening(context.ledger.path, on_event):
            result = await go(context, checkpointer, about=about)
        await hand_over(handover, result, wanted.project, context)
    return result


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
