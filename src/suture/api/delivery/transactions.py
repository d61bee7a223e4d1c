"""Changes of a project, one at a time: each is finished or reverted, even if its process is killed.

Each project that was changed has a file in the folder `changes` of the state folder. A process that changes the
project's files or repository holds a lock on it. Meanwhile it names the run, so that the next command finds what a
killed process has left. What that process had to do is in the run's ledger.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from suture.api.delivery.applied_change import (
    complete_commit,
    find_applied_change,
    find_unrecorded_commit,
    take_back,
)
from suture.core.file_locks import lock_file
from suture.core.ledger import Ledger, RunFolder, last_payload
from suture.core.ledger.event import Payload
from suture.core.ledger.kinds import ApplyStarted, TreeUndone
from suture.core.ledger.run_folder import PRIVATE_FOLDER_MODE
from suture.errors import StorageError, SutureError, UsageError
from suture.project.workspace import (
    RepositoryBusy,
    TreeNotReverted,
    remove_empty_folders,
    remove_partial_files,
)
from suture.project.workspace.git import INHERITED_DESCRIPTORS

LOCK_TIMEOUT_S = 10.0
"""Seconds to wait for another process: it writes a few files and one commit. Chosen by judgement; not measured."""
LOCK_POLL_S = 0.05
MAX_JOURNAL_BYTES = 4096
log = logging.getLogger("suture.api.delivery")

Act = Literal["apply", "undo"]
Finish = Callable[..., None]
"""Takes the events that complete an act; they are written when the `with` block ends."""


@contextlib.contextmanager
def project_change(run: RunFolder, root: Path, act: Act, ledger: Ledger) -> Iterator[Finish]:
    """Hold a project for one run, which changes it in the `with` block.

    The act is complete when the events that the block passes to the yielded function are in the ledger. If that fails
    or the block raises, what an `apply` has changed is reverted; but if its commit exists, the act is completed, and
    a `StorageError` of the block is dropped. An `undo` raises only before it changes anything. Files that could not be
    reverted are left to the next command.

    Raises:
        UsageError: Another process is changing the project, or an earlier change cannot be finished now.
        StorageError: The state folder cannot be written, or an earlier change cannot be finished.
    """
    with _open_journal(_journal_path(run.path.parent.parent, root), timeout_s=LOCK_TIMEOUT_S) as journal:
        _settle_interrupted(journal, ledger)
        journal.write(run.id, act)
        completing: list[Payload] = []
        try:
            yield lambda *events: completing.extend(events)
            ledger.append_all(completing)
        except BaseException as fault:
            if (act == "undo" and completing) or isinstance(fault, TreeNotReverted):
                raise  # it is done and not recorded, or half done; the next command finishes it
            with contextlib.suppress(SutureError, OSError):
                if act == "apply":
                    _settle(run, act, ledger)
                journal.clear()
            if act == "undo" or not isinstance(fault, StorageError) or not _is_complete(ledger):
                raise
        with contextlib.suppress(OSError):  # what remains is removed by the next command
            _remove_remains(run, ledger)
            journal.clear()


def recover_interrupted_changes(home: Path, folder: Path) -> list[TreeUndone]:
    """Finish or revert the changes that killed processes have left in the projects around a folder.

    Changes of running processes, and those that cannot be recovered at the moment, are left alone.

    Args:
        home: The state folder, as the setting `paths.home`.
        folder: The folder that a command is about.

    Returns:
        The event of each change that was reverted.
    """
    undone: list[TreeUndone] = []
    try:
        folder = Path(os.path.realpath(folder))
    except ValueError:  # a null byte; the command refuses it
        return []
    for root in (folder, *folder.parents):
        path = _journal_path(home, root)
        with contextlib.suppress(SutureError, OSError):
            if path.stat().st_size:
                with _open_journal(path, timeout_s=0) as journal:
                    undone.extend(_settle_interrupted(journal, None))
    return undone


def _journal_path(home: Path, root: Path) -> Path:
    return home / "changes" / hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]


@dataclass(frozen=True)
class _Journal:
    """The locked file of a project."""

    path: Path
    descriptor: int

    def read(self) -> tuple[RunFolder, Act] | None:
        """Return the run and the act that were not finished; `None` if there is none, or it changed nothing yet."""
        try:
            entry = json.loads(os.pread(self.descriptor, MAX_JOURNAL_BYTES, 0))
            run = RunFolder(self.path.parent.with_name("runs") / Path(str(entry["run"])).name)
            return (run, "undo" if entry["act"] == "undo" else "apply") if run.ledger_path.is_file() else None
        except (ValueError, TypeError, KeyError):  # a crash cut it off, before anything was changed
            return None

    def write(self, run_id: str, act: Act) -> None:
        try:
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps({"run": run_id, "act": act}).encode("ascii"), 0)
            os.fsync(self.descriptor)
        except OSError as fault:
            self.clear()
            raise StorageError(
                f"{str(self.path)!r} cannot be written: {fault.strerror}; nothing was changed",
                remedy="free some disk space, or set SUTURE_HOME to another disk",
            ) from fault

    def clear(self) -> None:
        with contextlib.suppress(OSError):  # the next command finds that nothing is left to do
            os.ftruncate(self.descriptor, 0)


@contextlib.contextmanager
def _open_journal(path: Path, *, timeout_s: float) -> Iterator[_Journal]:
    try:
        path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise StorageError(
            f"{str(path)!r} cannot be opened: {fault.strerror}; nothing was changed"
        ) from fault
    try:
        deadline_s = time.monotonic() + timeout_s
        while not _try_lock(descriptor):
            if time.monotonic() >= deadline_s:
                raise UsageError(
                    "another process is changing this project; nothing was changed",
                    remedy="wait for it to end",
                )
            time.sleep(LOCK_POLL_S)
        inherited = INHERITED_DESCRIPTORS.set((descriptor,))
        try:
            yield _Journal(path, descriptor)
        finally:
            INHERITED_DESCRIPTORS.reset(inherited)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        lock_file(descriptor)
    except BlockingIOError:
        return False
    except OSError as fault:
        raise StorageError(f"the project cannot be locked: {fault.strerror}; nothing was changed") from fault
    return True


def _settle_interrupted(journal: _Journal, own_ledger: Ledger | None) -> list[TreeUndone]:
    """Finish or revert what a killed process left; return the event if the change was reverted."""
    try:
        interrupted = journal.read()
        if interrupted is None:
            return []
        run, act = interrupted
        if own_ledger is not None and own_ledger.path == run.ledger_path:
            undone = _settle_and_report(run, act, own_ledger)
        else:
            with Ledger(run.ledger_path) as ledger:
                undone = _settle_and_report(run, act, ledger)
    except OSError as fault:
        raise StorageError(f"an interrupted change cannot be finished: {fault.strerror}") from fault
    journal.clear()
    return [undone] if undone is not None else []


def _settle_and_report(run: RunFolder, act: Act, ledger: Ledger) -> TreeUndone | None:
    count = len(ledger.events)
    try:
        undone = _settle(run, act, ledger)
    except RepositoryBusy:
        raise
    except UsageError:  # the user has changed the files since, and decides with `suture undo`
        return None
    if len(ledger.events) > count:
        ending = "taken back" if act == "apply" and undone is not None else "finished"
        log.warning("the %s of run %s was interrupted, and is %s now", act, run.id, ending)
    return undone


def _settle(run: RunFolder, act: Act, ledger: Ledger) -> TreeUndone | None:
    """Complete or revert an unfinished act; return its event if the change was reverted."""
    _remove_remains(run, ledger)
    change = find_applied_change(ledger.events)
    if not change.root or (act == "apply" and change.is_complete):
        return None
    commit = find_unrecorded_commit(run, change) if act == "apply" else None
    if commit is not None:
        ledger.append_all(complete_commit(run, ledger.events, commit))
        return None
    undone = take_back(run, ledger.events)
    if act == "apply":
        undone = replace(undone, reason=undone.reason or "the change was interrupted")
    ledger.append(undone)
    return undone


def _is_complete(ledger: Ledger) -> bool:
    change = find_applied_change(ledger.events)
    return bool(change.root) and change.is_complete


def _remove_remains(run: RunFolder, ledger: Ledger) -> None:
    """Remove the temporary files of a run's last change, and if it is not applied, the empty folders that it made."""
    started = last_payload(ledger.events, ApplyStarted)
    if started is None:
        return
    remove_partial_files(Path(started.root), started.files, label=run.id)
    if not find_applied_change(ledger.events).root:
        remove_empty_folders(Path(started.root), started.folders)
