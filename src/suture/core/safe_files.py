"""Reading what a stranger may have laid there, without waiting; writing a file whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from suture.errors import StorageError, UsageError

__all__ = [
    "create_file",
    "open_regular_file",
    "parse_toml",
    "read_regular_file",
    "read_state_file",
    "read_text_file",
    "replace_file",
    "write_file_atomically",
]

NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG)
"""There is nothing, or a link, a socket or a device without anything behind it."""
PRIVATE_FILE = 0o600
"""The mode of a file that nobody else may read."""
DEEP_KEY = re.compile(
    r"""(?:(?:(?<![\w-])[\w-]+|(?<!\\)"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){32}""", re.ASCII
)
"""A key of more parts than any of ours: `tomllib` takes time with the square of their number.

No key begins at an escaped quote: to look for the end of each would take time with their square too.
"""


def read_regular_file(path: Path, most_bytes: int, *, follow: bool = False) -> bytes | None:
    """The content of a regular file; `None` where there is none.

    Args:
        path: The file itself; a link at its end is none.
        most_bytes: One byte more than this is read of a longer file, so that its reader can tell.
        follow: Whether a link is followed; what it leads to must be a regular file.

    Raises:
        OSError: It is there, and cannot be read.
    """
    file = open_regular_file(path, follow=follow)
    if file is None:
        return None
    with file:
        return file.read(most_bytes + 1)


def open_regular_file(path: Path, *, follow: bool = False) -> BinaryIO | None:
    """A regular file, opened for reading; `None` where there is none.

    Args:
        path: As in `read_regular_file`.
        follow: As there.

    Raises:
        OSError: It is there, and cannot be read.
    """
    try:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
        handle = os.open(path, how)
    except OSError as fault:
        if fault.errno in NO_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def read_state_file(path: Path, most_bytes: int, what: str, *, follow: bool = True) -> bytes:
    """The content of a file of our own state, which may be somebody else's run, or damaged.

    Args:
        path: The file.
        most_bytes: A longer one is none of ours.
        what: What it should be, for the error, such as `the ledger`.
        follow: Whether a link is followed; what is shown to somebody must lie there itself.

    Raises:
        FileNotFoundError: There is no such file.
        StorageError: It cannot be read, is too long or is no regular file.
    """
    try:
        content = read_regular_file(path, most_bytes, follow=follow)
    except OSError as fault:
        raise StorageError(f"{what} {str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None and not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if content is None or len(content) > most_bytes:
        why = "it is no regular file" if content is None else f"it is longer than {most_bytes // 2**20:,} MiB"
        raise StorageError(f"{what} {str(path)!r} cannot be read: {why}", remedy="move it away")
    return content


def read_text_file(
    path: Path, most_bytes: int, what: str, *, remedy: str = "name a text file in UTF-8"
) -> str:
    """The text of a file that somebody has named.

    Args:
        path: The file; a link is followed.
        most_bytes: A longer one is refused.
        what: What it should be, for the error, such as `the recipe`.
        remedy: What its reader can do.

    Raises:
        UsageError: There is no such file, or it cannot be read, is too long or is no UTF-8 text.
    """
    try:
        content = read_regular_file(path, most_bytes, follow=True)
        if content is None:
            why = "it is no regular file" if os.path.lexists(path) else "there is no such file"
        elif len(content) > most_bytes:
            why = f"it is longer than {most_bytes // 2**10:,} KiB"
        else:
            return content.decode("utf-8-sig")
    except (OSError, ValueError) as fault:  # a name may hold a NUL; a text may be no UTF-8
        why = os.strerror(fault.errno or 0) if isinstance(fault, OSError) else str(fault)
    raise UsageError(f"{what} {str(path)!r} cannot be read: {why}", remedy=remedy)


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        ValueError: It is no TOML, or would keep the parser busy: a key of very many parts, a number of very
            many digits, very deep lists.
    """
    if DEEP_KEY.search(text):
        raise ValueError("a key has more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError as fault:
        raise ValueError("its lists or tables lie too deep in one another") from fault


def replace_file(path: Path, text: str) -> None:
    """Write a text as `write_file_atomically` does.

    Raises:
        StorageError: It cannot be written.
    """
    write_file_atomically(path, _encoded(path, text), remedy="")


def create_file(path: Path, text: str) -> bool:
    """Write a file whole or not at all, where there is none; answers whether there was none.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        partial = _written_beside(path, _encoded(path, text), 0o666 & ~_umask())
        try:
            path.hardlink_to(partial)  # a rename would take the place of a file that came there meanwhile
        except FileExistsError:
            return False
        except OSError:  # a file system without links
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
    """Write a file so that a crash leaves the old one or the new one, never half of either.

    It keeps the rights of the one before; a new one is its owner's alone.

    Raises:
        StorageError: The disk is full or gone, or the file is not ours to write.
    """
    try:
        mode = target.stat().st_mode & 0o777 if target.is_file() else PRIVATE_FILE
        partial = _written_beside(target, content, mode)
        try:
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise StorageError(f"{str(target)!r} cannot be written: {fault.strerror}", remedy=remedy) from fault


def _written_beside(target: Path, content: bytes, mode: int) -> Path:
    """A new file in the target's folder, on disk before it takes a name that somebody reads."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _umask() -> int:
    """What the user's new files are not: there is no way to ask but to set it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _encoded(path: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as fault:  # a half surrogate has no place in UTF-8
        raise StorageError(f"{str(path)!r} cannot be written: {fault}") from fault
