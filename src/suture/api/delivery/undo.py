"""Take back what a run did to the user's tree or repository, unless the user has gone on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from suture.core.ledger import Event, Ledger, RunFolder, last_of, list_runs, read_ledger
from suture.core.ledger.kinds import (
    ApplyStarted,
    CommitMade,
    CommitStarted,
    RunFinished,
    RunStarted,
    TreeApplied,
    TreeUndone,
)
from suture.core.records import Result, Task
from suture.errors import StorageError, SutureError, UsageError
from suture.project.recorded_task import accepted_files
from suture.project.workspace import (
    apply_changes,
    land_on_head,
    open_repository,
    overlay,
    plan_commit,
    remove_empty_folders,
)

ALL_RUNS = "`suture history` lists the runs; undo takes the id of one"
"""What to do where nothing can be taken back."""


@dataclass(frozen=True, kw_only=True)
class _Standing:
    """What a run has done and nobody has taken back; what was begun counts too: a killed process may have
    done it.
    """

    applied: ApplyStarted | TreeApplied | None = None
    started: CommitStarted | None = None
    made: CommitMade | None = None

    @property
    def root(self) -> str:
        """The project's folder; empty where nothing stands."""
        done = self.made or self.started or self.applied
        return done.root if done else ""


@dataclass(frozen=True, kw_only=True)
class UndoResult:
    """What was taken back.

    Attributes:
        root: The project's folder.
        files: Files that are as they were before the run.
        commit: A commit that reverts the run's; empty where there was none to revert.
        branch: A branch that was deleted; empty where there was none.
    """

    root: str
    files: tuple[str, ...] = ()
    commit: str = ""
    branch: str = ""


def is_applied(events: tuple[Event, ...]) -> bool:
    """Whether a run has changed the user's tree or repository, and nobody has taken that back."""
    return bool(_standing(events).root)


def find_applied_run(home: Path, here: Path) -> RunFolder:
    """The last run that changed the project around a folder, where that has not been taken back.

    Raises:
        UsageError: No run has changed this folder, or all have been undone.
    """
    elsewhere: dict[str, str] = {}
    for run in reversed(list_runs(home)):
        try:
            standing = _standing(read_ledger(run.ledger_path).events)
        except StorageError:  # one run's damage hides no other run
            continue
        if not standing.root:
            continue
        if here.resolve().is_relative_to(Path(standing.root).resolve()):
            return run
        elsewhere.setdefault(run.id, standing.root)
    if elsewhere:
        newest, root = next(iter(elsewhere.items()))
        raise UsageError(
            f"no run has changed this folder; the last one that changed another is {newest}, in {root!r}",
            remedy=f"name it to take it back: suture undo {newest}",
        )
    raise UsageError(
        "there is nothing to undo: no run has changed your files, or all were taken back", remedy=ALL_RUNS
    )


def undo_run(run: RunFolder) -> UndoResult:
    """Take back what a run changed: files to the byte, a commit by another one, a branch by deleting it.

    Raises:
        UsageError: It changed nothing, was taken back before, or the user has changed the same files since.
        StorageError: Something could not be written; what was written before it was taken back.
    """
    standing = _standing(read_ledger(run.ledger_path).events)
    if not standing.root:
        raise UsageError(f"run {run.id} changed nothing of yours that is still there", remedy=ALL_RUNS)
    commit = standing.made or _landed(run, standing.started)
    with Ledger(run.ledger_path) as ledger:
        if commit is not None and commit.branch:
            done = _delete_branch(commit)
        elif standing.applied is not None:
            done = _take_back(run, standing.applied, commit)
        else:
            ledger.append(TreeUndone(root=standing.root, why="the branch was never made"))
            raise UsageError(f"run {run.id} was stopped before it changed anything of yours", remedy=ALL_RUNS)
        ledger.append(TreeUndone(**vars(done)))
    return done


