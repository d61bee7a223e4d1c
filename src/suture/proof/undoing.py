"""Take back what a run did to the user's tree or repository, unless the user has gone on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.errors import SutureError, UsageError
from suture.ledger import Ledger, RunFolder, list_runs, read_ledger
from suture.records import Event, Result, Task, from_plain
from suture.workspace import apply_changes, land_on_head, open_repository, overlay, plan_commit

__all__ = ["Undone", "find_applied_run", "undo_run"]

DONE = ("apply.started", "tree.applied", "commit.started", "commit.made")
"""What was begun counts too: a process that was killed may have done it."""
TAKEN_BACK = "tree.undone"


@dataclass(frozen=True, kw_only=True)
class Undone:
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


def find_applied_run(home: Path, here: Path) -> RunFolder:
    """The last run that changed the project around a folder, where that has not been taken back.

    Args:
        home: Where runs are.
        here: A project's folder, or one in it.

    Raises:
        UsageError: There is none.
    """
    elsewhere: dict[str, Any] = {}
    for run in reversed(list_runs(home)):
        standing = _standing(read_ledger(run.ledger_path).events)
        for root in {str(data["root"]) for data in standing.values()}:
            if here.resolve().is_relative_to(Path(root).resolve()):
                return run
            elsewhere.setdefault(run.id, root)
    if elsewhere:
        newest, root = next(iter(elsewhere.items()))
        raise UsageError(
            f"no run has changed this folder; the last one that changed another is {newest}, in {root!r}",
            remedy=f"name it to take it back: suture undo {newest}",
        )
    raise UsageError("there is nothing to undo: no run has changed your files, or all were taken back")


def undo_run(run: RunFolder) -> Undone:
    """Take back what a run changed: files to the byte, a commit by another one, a branch by deleting it.

    Raises:
        UsageError: It changed nothing, was taken back before, or the user has changed the same files since.
        StorageError: Something could not be written; what was written before it was taken back.
    """
    standing = _standing(read_ledger(run.ledger_path).events)
    if not standing:
        raise UsageError(f"run {run.id} changed nothing of yours that is still there")
    commit = standing.get("commit.made") or _landed(run, standing.get("commit.started", {}))
    with Ledger(run.ledger_path) as ledger:
        if commit.get("branch"):
            done = _delete_branch(commit)
        elif applied := standing.get("tree.applied") or standing.get("apply.started"):
            done = _take_back(run, applied, commit)
        else:
            ledger.append(
                TAKEN_BACK, {"root": standing["commit.started"]["root"], "why": "the branch was never made"}
            )
            raise UsageError(f"run {run.id} was stopped before it changed anything of yours")
        ledger.append(TAKEN_BACK, {**vars(done), "files": list(done.files)})
    return done


def _standing(events: tuple[Event, ...]) -> dict[str, Mapping[str, Any]]:
    """Kind -> data of what a run has done and nobody has taken back."""
    found: dict[str, Mapping[str, Any]] = {}
    for event in events:
        if event.kind in DONE:
            found[event.kind] = event.data
        elif event.kind == TAKEN_BACK:
            found.clear()
    return found


def _landed(run: RunFolder, started: Mapping[str, Any]) -> Mapping[str, Any]:
    """The commit that a run began to make, where it is there; a killed process has not written it down."""
    if not started:
        return {}
    repository = open_repository(Path(started["root"]))
    name = f"refs/heads/{started['branch']}" if started["branch"] else "HEAD"
    commit, parents, message = repository.commit(name)
    is_ours = parents == (started["parent"],) and f"(run {run.id})" in message
    return {**started, "commit": commit} if is_ours else {}


def _take_back(run: RunFolder, applied: Mapping[str, Any], commit: Mapping[str, Any]) -> Undone:
    root, paths = Path(applied["root"]), tuple(applied["files"])
    before, after = (dict(_only(paths, files)) for files in _states(run))
    found = {path: _found(root / path, before.get(path), after.get(path)) for path in paths}
    now = {path: content for path, content in found.items() if content is not None}
    plan = None
    if commit:
        repository = open_repository(root)
        repository.require_quiet()
        plan = plan_commit(repository, after, before)
    try:
        apply_changes(root, now, before)
    except UsageError as fault:
        raise UsageError(
            f"{fault.message.partition(';')[0].replace('since the run started', 'since it was healed')};"
            " nothing was taken back",
            remedy=f"take it back by hand: patch -p1 < {applied['undo']}",
        ) from fault
    if plan is None:
        return Undone(root=str(root), files=paths)
    try:
        reverted = land_on_head(plan, f"Revert a heal\n\nThis reverts commit {commit['commit']}.\n")
    except SutureError:
        apply_changes(root, before, now)
        raise
    return Undone(root=str(root), files=paths, commit=reverted)


def _found(target: Path, before: bytes | None, after: bytes | None) -> bytes | None:
    """A file as it is where the change did not come so far, else as it must be to be taken back."""
    if before is None:
        return after if target.exists() or target.is_symlink() else None
    try:
        return before if target.is_file() and target.read_bytes() == before else after
    except OSError:
        return after


def _states(run: RunFolder) -> Iterator[Mapping[str, bytes]]:
    """The project's files before the run's change and after it."""
    events = read_ledger(run.ledger_path).events
    task = from_plain(Task, run.get_json(_data(events, "run.started")["task"]))
    result = from_plain(Result, run.get_json(_data(events, "run.finished")["result"]))
    yield task.files
    yield overlay(task.files, result.candidate.files if result.candidate else {})


def _only(paths: tuple[str, ...], files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    return ((path, files[path]) for path in paths if path in files)


def _data(events: tuple[Event, ...], kind: str) -> Mapping[str, Any]:
    return next(event.data for event in reversed(events) if event.kind == kind)


def _delete_branch(commit: Mapping[str, Any]) -> Undone:
    name, made = commit["branch"], commit["commit"]
    repository = open_repository(Path(commit["root"]))
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
    return Undone(root=commit["root"], branch=name)
