"""The most that fetched packages take of the disk: what was used least recently makes room."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from suture.sandbox.tuning import MAX_CACHED_PACKAGES_BYTES, PACKAGE_SET_IN_USE_S


def note_use(place: Path) -> None:
    """Note that a set is used, before it is looked for, so that it is not removed meanwhile."""
    with suppress(OSError):
        os.utime(place)


def make_room(folder: Path, most_bytes: int = MAX_CACHED_PACKAGES_BYTES) -> None:
    """Remove the sets that were used least recently, until the others take at most `most_bytes`.

    What was used within a day stays, whatever it takes; what a killed run was making goes too.

    Args:
        folder: The folder with one folder for each set.
        most_bytes: Of all of them.
    """
    sets = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):  # somebody else removes it
                    sets.append((entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)))
    left_bytes = most_bytes
    for _, place in sorted(sets, reverse=True):
        left_bytes -= _size_bytes(place)
        unfinished = place.name.startswith(".")
        if (left_bytes < 0 or unfinished) and _is_idle(place):
            _remove(place)


def _is_idle(place: Path) -> bool:
    """Asked at the last moment: adding up takes a while, in which a run may have begun to use it."""
    try:
        return time.time() - place.lstat().st_mtime > PACKAGE_SET_IN_USE_S
    except OSError:
        return False  # somebody else removed it


def _size_bytes(folder: Path) -> int:
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{parent}/{name}").st_size
    return size


def _remove(place: Path) -> None:
    """Under another name first: nobody may find half of it."""
    with suppress(OSError):
        gone = Path(tempfile.mkdtemp(prefix=".gone-", dir=place.parent))
        with suppress(OSError):
            place.rename(gone / "set")
        shutil.rmtree(gone, ignore_errors=True)
