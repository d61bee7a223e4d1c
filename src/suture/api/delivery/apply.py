"""Deliver the repair of a run that has ended, undo it, and verify it by its certificate."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from suture.api.delivery.applied_change import find_applied_change
from suture.api.delivery.deliver import DeliverableRun, choose_delivery, deliver, require_deliverable
from suture.api.delivery.transactions import recover_interrupted_changes
from suture.api.delivery.undo import undo_run
from suture.api.past_runs import load_recorded_run
from suture.core.ledger import (
    Event,
    Ledger,
    RunFolder,
    SystemClock,
    last_payload,
    list_runs,
    read_ledger,
)
from suture.core.ledger.kinds import RunFinished, RunStarted, TreeUndone
from suture.core.records import Result, Task
from suture.core.settings import Settings, load_settings
from suture.errors import StorageError, UsageError
from suture.judge import Suite, prepare_suite
from suture.judge.certificates import (
    Certificate,
    InvalidCertificate,
    ReplayedClaim,
    find_certificate,
    load_any_certificate,
    verify_certificate,
)
from suture.loop import RecordedRun
from suture.loop.judgement import replay_judgement
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.recorded_task import get_accepted_files
from suture.sandbox import Sandbox, discover_programs, open_sandbox
from suture.sandbox.packages import packages_for_task


async def apply(
    run: str | Path | None = None,
    *,
    commit: bool = False,
    branch: str | None = None,
    patch: str | Path | None = None,
    into: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> RunFolder:
    """Deliver what a run has repaired or written. Without an option it is written into the files.

    Args:
        run: `last`, an id, or the unique start or end of one; by default the last run that healed the project
            around the current folder.
        commit: Write the change, and commit it.
        branch: Commit the change on a new branch of this name.
        patch: Write the change into a new file as a diff.
        into: The folder for new code; by default the folder in which it was requested.
        settings: Settings for the folder of the runs; by default from the environment and the settings files.
        sandbox: The sandbox, if what is committed has to be tested again; by default that of the run.

    Returns:
        The run folder, whose ledger says what was done.

    Raises:
        UsageError: There is no such run, it healed nothing, is applied already or belongs to somebody else, or
            the user has changed the same files since.
        StorageError: The tree or the repository could not be written; both are as they were.
    """
    settings = settings or load_settings(Path.cwd()).settings
    if run is None:
        run = find_last_healed_run(settings.paths.home, Path.cwd())
    recorded = load_recorded_run(run, settings)
    changed_folder = find_applied_change(recorded.events).root or recorded.project
    recover_interrupted_changes(settings.paths.home, Path(changed_folder))
    recorded = load_recorded_run(recorded.folder.path, settings)  # as it is now
    result = _load_healed_result(recorded)
    is_default = not commit and branch is None and patch is None and into is None
    delivery = choose_delivery(apply=is_default, commit=commit, branch=branch, patch=patch, into=into)
    is_new_code = recorded.task.kind == "write"
    if not is_default and is_new_code != (delivery.how == "into"):  # Only new code has its own folder.
        what = "wrote new code" if is_new_code else "repaired existing code"
        raise UsageError(f"run {recorded.folder.id} {what}, which --{delivery.how} cannot deliver")
    require_deliverable(delivery, recorded.project)
    run_settings = recorded.settings
    opened_sandboxes: list[Sandbox] = []

    async def prepare(task: Task) -> Suite:
        if sandbox is None:
            opened_sandboxes.append(
                open_sandbox(run_settings.sandbox, keys=run_settings.keys, cache=run_settings.paths.cache)
            )
        interpreter = recorded.interpreter or discover_programs(
            recorded.project, os.environ, find_runtime_language(task)
        )
        return await prepare_suite(
            task,
            sandbox or opened_sandboxes[-1],
            run_settings.sandbox,
            interpreter,
            packages=packages_for_task(task, run_settings),
        )

    try:
        with Ledger(recorded.folder.ledger_path, SystemClock()) as ledger:
            require_not_applied(recorded.folder, ledger.events)  # another process may just have done it
            deliverable = DeliverableRun(
                task=recorded.task,
                folder=recorded.folder,
                ledger=ledger,
                prepare=prepare,
                accepted=get_accepted_files(recorded.events),
            )
            await deliver(delivery, result, recorded.project, deliverable)
    finally:
        for opened_sandbox in opened_sandboxes:
            await opened_sandbox.close()
    return recorded.folder


def _load_healed_result(recorded: RecordedRun) -> Result:
    run = recorded.folder
    if not recorded.is_own:
        raise UsageError(f"run {run.id} is not among your own runs", remedy="heal it here, then apply that")
    finished = last_payload(recorded.events, RunFinished)
    if finished is None or finished.outcome != "healed":
        ending = f"ended as {finished.outcome}" if finished else "has not ended"
        raise UsageError(f"run {run.id} {ending}: there is nothing to apply", remedy=f"suture show {run.id}")
    require_not_applied(run, recorded.events)
    return run.load_record(Result, finished.result)


def require_not_applied(run: RunFolder, events: tuple[Event, ...]) -> None:
    """Refuse to apply a run whose change is in the user's files already, as a `UsageError`."""
    if find_applied_change(events).root:
        raise UsageError(f"run {run.id} is applied already", remedy=f"undo it: suture undo {run.id}")


