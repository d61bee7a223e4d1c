"""Resolve paths, and decide whether a path chosen by a project's files may be mounted in the sandbox.

An untrusted project brings symbolic links. Their targets are resolved component by component, as the kernel
does: `a/link/../b` is not `a/b`. The sandbox then mounts the target and never the links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError
from suture.sandbox.tuning import MAX_CHECKED_ENTRIES, MAX_PROJECT_FILE_BYTES

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Programs and libraries of the machine, which are always mounted."""
RUNTIME_FOLDERS = ("/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/var/tmp")
"""Where sessions, agents and services keep their sockets, and where no installation lies. An installation in one
of them is mounted only if the project lies there too, because the user has named the project's folder."""
REMEDY = "activate that environment, so that you choose it and not the project's files, or create it again"
"""What the user can do if a project's environment cannot be mounted."""


def resolve_path(path: str | Path) -> Path:
    """Resolve a path as `Path.resolve` does, but do not raise for a loop or an unreadable folder."""
    return Path(os.path.realpath(path))


def is_below(path: str, folder: str) -> bool:
    """Return whether a normalized path is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_in_system_folder(path: str) -> bool:
    """Return whether a path lies in a folder that is always mounted."""
    return any(is_below(path, folder) for folder in SYSTEM_FOLDERS)


def resolve_existing_path(path: Path) -> Path:
    """Return where a path leads, with every link resolved.

    Raises:
        PrerequisiteError: It leads to nothing, or to something that is neither a file nor a folder.
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


def require_no_special_files(folder: Path) -> None:
    """Check that a folder contains only files, folders and links. A socket would answer through the sandbox.

    Raises:
        PrerequisiteError: It contains something else, or too many files to check.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):  # `resolve_existing_path` has checked a single file
        return
    special_file = _find_special_file(str(folder), status.st_dev, status.st_ino, status.st_mtime_ns)
    if special_file:
        raise PrerequisiteError(
            f"{special_file!r} is a socket, a pipe or a device and would be visible inside the sandbox",
            remedy="remove it",
        )


@lru_cache(maxsize=256)
def _find_special_file(folder: str, *folder_state: int) -> str:
    """Return the path of a file in a folder that is a socket, a pipe or a device; empty if there is none.

    The result is cached, because the check takes a moment.

    Args:
        folder_state: Identifies the state of the folder itself for the cache. A later change in a subfolder is not
            noticed.

    Raises:
        PrerequisiteError: The folder has too many files to look at each.
    """
    for count, entry in enumerate(_iterate_entries(folder)):
        if count > MAX_CHECKED_ENTRIES:
            raise PrerequisiteError(
                f"{folder!r} holds more than {MAX_CHECKED_ENTRIES} files, too many to check them for sockets",
                remedy="use an environment with fewer files",
            )
        if not (entry.is_symlink() or entry.is_file(follow_symlinks=False)):
            return entry.path
    return ""


def _iterate_entries(top: str) -> Iterator[os.DirEntry[str]]:
    """Yield every entry below a folder that is not a folder."""
    pending = [top]
    while pending:
        with suppress(PermissionError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    yield entry


def require_installation(base: Path, library: str, project: Path) -> None:
    """Check that the folder `base` is a Python installation that a project's own files may choose.

    Args:
        library: The name of its standard library folder, such as `python3.11`.

    Raises:
        PrerequisiteError: It is not.
    """
    real, root = resolve_existing_path(base), resolve_existing_path(project)
    # `/` is the base of `/bin/python3`. Of a base, only the parts that an interpreter needs are mounted.
    if is_in_system_folder(str(real)) or str(real) == "/" or real.is_relative_to(root):
        return
    reason = _find_objection(real, library, root)
    if reason:
        raise PrerequisiteError(
            f"the project's files name the Python in {str(real)!r}, which {reason}", remedy=REMEDY
        )


def _find_objection(real: Path, library: str, root: Path) -> str:
    """Return why parts of this folder must not be mounted; empty if they may be."""
    for folder in RUNTIME_FOLDERS:
        if is_below(str(real), folder) and not is_below(str(root), folder):
            return f"lies in {folder}"
    if real.parent == Path("/home") or any(home.is_relative_to(real) for home in _find_homes(real)):
        return "is a home folder"
    trusted_uids = {0, os.geteuid(), root.stat().st_uid}
    candidates = [real / name / library / "os.py" for name in ("lib", "lib64")]
    markers = [path for path in candidates if os.path.isfile(path)]  # noqa: PTH113 - Path.is_file may raise
    if not markers:
        return "is not a Python installation"
    if any(path.stat().st_uid not in trusted_uids for path in (real, *markers)):
        return "belongs to another user"
    return ""


def _find_homes(folder: Path) -> Iterator[Path]:
    yield resolve_path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises if there is no home
    yield Path("/root")
    with suppress(ImportError, KeyError):  # Windows has no such accounts; or the owner has none
        import pwd

        yield resolve_path(pwd.getpwuid(folder.stat().st_uid).pw_dir)


def read_small_text(path: Path) -> str:
    """Return the text of a small file of a project; empty if it is not a plain text file, or is not small.

    A project may put a pipe there, or a link to a device that never ends.
    """
    try:
        content = read_regular_file(path, MAX_PROJECT_FILE_BYTES, follow=True)
    except OSError:
        return ""
    # The reader returns one byte more than the limit if the file is larger.
    if content is None or len(content) > MAX_PROJECT_FILE_BYTES:
        return ""
    text = content.decode("utf-8", "replace")
    # Callers take paths from the text. The system rejects a path that contains NUL.
    return "" if "\0" in text else text
