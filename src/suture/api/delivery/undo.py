"""Undo what a run did to the user's tree or repository, unless the user has changed the same files since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from suture.core.ledger import Event, Ledger, RunFolder, last_payload, list_runs, read_ledger
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
from suture.project.recorded_task import get_accepted_files
from suture.project.workspace import (
    apply_changes,
    commit_on_head,
    open_repository,
    overlay_candidate,
    plan_commit,
    remove_empty_folders,
)

LIST_RUNS_REMEDY = "`suture history` lists the runs; undo takes the id of one"


@dataclass(frozen=True, kw_only=True)
class _AppliedChange:
    """The latest events of the changes that a run has made and nobody has undone.

    A change that only started counts too, because a killed process may have made it.
    """

    apply: ApplyStarted | TreeApplied | None = None
    commit_start: CommitStarted | None = None
    commit: CommitMade | None = None

    @property
    def root(self) -> str:
        """Return the project's folder; empty if there is no change."""
        event = self.commit or self.commit_start or self.apply
        return event.root if event else ""


def is_applied(events: tuple[Event, ...]) -> bool:
    """Return whether a run has changed the user's tree or repository, and nobody has undone that."""
    return bool(_find_applied_change(events).root)


def find_applied_run(home: Path, folder: Path) -> RunFolder:
    """Return the last run that changed the project around a folder and was not undone, or raise a `UsageError`."""
    other_folders: dict[str, str] = {}
    for run in reversed(list_runs(home)):
        try:
            change = _find_applied_change(read_ledger(run.ledger_path).events)
        except StorageError:  # A damaged run must not hide the others.
            continue
        if not change.root:
            continue
        if folder.resolve().is_relative_to(Path(change.root).resolve()):
            return run
        other_folders.setdefault(run.id, change.root)
    if other_folders:
        newest, root = next(iter(other_folders.items()))
        raise UsageError(
            f"no run has changed this folder; the last one that changed another is {newest}, in {root!r}",
            remedy=f"name it to undo it: suture undo {newest}",
        )
    raise UsageError(
        "there is nothing to undo: no run has changed your files, or all were undone",
        remedy=LIST_RUNS_REMEDY,
    )


def undo_run(run: RunFolder) -> TreeUndone:
    """Undo what a run changed: files byte by byte, a commit by another commit, a branch by deleting it.

    It returns the event that the run's ledger records.

    Raises:
        UsageError: The run changed nothing, was undone before, or the user has changed the same files since.
        StorageError: Something could not be written; what was written before was reverted.
    """
    change = _find_applied_change(read_ledger(run.ledger_path).events)
    if not change.root:
        raise UsageError(
            f"run {run.id} changed nothing of yours that is still there", remedy=LIST_RUNS_REMEDY
        )
    commit = change.commit or _find_unrecorded_commit(run, change.commit_start)
    with Ledger(run.ledger_path) as ledger:
        if commit is not None and commit.branch:
            undone = _delete_branch(commit)
        elif change.apply is not None:
            undone = _restore_files(run, change.apply, commit)
        else:
            ledger.append(TreeUndone(root=change.root, reason="the branch was never made"))
            raise UsageError(
                f"run {run.id} was stopped before it changed anything of yours", remedy=LIST_RUNS_REMEDY
            )
        ledger.append(undone)
    return undone


def _find_applied_change(events: tuple[Event, ...]) -> _AppliedChange:
    change = _AppliedChange()
    for event in events:
        match event.payload:
            case (ApplyStarted() | TreeApplied()) as apply:
                change = replace(change, apply=apply)
            case CommitStarted() as commit_start:
                change = replace(change, commit_start=commit_start)
            case CommitMade() as commit:
                change = replace(change, commit=commit)
            case TreeUndone():
                change = _AppliedChange()
    return change


def _find_unrecorded_commit(run: RunFolder, started: CommitStarted | None) -> CommitMade | None:
    """Return the commit that a run started to make, if it exists: a killed process has not recorded it."""
    if started is None:
        return None
    repository = open_repository(Path(started.root))
    reference = f"refs/heads/{started.branch}" if started.branch else "HEAD"
    commit, parents, message = repository.commit(reference)
    if parents != (started.parent,) or f"(run {run.id})" not in message:
        return None
    return CommitMade(root=started.root, parent=started.parent, branch=started.branch, commit=commit)


def _restore_files(
    run: RunFolder, applied: ApplyStarted | TreeApplied, commit: CommitMade | None
) -> TreeUndone:
    """Restore the files that a run wrote, and revert its commit if there is one: both, or nothing."""
    root, paths = Path(applied.root), applied.files
    before, after = (
        {path: files[path] for path in paths if path in files} for files in _load_file_states(run, root)
    )
    unknown = [path for path in paths if path not in before and path not in after]
    if unknown:
        raise StorageError(
            f"run {run.id} is damaged: it does not say what {unknown[0]!r} was; nothing was undone"
        )
    expected = {path: _expected_content(root / path, before.get(path), after.get(path)) for path in paths}
    current = {path: content for path, content in expected.items() if content is not None}
    plan = None
    if commit is not None:
        repository = open_repository(root)
        repository.require_quiet()
        plan = plan_commit(repository, after, before)
    try:
        apply_changes(root, current, before)
    except UsageError as fault:
        raise UsageError(
            f"nothing was undone: {fault.message}",
            remedy=f"undo it by hand: patch -p1 < {applied.undo}",
        ) from fault
    revert_commit = ""
    if plan is not None and commit is not None:
        try:
            revert_commit = commit_on_head(plan, f"Revert a heal\n\nThis reverts commit {commit.commit}.\n")
        except SutureError:
            apply_changes(root, before, current)
            raise
    remove_empty_folders(root, applied.folders)
    return TreeUndone(root=str(root), files=paths, commit=revert_commit)


def _expected_content(target: Path, before: bytes | None, after: bytes | None) -> bytes | None:
    """Return what a file must hold to be restored: the old content if the change never reached it."""
    if before is None:
        return after if target.exists() or target.is_symlink() else None
    try:
        return before if target.is_file() and target.read_bytes() == before else after
    except OSError:
        return after


def _load_file_states(run: RunFolder, root: Path) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """Return `(before, after)`: the files (path -> content) in a folder before and after the run's change."""
    events = read_ledger(run.ledger_path).events
    started, finished = last_payload(events, RunStarted), last_payload(events, RunFinished)
    if started is None or finished is None:
        raise StorageError(f"run {run.id} does not say what it changed")
    task = run.load_record(Task, started.task)
    result = run.load_record(Result, finished.result)
    extends_project = task.project is not None and not task.project.is_new
    # With a feature of an existing project, the whole project went into another folder.
    is_copy = extends_project and root.resolve() != Path(started.project).resolve()
    before = {} if is_copy else task.given_files
    after = overlay_candidate(task.files, result.candidate.files if result.candidate else {})
    return before, {**after, **get_accepted_files(events)}


def _delete_branch(commit: CommitMade) -> TreeUndone:
    name = commit.branch
    repository = open_repository(Path(commit.root))
    if repository.branch_commit(name) != commit.commit:
        raise UsageError(
            f"the branch {name!r} is no longer where the run left it; nothing was undone",
            remedy=f"look at it: git log {name}",
        )
    if repository.is_checked_out(name):
        raise UsageError(
            f"the branch {name!r} is checked out; nothing was undone", remedy="check out another one first"
        )
    repository.git("update-ref", "-d", f"refs/heads/{name}", commit.commit)
    return TreeUndone(root=commit.root, branch=name)
