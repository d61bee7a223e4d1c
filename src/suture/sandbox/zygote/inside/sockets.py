"""What runs leave in the network that they share: a TCP connection outlives the processes that held it."""

from __future__ import annotations

import os
from contextlib import suppress

COUNTS = ("/proc/self/net/sockstat", "/proc/self/net/sockstat6")
"""Each has a line of pairs: `TCP: inuse N orphan N tw N ...`. Orphans are those of the whole machine, but the
others are those of this namespace; connections of both versions that wait for their time are in the first."""
MOST_BYTES = 4096


class Sockets:
    """Counts what is there; to be made before anything runs that could open one.

    Args:
        paths: Where the counts are; what is not there counts nothing.
    """

    def __init__(self, paths: tuple[str, ...] = COUNTS) -> None:
        # Kept open: this is asked after each run.
        self._handles: list[int] = []
        for path in paths:
            with suppress(OSError):
                self._handles.append(os.open(path, os.O_RDONLY))

    def left(self) -> int:
        """TCP sockets that are open, closing, or waiting for their time."""
        return sum(map(count, self._handles))


def count(handle: int) -> int:
    """What one of the files tells."""
    for line in os.pread(handle, MOST_BYTES, 0).splitlines():
        words = line.split()
        if words[:1] in ([b"TCP:"], [b"TCP6:"]):
            return sum(int(words[words.index(name) + 1]) for name in (b"inuse", b"tw") if name in words)
    return 0
