"""Undo what a run did to the user's tree or repository, unless the user has changed the same files since."""

from __future__ import annotations

from pathlib import Path

from suture.api.delivery.applied_change import find_applied_change, find_undone_root, take_back
from suture.api.delivery.transactions import project_change, recover_interrupted_changes
from suture.core.ledger import Ledger, RunFolder, find_run, last_payload, list_runs, read_ledger
from suture.core.ledger.kinds import TreeUndone
from suture.errors import StorageError, UsageError

LIST_RUNS_REMEDY = "`suture history` lists the runs; undo takes the id of one"


def undo_run(home: Path, name: str | None = None) -> TreeUndone:
    """Undo what a run changed: files byte by byte, a commit by another commit, a branch by deleting it.

    It returns the event that the run's ledger records.

    Args:
        home: The state folder, as the setting `paths.home`.
        name: An id, or the unique start or end of one; by default the last run that changed the project around the
            current folder.

    Raises:
        UsageError: The run changed nothing, was undone before, or the user has changed the same files since.
        StorageError: Something could not be written; what was written before was reverted.
    """
    if name is None and (recovered := recover_interrupted_changes(home, Path.cwd())):
        return recovered[-1]
    run = _find_applied_run(home) if name is None else find_run(home, name)
    with Ledger(run.ledger_path) as ledger:  # from here on, no other process changes what the ledger says
        change = find_applied_change(ledger.events)
        if not change.root:
            raise UsageError(
                f"run {run.id} changed nothing of yours that is still there", remedy=LIST_RUNS_REMEDY
            )
        with project_change(run, Path(change.root), "undo", ledger) as finish:
            settled = last_payload(ledger.events, TreeUndone)
            if settled is not None and not find_applied_change(ledger.events).root:
                return settled  # the change was interrupted, and `project_change` has reverted it
            undone = take_back(run, ledger.events)
            finish(undone)
    if undone.reason:
        raise UsageError(
            f"there is nothing to undo of the change of run {run.id}: {undone.reason}",
            remedy=LIST_RUNS_REMEDY,
        )
    return undone


def _is_around(root: str) -> bool:
    """Return whether the current folder is in a project."""
    return Path.cwd().resolve().is_relative_to(Path(root).resolve())


def _find_applied_run(home: Path) -> RunFolder:
    """Return the last run that changed the project around the current folder and was not undone."""
    other_folders: dict[str, str] = {}
    undone_here = ""
    for run in reversed(list_runs(home)):
        try:
            events = read_ledger(run.ledger_path).events
        except StorageError:  # A damaged run must not hide the others.
            continue
        change = find_applied_change(events)
        if not change.root:
            undone_root = find_undone_root(events)
            if not undone_here and undone_root and _is_around(undone_root):
                undone_here = run.id
            continue
        if _is_around(change.root):
            return run
        other_folders.setdefault(run.id, change.root)
    if undone_here:
        raise UsageError(
            f"there is nothing to undo: the change that run {undone_here} made in this folder was undone already",
            remedy=f"apply it again with `suture apply {undone_here}`; {LIST_RUNS_REMEDY}",
        )
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
