"""What the kernel counts of runs: what it ended for want of memory, and what they leave in their network.

A container shows its own control group, whose limit is the engine's. Where the kernel is quicker than our own
look at the memory of everything here, what it has ended is the only trace. A TCP connection outlives the
processes that held it, and the runs of a zygote share a network.
"""

from __future__ import annotations

import os
from contextlib import suppress

from suture.sandbox.runs.oom import oom_kills

KILL_COUNTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of version 2 and of version 1; each has a line `oom_kill N`."""

SOCKET_COUNTS = ("/proc/self/net/sockstat", "/proc/self/net/sockstat6")
"""Each has a line of pairs: `TCP: inuse N orphan N tw N ...`. Orphans are those of the whole machine, but the
others are those of this namespace; connections of both versions that wait for their time are in the first."""
MOST_BYTES = 4096


def find_counts(paths: tuple[str, ...] = KILL_COUNTS) -> tuple[str, ...]:
    """Those files that are here; asked for once, as not finding them is dear in every run."""
    return tuple(path for path in paths if os.access(path, os.R_OK))


class Kills:
    """Counts from when it was made; to be made before the folder of control groups is covered.

    Args:
        paths: Where the count may be; the first that can be opened has it. Without any, nothing is counted.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._handle: int | None = None
        for path in paths:
            with suppress(OSError):
                self._handle = os.open(path, os.O_RDONLY)
                break
        self._before = self._count()

    def grew(self) -> bool:
        """Whether there was one since."""
        return self._count() > self._before

    def close(self) -> None:
        """Let go of the count; safe to call twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _count(self) -> int:
        if self._handle is None:
            return 0
        try:
            return oom_kills(os.pread(self._handle, 4096, 0))
        except OSError:  # such as that the group is being taken away
            return 0


class Sockets:
    """Counts what is there; to be made before anything runs that could open one.

    Args:
        paths: Where the counts are; what is not there counts nothing.
    """

    def __init__(self, paths: tuple[str, ...] = SOCKET_COUNTS) -> None:
        # Kept open: this is asked after each run.
        self._handles: list[int] = []
        for path in paths:
            with suppress(OSError):
                self._handles.append(os.open(path, os.O_RDONLY))

    def left(self) -> int:
        """TCP sockets that are open, closing, or waiting for their time."""
        return sum(map(count, self._handles))


def count(handle: int) -> int:
    """The TCP sockets in use or in TIME_WAIT that an open `sockstat` tells of."""
    for line in os.pread(handle, MOST_BYTES, 0).splitlines():
        words = line.split()
        if words[:1] in ([b"TCP:"], [b"TCP6:"]):
            return sum(int(words[words.index(name) + 1]) for name in (b"inuse", b"tw") if name in words)
    return 0
