"""Read files that a stranger may have prepared, and write files completely or not at all.

Reading never blocks, and never reads more than a limit: a stranger's file may be a pipe, a device or endless.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from suture.errors import StorageError, UsageError, describe_fault

NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG)
"""Errors of `open` for a path at which there is nothing, or a link, a socket or a device without a driver."""
# Windows lacks these flags, and files that would need them.
O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: opening a pipe must not wait for its other end.
READ_FLAGS: int = os.O_RDONLY | O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""How a file that a stranger may have prepared is opened for reading."""
PRIVATE_FILE_MODE = 0o600
"""Mode of a file that only its owner may read."""
LONG_KEY = re.compile(
    r"""(?:(?:(?<![\w-])[\w-]+|(?<!\\)"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){32}""", re.ASCII
)
"""A TOML key of 32 or more parts. `tomllib` needs time quadratic in the number of parts.

The pattern never starts at an escaped quote: searching the end of each would take quadratic time, too.
"""


def read_regular_file(path: Path, max_bytes: int, *, follow: bool = False) -> bytes | None:
    """Return the content of a regular file, or `None` if there is none. A link counts as none.

    Args:
        max_bytes: Max number of bytes that the caller accepts. Of a longer file, `max_bytes + 1` bytes are
            returned, so that the caller can tell that it is too long.
        follow: Whether to follow a link. It must lead to a regular file.

    Raises:
        OSError: The file exists and cannot be read.
    """
    file = open_regular_file(path, follow=follow)
    if file is None:
        return None
    with file:
        return file.read(max_bytes + 1)


def open_regular_file(path: Path, *, follow: bool = False) -> BinaryIO | None:
    """Open a regular file for reading; return `None` if there is none. A link counts as none.

    Args:
        follow: Whether to follow a link. It must lead to a regular file.

    Raises:
        OSError: The file exists and cannot be read.
    """
    try:
        descriptor = os.open(path, READ_FLAGS if follow else READ_FLAGS | O_NOFOLLOW)
    except OSError as fault:
        if fault.errno in NO_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def read_state_file(path: Path, max_bytes: int, what: str, *, follow: bool = True) -> bytes:
    """Return the content of a file that Suture wrote earlier, and that may be damaged or somebody else's.

    Args:
        what: What the file is, for error messages, such as `the ledger`.
        follow: Whether to follow a link. Files that are shown to others must not be links.

    Raises:
        FileNotFoundError: There is no such file.
        StorageError: It cannot be read, is too long or is not a regular file.
    """
    try:
        content = read_regular_file(path, max_bytes, follow=follow)
    except OSError as fault:
        raise StorageError(f"{what} {str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if content is None or len(content) > max_bytes:
        why = (
            "it is not a regular file" if content is None else f"it is longer than {max_bytes // 2**20:,} MiB"
        )
        raise StorageError(f"{what} {str(path)!r} cannot be read: {why}", remedy="move it away")
    return content


def read_text_file(
    path: Path, max_bytes: int, what: str, *, remedy: str = "name a text file in UTF-8"
) -> str:
    """Return the text of a file that the user has named. Links are followed.

    Args:
        what: What the file is, for error messages, such as `the recipe`.

    Raises:
        UsageError: There is no such file, or it cannot be read, is too long or is not UTF-8 text.
    """
    try:
        content = read_regular_file(path, max_bytes, follow=True)
        if content is None:
            why = "it is not a regular file" if os.path.lexists(path) else "there is no such file"
        elif len(content) > max_bytes:
            why = f"it is longer than {max_bytes // 2**10:,} KiB"
        else:
            return content.decode("utf-8-sig")
    except (OSError, ValueError) as fault:  # ValueError: a NUL in the path, or text that is not UTF-8
        why = describe_fault(fault)
    raise UsageError(f"{what} {str(path)!r} cannot be read: {why}", remedy=remedy)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML document.

    Raises:
        ValueError: The text is not TOML. The same error is raised for what would keep the parser busy: a key
            with very many parts, a number with very many digits, or very deeply nested lists.
    """
    if LONG_KEY.search(text):
        raise ValueError("a key has more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError as fault:
        raise ValueError("its lists or tables are nested too deeply") from fault


def write_text_atomically(path: Path, text: str) -> None:
    """Write text as UTF-8 so that a crash leaves the old or the new content.

    Raises:
        StorageError: It cannot be written.
    """
    write_file_atomically(path, _encode(path, text), remedy="")


def create_file(path: Path, text: str) -> bool:
    """Create a file, completely or not at all, and return whether it was created. An existing file is kept.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        partial = _write_beside(path, _encode(path, text), 0o666 & ~_umask())
        try:
            # Not a rename: it would replace a file that another process created in the meantime.
            path.hardlink_to(partial)
        except FileExistsError:
            return False
        except OSError:  # the file system has no hard links
            if os.path.lexists(path):
                return False
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault
    return True


def write_file_atomically(
    target: Path,
    content: bytes,
    *,
    remedy: str = "free some disk space, or set SUTURE_HOME to another disk",
) -> None:
    """Write a file so that a crash leaves the old or the new content, never a part of it.

    An existing file keeps its mode. Only its owner may read a new file.

    Raises:
        StorageError: The disk is full or missing, or the file may not be written.
    """
    try:
        mode = target.stat().st_mode & 0o777 if target.is_file() else PRIVATE_FILE_MODE
        partial = _write_beside(target, content, mode)
        try:
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise StorageError(f"{str(target)!r} cannot be written: {fault.strerror}", remedy=remedy) from fault


def _write_beside(target: Path, content: bytes, mode: int) -> Path:
    """Write a temporary file in the folder of the target, and force it to disk.

    Where the system allows it, the file has no name before it is complete, so that a killed process leaves nothing
    behind. Elsewhere, a process that is killed here leaves a file `.partial-*`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".partial-{secrets.token_hex(8)}")
    try:
        if not _write_unnamed(partial, content, mode):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | O_CLOEXEC
            with os.fdopen(os.open(partial, flags, PRIVATE_FILE_MODE), "wb") as file:
                _write_to_disk(file, content, mode)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _write_unnamed(path: Path, content: bytes, mode: int) -> bool:
    """Write a file and name it when it is complete; return whether the system and the file system can do this."""
    try:
        flags = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | O_CLOEXEC
        descriptor = os.open(path.parent, flags, PRIVATE_FILE_MODE)
    except OSError:  # NFS has no files without a name; any other cause fails again for a file with a name
        return False
    with os.fdopen(descriptor, "wb") as file:
        _write_to_disk(file, content, mode)
        try:
            # Python follows the symbolic link only if it is given a folder, which an absolute path does not need.
            os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=file.fileno())
        except FileExistsError:
            raise
        except OSError:  # no /proc, or a file system without hard links
            return False
    return True


def _write_to_disk(file: BinaryIO, content: bytes, mode: int) -> None:
    file.write(content)
    if hasattr(os, "fchmod"):  # not on Windows
        os.fchmod(file.fileno(), mode)
    file.flush()
    os.fsync(file.fileno())


def _umask() -> int:
    """Return the umask of the process."""
    umask = os.umask(0o077)  # the only way to read the umask is to set it
    os.umask(umask)
    return umask


def _encode(path: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as fault:  # a lone surrogate cannot be encoded
        raise StorageError(f"{str(path)!r} cannot be written: {fault}") from fault
