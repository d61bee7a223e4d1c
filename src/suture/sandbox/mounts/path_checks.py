"""Where a path really leads, and whether a project's own files may choose that it is shown.

A project that nobody has read brings links along. What they lead to is found component by component, as the
kernel does it: `a/link/../b` is not `a/b`. What is shown is then the end of the way and never the way itself.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError
from suture.sandbox.tuning import MAX_CHECKED_ENTRIES, MAX_PROJECT_FILE_BYTES

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Programs and libraries of the machine; always shown."""
FLEETING = ("/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/var/tmp")
"""Where sockets of sessions, agents and services lie, and no installation does. Who works on a project that
lies in one of them has named it."""
REMEDY = "activate that environment, so that it is your choice and not its files', or make it anew"


def where(path: str | Path) -> Path:
    """As `Path.resolve`, also for a path that leads nowhere, in a ring or through a closed folder."""
    return Path(os.path.realpath(path))


def is_below(path: str, folder: str) -> bool:
    """Whether a plain path is a folder's, or the folder itself."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def in_system(path: str) -> bool:
    """Whether a path lies in a folder that is always shown."""
    return any(is_below(path, folder) for folder in SYSTEM_FOLDERS)


def real_path(path: Path) -> Path:
    """Where a path leads, every link of it followed.

    Raises:
        PrerequisiteError: It leads to nothing, or to what is neither a file nor a folder.
    """
    try:
        real = os.path.realpath(path, strict=True)
        mode = os.lstat(real).st_mode
    except OSError as fault:
        reason = os.strerror(fault.errno or 0)
        raise PrerequisiteError(f"{str(path)!r} cannot be shown: {reason}", remedy=REMEDY) from fault
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise PrerequisiteError(
            f"{str(path)!r} is neither a file nor a folder, and is not shown", remedy=REMEDY
        )
    return Path(real)


def require_plain(folder: Path) -> None:
    """See that there is nothing below a folder but files, folders and links: a socket answers through a wall.

    Looked for once in the life of this process, as it takes a moment.

    Raises:
        PrerequisiteError: There is something else.
    """
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        return
    found = _first_special(str(folder), facts.st_dev, facts.st_ino, facts.st_mtime_ns)
    if found:
        raise PrerequisiteError(f"{found} and would be shown behind the wall", remedy="remove it from there")


@lru_cache(maxsize=256)
def _first_special(folder: str, *_: int) -> str:
    for count, entry in enumerate(_entries(folder)):
        if count > MAX_CHECKED_ENTRIES:
            return f"{folder!r} holds more than {MAX_CHECKED_ENTRIES} files"
        if not (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
            return f"{entry.path!r} is a socket, a pipe or a device"
    return ""


def _entries(top: str) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder but folders."""
    waiting = [top]
    while waiting:
        with suppress(PermissionError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry


def require_installation(base: Path, library: str, project: Path) -> None:
    """See that a folder is a Python installation that a project's own files may choose.

    Args:
        base: Its prefix.
        library: Its standard library's folder, such as `python3.11`.
        project: The project.

    Raises:
        PrerequisiteError: It is not.
    """
    real, root = real_path(base), real_path(project)
    if in_system(str(real)) or str(real) == "/" or real.is_relative_to(root):
        return
    reason = _against(real, library, root)
    if reason:
        raise PrerequisiteError(
            f"the project's files choose the Python in {str(real)!r}, which {reason}", remedy=REMEDY
        )


def _against(real: Path, library: str, root: Path) -> str:
    """What speaks against showing parts of this folder."""
    for place in FLEETING:
        if is_below(str(real), place) and not is_below(str(root), place):
            return f"lies in {place}"
    if real.parent == Path("/home") or any(home.is_relative_to(real) for home in _homes(real)):
        return "is somebody's home"
    ours = {0, os.geteuid(), root.stat().st_uid}
    marks = [folder / library / "os.py" for folder in (real / "lib", real / "lib64")]
    known = [mark for mark in marks if os.path.isfile(mark)]  # noqa: PTH113 - Path.is_file may raise
    if not known:
        return "is no installation of Python"
    if any(path.stat().st_uid not in ours for path in (real, *known)):
        return "belongs to another user"
    return ""


def _homes(folder: Path) -> Iterator[Path]:
    yield from (where(os.path.expanduser("~")), Path("/root"))  # noqa: PTH111 - Path's raises without a home
    with suppress(KeyError):  # an owner without an account
        yield where(pwd.getpwuid(folder.stat().st_uid).pw_dir)


def read_little(path: Path) -> str:
    """The text of a small file of a project's; nothing where it is no plain file of text, or is not small.

    A project may put a pipe there, or a link to a device that never ends.
    """
    try:
        content = read_regular_file(path, MAX_PROJECT_FILE_BYTES, follow=True)
    except OSError:
        return ""
    if content is None or len(content) > MAX_PROJECT_FILE_BYTES:
        return ""
    text = content.decode("utf-8", "replace")
    return "" if "\0" in text else text  # no path has one, and the system would not take it
