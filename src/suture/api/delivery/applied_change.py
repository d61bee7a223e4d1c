"""What a run has changed in the user's tree or repository, by its ledger, and how that is reverted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from suture.core.ledger import Event, RunFolder, last_payload
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
    CommitPlan,
    RepositoryBusy,
    apply_changes,
    commit_on_head,
    open_repository,
    overlay_candidate,
    plan_commit,
    remove_empty_folders,
    restage,
)


@dataclass(frozen=True, kw_only=True)
class AppliedChange:
    """The latest events of the changes that a run has made and that were not undone.

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

    @property
    def is_complete(self) -> bool:
        """Return whether the ledger says that everything was done that was started."""
        has_commit = self.commit is not None or self.commit_start is None
        return has_commit and not isinstance(self.apply, ApplyStarted)


def find_applied_change(events: tuple[Event, ...]) -> AppliedChange:
    """Return what a run with these events has changed."""
    change = AppliedChange()
    for event in events:
        match event.payload:
            case (ApplyStarted() | TreeApplied()) as apply:
                change = replace(change, apply=apply)
            case CommitStarted() as commit_start:
                change = replace(change, commit_start=commit_start)
            case CommitMade() as commit:
                change = replace(change, commit=commit)
            case TreeUndone():
                change = AppliedChange()
    return change


def find_undone_root(events: tuple[Event, ...]) -> str:
    """Return the project's folder of the last change that a run made and that was undone; empty without one."""
    undone_at = max((n for n, event in enumerate(events) if isinstance(event.payload, TreeUndone)), default=0)
    return find_applied_change(events[:undone_at]).root


def find_unrecorded_commit(run: RunFolder, change: AppliedChange) -> CommitMade | None:
    """Return the commit that a run started to make, if it exists: a killed process has not recorded it."""
    started = change.commit_start
    if started is None or change.commit is not None:
        return None
    repository = open_repository(Path(started.root))
    reference = f"refs/heads/{started.branch}" if started.branch else "HEAD"
    for commit in repository.find_commits(f"{started.parent}..{reference}", f"(run {run.id})"):
        if repository.commit(commit)[1] == (started.parent,):
            return CommitMade(root=started.root, parent=started.parent, branch=started.branch, commit=commit)
    return None


def take_back(run: RunFolder, events: tuple[Event, ...]) -> TreeUndone:
    """Undo what a run changed, and return the event for its ledger.

    The event has a reason if there was nothing left to undo.

    Raises:
        UsageError: The user has changed the same files since, or the commit is not in what is checked out.
        StorageError: Something could not be written; what was written before was reverted.
    """
    change = find_applied_change(events)
    commit = change.commit or find_unrecorded_commit(run, change)
    if commit is not None and commit.branch:
        return _delete_branch(commit)
    if change.apply is not None:
        return _restore_files(run, events, change.apply, commit)
    return TreeUndone(root=change.root, reason="the process was stopped before it changed anything of yours")


def complete_commit(
    run: RunFolder, events: tuple[Event, ...], commit: CommitMade
) -> tuple[TreeApplied | CommitMade, ...]:
    """Finish what follows a commit of a killed process, and return the events for the ledger."""
    applied = find_applied_change(events).apply
    if applied is None:
        return (commit,)
    before, after = _load_changed_files(run, events, applied)
    restage(plan_commit(open_repository(Path(applied.root)), before, after, parent=commit.parent))
    return (TreeApplied(**vars(applied)), commit)