def _standing(events: tuple[Event, ...]) -> _Standing:
    standing = _Standing()
    for event in events:
        match event.payload:
            case (ApplyStarted() | TreeApplied()) as applied:
                standing = replace(standing, applied=applied)
            case CommitStarted() as started:
                standing = replace(standing, started=started)
            case CommitMade() as made:
                standing = replace(standing, made=made)
            case TreeUndone():
                standing = _Standing()
    return standing


def _landed(run: RunFolder, started: CommitStarted | None) -> CommitMade | None:
    """The commit that a run began to make, where it is there; a killed process has not written it down."""
    if started is None:
        return None
    repository = open_repository(Path(started.root))
    name = f"refs/heads/{started.branch}" if started.branch else "HEAD"
    commit, parents, message = repository.commit(name)
    is_ours = parents == (started.parent,) and f"(run {run.id})" in message
    return CommitMade(**vars(started), commit=commit) if is_ours else None


def _take_back(run: RunFolder, applied: ApplyStarted | TreeApplied, commit: CommitMade | None) -> UndoResult:
    root, paths = Path(applied.root), applied.files
    before, after = (dict(_only(paths, files)) for files in _states(run, root))
    unknown = [path for path in paths if path not in before and path not in after]
    if unknown:
        raise StorageError(
            f"run {run.id} is damaged: it does not say what {unknown[0]!r} was; nothing was taken back"
        )
    found = {path: _found(root / path, before.get(path), after.get(path)) for path in paths}
    now = {path: content for path, content in found.items() if content is not None}
    plan = None
    if commit is not None:
        repository = open_repository(root)
        repository.require_quiet()
        plan = plan_commit(repository, after, before)
    try:
        apply_changes(root, now, before)
    except UsageError as fault:
        raise UsageError(
            f"{fault.message.partition(';')[0].replace('since the run started', 'since it was healed')};"
            " nothing was taken back",
            remedy=f"take it back by hand: patch -p1 < {applied.undo}",
        ) from fault
    if plan is None or commit is None:
        remove_empty_folders(root, applied.folders)
        return UndoResult(root=str(root), files=paths)
    try:
        reverted = land_on_head(plan, f"Revert a heal\n\nThis reverts commit {commit.commit}.\n")
    except SutureError:
        apply_changes(root, before, now)
        raise
    remove_empty_folders(root, applied.folders)
    return UndoResult(root=str(root), files=paths, commit=reverted)


def _found(target: Path, before: bytes | None, after: bytes | None) -> bytes | None:
    """A file as it is where the change did not come so far, else as it must be to be taken back."""
    if before is None:
        return after if target.exists() or target.is_symlink() else None
    try:
        return before if target.is_file() and target.read_bytes() == before else after
    except OSError:
        return after


def _states(run: RunFolder, root: Path) -> Iterator[Mapping[str, bytes]]:
    """The files in a folder before the run's change and after it."""
    events = read_ledger(run.ledger_path).events
    started, finished = last_of(events, RunStarted), last_of(events, RunFinished)
    if started is None or finished is None:
        raise StorageError(f"run {run.id} does not say what it changed")
    task = run.get_record(Task, started.task)
    result = run.get_record(Result, finished.result)
    adds = task.project is not None and not task.project.is_new
    elsewhere = adds and root.resolve() != Path(started.project).resolve()
    yield {} if elsewhere else task.given_files  # a whole project went there, with its feature
    changed = overlay(task.files, result.candidate.files if result.candidate else {})
    yield {**changed, **accepted_files(events)}


def _only(paths: tuple[str, ...], files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    return ((path, files[path]) for path in paths if path in files)


def _delete_branch(commit: CommitMade) -> UndoResult:
    name, made = commit.branch, commit.commit
    repository = open_repository(Path(commit.root))
    if repository.branch_commit(name) != made:
        raise UsageError(
            f"the branch {name!r} is no longer where the run left it; nothing was taken back",
            remedy=f"look at it: git log {name}",
        )
    if repository.is_checked_out(name):
        raise UsageError(
            f"the branch {name!r} is checked out; nothing was taken back",
            remedy="check out another one first",
        )
    repository.git("update-ref", "-d", f"refs/heads/{name}", made)
    return UndoResult(root=commit.root, branch=name)
