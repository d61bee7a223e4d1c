"""Hand over what a run has healed, verify it by its certificate, take it back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from suture.api.delivery.deliver import DeliverableRun, choose_delivery, deliver, require_deliverable
from suture.api.past_runs import load_recorded_run
from suture.api.delivery.undo import UndoResult, find_applied_run, is_applied, undo_run
from suture.core.ledger import Ledger, RunFolder, SystemClock, find_run, last_of, list_runs, read_ledger
from suture.core.ledger.kinds import RunFinished, RunStarted
from suture.core.records import Result, Task
from suture.core.settings import Settings, load_settings
from suture.errors import StorageError, UsageError
from suture.judge import Suite, prepare_suite
from suture.judge.certificates import ReplayedClaim, verify_file
from suture.loop import RecordedRun
from suture.project.recorded_task import accepted_files
from suture.sandbox import Sandbox, discover_programs, open_sandbox
from suture.sandbox.packages import packages_of


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
    """Hand over what a run has healed, as `heal` would have; without a way it is written into the files.

    Args:
        run: `last`, an id, or the unique start or end of one; where not given, the last run that healed the
            project around the current folder.
        commit: As in `heal`, as are `branch` and `patch`.
        branch: See there.
        patch: See there.
        into: As in `solve`: the folder for new code; where not given, that is the one it was asked for in.
        settings: Whose runs; from environment and files where not given.
        sandbox: The wall, where what is committed has to be tested anew; as the run's where not given.

    Returns:
        The run's folder, whose ledger says what was done.

    Raises:
        UsageError: There is no such run, it has healed nothing, is applied already or somebody else's; or the
            user has changed the same files since.
        StorageError: The tree or the repository could not be written; both are as they were.
    """
    settings = settings or load_settings(Path.cwd()).settings
    recorded = load_recorded_run(_last_healed(settings.paths.home, Path.cwd()) if run is None else run, settings)
    result = _healed_result(recorded)
    elsewhere = commit or branch is not None or patch is not None or into is not None
    handover = choose_delivery(apply=not elsewhere, commit=commit, branch=branch, patch=patch, into=into)
    if (recorded.task.kind == "write") == (handover.how in ("commit", "branch", "patch")) and elsewhere:
        wrote = "wrote new code" if recorded.task.kind == "write" else "mended code that is there"
        raise UsageError(f"run {recorded.folder.id} {wrote}, and cannot be handed over with --{handover.how}")
    require_deliverable(handover, recorded.project)
    walls: list[Sandbox] = []

    async def prepare(task: Task) -> Suite:
        known = recorded.settings
        walls.append(sandbox or open_sandbox(known.sandbox, keys=known.keys, cache=known.paths.cache))
        interpreter = recorded.interpreter or discover_programs(recorded.project, os.environ, task.language)
        packages = packages_of(task, known)
        return await prepare_suite(task, walls[-1], known.sandbox, interpreter, packages=packages)

    try:
        with Ledger(recorded.folder.ledger_path, SystemClock()) as ledger:
            healed = DeliverableRun(
                task=recorded.task,
                folder=recorded.folder,
                ledger=ledger,
                prepare=prepare,
                accepted=accepted_files(recorded.events),
            )
            await deliver(handover, result, recorded.project, healed)
    finally:
        for wall in walls:
            if wall is not sandbox:
                await wall.close()
    return recorded.folder


def _healed_result(recorded: RecordedRun) -> Result:
    run = recorded.folder
    if not recorded.own:
        raise UsageError(f"run {run.id} is not among your own runs", remedy="heal it here, then apply that")
    finished = last_of(recorded.events, RunFinished)
    if finished is None or finished.outcome != "healed":
        ended = f"ended as {finished.outcome}" if finished else "has not ended"
        raise UsageError(f"run {run.id} {ended}: there is nothing to apply", remedy=f"suture show {run.id}")
    if is_applied(recorded.events):
        raise UsageError(f"run {run.id} is applied already", remedy=f"take it back: suture undo {run.id}")
    return run.get_record(Result, finished.result)


def _last_healed(home: Path, here: Path) -> Path:
    for run in reversed(list_runs(home)):
        try:
            events = read_ledger(run.ledger_path).events
        except StorageError:  # one run's damage hides no other run
            continue
        started, finished = last_of(events, RunStarted), last_of(events, RunFinished)
        if started is None or finished is None or finished.outcome != "healed" or not started.project:
            continue
        project = Path(started.project).resolve()
        # Below a project's top one is still in the project; new code was written in just one folder.
        if here.resolve() == project or (started.kind == "heal" and here.resolve().is_relative_to(project)):
            return run.path
    raise UsageError("no run has healed this folder", remedy="suture history")


async def verify(
    certificate: str | Path,
    *,
    project: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> AsyncIterator[ReplayedClaim]:
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


def undo(run: str | None = None, *, settings: Settings | None = None) -> UndoResult:
    """Take back what a run changed; raises as `proof.undo_run` does.

    Args:
        run: An id, the unique start or end of one; where not given, the last run that
            changed the project around the current folder.
        settings: Whose runs; from environment and files where not given.
    """
    home = (settings or load_settings(Path.cwd(), looks=True).settings).paths.home
    return undo_run(find_applied_run(home, Path.cwd()) if run is None else find_run(home, run))