def _restore_files(
    run: RunFolder, events: tuple[Event, ...], applied: ApplyStarted | TreeApplied, commit: CommitMade | None
) -> TreeUndone:
    """Restore the files that a run wrote, and revert its commit if there is one: both, or nothing."""
    root, paths = Path(applied.root), applied.files
    before, after = _load_changed_files(run, events, applied)
    expected = {path: _expected_content(root / path, before.get(path), after.get(path)) for path in paths}
    current = {path: content for path, content in expected.items() if content is not None}
    plan = _plan_revert(commit, before, after) if commit is not None else None
    if current == before and commit is not None and plan is None:
        remove_empty_folders(root, applied.folders)
        return TreeUndone(
            root=str(root), reason="neither your files nor what is checked out contain it any more"
        )
    if isinstance(applied, ApplyStarted) and current != before and not _holds_any(root, before, after):
        return TreeUndone(
            root=str(root), reason="the process was stopped before it changed anything of yours"
        )
    try:
        apply_changes(root, current, before, label=run.id)
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
            apply_changes(root, before, current, label=run.id)
            raise
    remove_empty_folders(root, applied.folders)
    return TreeUndone(root=str(root), files=paths, commit=revert_commit)


def _plan_revert(
    commit: CommitMade, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> CommitPlan | None:
    """Return the commit that reverts a run's commit; `None` if what is checked out does not contain the change.

    Raises:
        RepositoryBusy: The commit is on another branch, or an operation of git is in progress.
        UsageError: The user has changed the same lines since.
    """
    repository = open_repository(Path(commit.root))
    if not repository.is_in_history(commit.commit):
        references = repository.branches_with(commit.commit)
        if references:
            branches = [reference.split("/", 2)[2] for reference in references]
            detach = "" if references[0].startswith("refs/heads/") else "--detach "
            raise RepositoryBusy(
                f"the change is not in what is checked out: its commit {commit.commit[:12]} is on"
                f" {' and '.join(map(repr, branches[:3]))}; nothing was undone",
                remedy=f"check that out first: git switch {detach}{branches[0]}",
            )
        return None
    repository.require_quiet()
    _, parents, message = repository.commit("HEAD")
    if f"This reverts commit {commit.commit}" in message:
        # By the user, or by an undo that was killed after this commit and perhaps before it wrote the index.
        restage(plan_commit(repository, after, before, parent=parents[0]))
        return None
    plan = plan_commit(repository, after, before)
    return plan if plan.changes_tree else None


def _holds_any(root: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Return whether a file of a change has its new content, or is deleted by it."""
    for path in {*before, *after}:
        target, new = root / path, after.get(path)
        try:
            if (target.read_bytes() if target.is_file() else None) == new:
                return True
        except OSError:
            return True
    return False


def _expected_content(target: Path, before: bytes | None, after: bytes | None) -> bytes | None:
    """Return what a file must hold to be restored: the old content if the change never reached it."""
    try:
        if before is None:
            return after if target.exists() or target.is_symlink() else None
        return before if target.is_file() and target.read_bytes() == before else after
    except OSError:
        return after


def _load_changed_files(
    run: RunFolder, events: tuple[Event, ...], applied: ApplyStarted | TreeApplied
) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """Return `(before, after)`: the changed files (path -> content) before and after the run's change."""
    started, finished = last_payload(events, RunStarted), last_payload(events, RunFinished)
    if started is None or finished is None:
        raise StorageError(f"run {run.id} does not say what it changed")
    task = run.load_record(Task, started.task)
    result = run.load_record(Result, finished.result)
    extends_project = task.project is not None and not task.project.is_new
    # With a feature of an existing project, the whole project went into another folder.
    is_copy = extends_project and Path(applied.root).resolve() != Path(started.project).resolve()
    before = {} if is_copy else task.given_files
    after = overlay_candidate(task.files, result.candidate.files if result.candidate else {})
    after = {**after, **get_accepted_files(events)}
    unknown = [path for path in applied.files if path not in before and path not in after]
    if unknown:
        raise StorageError(
            f"run {run.id} is damaged: it does not say what {unknown[0]!r} was; nothing was undone"
        )
    old, new = ({path: files[path] for path in applied.files if path in files} for files in (before, after))
    return old, new


def _delete_branch(commit: CommitMade) -> TreeUndone:
    name = commit.branch
    repository = open_repository(Path(commit.root))
    current = repository.branch_commit(name)
    if not current:
        return TreeUndone(root=commit.root, reason=f"the branch {name!r} is deleted already")
    if current != commit.commit:
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
