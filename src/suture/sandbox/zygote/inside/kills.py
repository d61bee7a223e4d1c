"""Whether the kernel has ended something here for want of memory, as an engine of containers lets us see.

A container shows its own control group, whose limit is the engine's. Where the kernel is quicker than our own
look at the memory of everything here, what it has ended is the only trace.
"""

from __future__ import annotations

import os
from contextlib import suppress

from suture.sandbox.runs.oom import oom_kills

COUNTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of version 2 and of version 1; each has a line `oom_kill N`."""


def find_counts(paths: tuple[str, ...] = COUNTS) -> tuple[str, ...]:
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
