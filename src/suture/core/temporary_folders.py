"""Temporary folders that are removed even if their process is killed.

A folder is locked as long as its process lives. The process that makes the next one of the same kind first removes
those that no process holds. A process id in the name would not do: processes of other containers may use the same
folder. Locks of a shared file system may be unknown to other machines, so the name says which machine holds the folder.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from suture.core.file_locks import lock_file
from suture.errors import StorageError

__all__ = ["temporary_folder"]
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Linux's name for the running kernel; all containers of a machine share both the kernel and its locks."""


@contextlib.contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make an empty folder that is removed with everything in it when the `with` block ends.

    Args:
        prefix: The start of the folder's name, which says what it is for.
        parent: The folder to make it in; by default the system's for temporary files.

    Raises:
        StorageError: The folder cannot be made.
    """
    parent = parent or Path(tempfile.gettempdir())
    _remove_abandoned(parent, prefix)
    try:
        folder, descriptor = _make_locked(parent, prefix)
    except OSError as fault:
        raise StorageError(
            f"no temporary folder can be made in {str(parent)!r}: {fault.strerror or fault}",
            remedy="free space and files there, or let the variable TMPDIR name another folder",
        ) from fault
    try:
        yield Path(folder.name)
    finally:
        folder.cleanup()
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _make_locked(parent: Path, prefix: str) -> tuple[tempfile.TemporaryDirectory[str], int]:
    """Make a folder and lock it; return it with the descriptor that holds the lock."""
    while True:
        folder = tempfile.TemporaryDirectory(folder_suffix(), prefix, parent, ignore_cleanup_errors=True)
        try:
            descriptor = _open_folder(folder.name)
        except OSError:
            folder.cleanup()
            raise
        if descriptor is not None and _lock_new_folder(descriptor) and Path(folder.name).exists():
            return folder, descriptor
        # Another process has taken the folder for an abandoned one before it was locked.
        folder.cleanup()
        if descriptor is not None:
            os.close(descriptor)


@functools.cache
def folder_suffix() -> str:
    """Return the end of the names of this machine's folders."""
    try:
        machine = BOOT_ID.read_text("ascii")[:8]
    except OSError:
        machine = os.uname().nodename
    return f".{machine}.locked"


def _lock_new_folder(descriptor: int) -> bool:
    """Lock a folder that was just made; return false if another process locked it first."""
    try:
        return _try_lock(descriptor)
    except OSError:
        return True  # a file system without locks, where no folder is taken for an abandoned one


def _remove_abandoned(parent: Path, prefix: str) -> None:
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not (entry.name.startswith(prefix) and entry.name.endswith(folder_suffix())):
                continue
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    descriptor = _open_folder(path)
    if descriptor is None:
        return
    try:
        if _try_lock(descriptor):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _open_folder(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _try_lock(descriptor: int) -> bool:
    try:
        lock_file(descriptor)
    except BlockingIOError:
        return False
    return True
