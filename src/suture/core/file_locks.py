"""Locks between processes. The system releases a lock when its file is closed, also by a crash."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from suture.errors import PrerequisiteError


def lock_file(file: int | IO[Any], *, shared: bool = False, waits: bool = False) -> None:
    """Lock an open file or folder against other processes until it is closed.

    Args:
        file: The file, or its descriptor.
        shared: Whether other processes may have a shared lock on it, too.
        waits: Whether to wait until no other process has a lock that excludes this one.

    Raises:
        BlockingIOError: Another process has such a lock.
        OSError: The file cannot be locked.
        PrerequisiteError: This system has no such locks.
    """
    try:
        import fcntl  # Here, so that what needs no lock, such as `suture --help`, also starts on Windows.
    except ImportError as fault:
        raise PrerequisiteError(
            "this system has no file locks that end with their process",
            remedy="on Windows, run Suture in WSL 2 or in a container (docs/sandbox.md)",
        ) from fault
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))


def is_locked(path: Path) -> bool:
    """Return whether a process has locked a file against others, such as the ledger that it writes.

    Raises:
        OSError: The file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            lock_file(file, shared=True)
        except OSError:
            return True
    return False