def find_last_healed_run(home: Path, folder: Path) -> Path:
    """Return the last run that healed the project around a folder; a `UsageError` if there is none."""
    for run in reversed(list_runs(home)):
        try:
            events = read_ledger(run.ledger_path).events
        except StorageError:  # A damaged run must not hide the others.
            continue
        started, finished = last_payload(events, RunStarted), last_payload(events, RunFinished)
        if started is None or finished is None or finished.outcome != "healed" or not started.project:
            continue
        project = Path(started.project).resolve()
        is_inside = folder.resolve().is_relative_to(project)
        # A subfolder belongs to a healed project; new code was written into one folder only.
        if folder.resolve() == project or (started.kind == "heal" and is_inside):
            return run.path
    raise UsageError("no run has healed this folder", remedy="suture history")


async def verify(
    certificate: str | Path,
    *,
    project: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> AsyncIterator[ReplayedClaim]:
    """Replay a certificate of a result or of a judgement in a clean sandbox, without a model.

    Args:
        certificate: The certificate file, a run (`last`, an id, or the unique start or end of one), or the id of a
            judgement.
        project: The project, with or without the change; by default the files in the run folder, or in the
            certificate of a judgement.
        settings: Settings for the limits, and your policy; by default from the environment and the settings files.
        sandbox: The sandbox; by default that of the settings.

    Yields:
        The claims that were replayed. The first claim that does not hold is the last one.

    Raises:
        UsageError: There is no such certificate, or nothing has the files.
        PrerequisiteError: There is no sandbox or no interpreter.
        SandboxError: The sandbox failed.
    """
    settings = settings or load_settings(Path.cwd()).settings
    folder = Path(project) if project is not None else None
    path = find_certificate(certificate, settings.paths.home)
    try:
        loaded = load_any_certificate(path)
    except InvalidCertificate as refused:
        yield ReplayedClaim(name="certificate", ok=False, detail=str(refused))
        return
    replay_sandbox = sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        claims = (
            verify_certificate(loaded, path.parent, folder, replay_sandbox, settings)
            if isinstance(loaded, Certificate)
            else replay_judgement(loaded, folder, replay_sandbox, settings)
        )
        async for claim in claims:
            yield claim
    finally:
        if sandbox is None:
            await replay_sandbox.close()


def undo(run: str | None = None, *, settings: Settings | None = None) -> TreeUndone:
    """Undo what a run changed; raises as `undo_run` does.

    Args:
        run: An id, or the unique start or end of one; by default the last run that changed the project around
            the current folder.
        settings: Settings for the folder of the runs; by default from the environment and the settings files.
    """
    home = (settings or load_settings(Path.cwd(), read_only=True).settings).paths.home
    return undo_run(home, run)
