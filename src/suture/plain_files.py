"""Reading a file that a stranger may have laid there: no link is followed and no pipe waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["read_plain"]

NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG)
"""There is nothing, or a link, a socket or a device without anything behind it."""


def read_plain(path: Path, most_bytes: int, *, follow: bool = False) -> bytes | None:
    """The content of a regular file; `None` where there is none.

    Args:
        path: The file itself; a link at its end is none.
        most_bytes: One byte more than this is read of a longer file, so that its reader can tell.
        follow: Whether a link is followed; what it leads to must be a regular file.

    Raises:
        OSError: It is there, and cannot be read.
    """
    try:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        handle = os.open(path, how)
    except OSError as fault:
        if fault.errno in NO_FILE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(most_bytes + 1)
