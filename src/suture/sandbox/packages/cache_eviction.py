"""Limit the disk space of cached packages: the least recently used sets are removed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from suture.sandbox.tuning import MAX_CACHED_PACKAGES_BYTES, PACKAGE_SET_IN_USE_S


def mark_used(set_folder: Path) -> None:
    """Mark a set as used. Call this before looking for the set, so that it is not removed meanwhile."""
    with suppress(OSError):
        os.utime(set_folder)


def evict_unused_sets(folder: Path, max_bytes: int = MAX_CACHED_PACKAGES_BYTES) -> None:
    """Remove the least recently used sets until the others take at most `max_bytes`.

    Sets that were used within a day stay, whatever their size. Unfinished sets of killed runs are removed
    too.

    Args:
        folder: The folder that has one folder for each set.
    """
    sets = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):  # another process is removing it
                    sets.append((entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)))
    remaining_bytes = max_bytes
    for _, set_folder in sorted(sets, reverse=True):
        remaining_bytes -= _size_bytes(set_folder)
        unfinished = set_folder.name.startswith(".")  # `.making-` of a killed run, `.gone-` of a removal
        if (remaining_bytes < 0 or unfinished) and _is_idle(set_folder):
            _remove(set_folder)


def _is_idle(set_folder: Path) -> bool:
    """Return whether nobody uses a set. Call this right before removing it: a run may have begun to use it."""
    try:
        return time.time() - set_folder.lstat().st_mtime > PACKAGE_SET_IN_USE_S
    except OSError:
        return False  # another process has removed it


def _size_bytes(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{parent}/{name}").st_size
    return size


def _remove(set_folder: Path) -> None:
    """Remove a set. It is renamed first, so that nobody finds half of it."""
    with suppress(OSError):
        trash = Path(tempfile.mkdtemp(prefix=".gone-", dir=set_folder.parent))
        with suppress(OSError):
            set_folder.rename(trash / "set")
        shutil.rmtree(trash, ignore_errors=True)
