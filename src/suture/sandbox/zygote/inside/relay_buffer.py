"""Memory through which the words of a run pass. No child gets it, so none finds what passed for another."""

from __future__ import annotations

import os

from suture.sandbox.zygote.inside import kernel

CHUNK = 1 << 16
QUEUE_BYTES = 1 << 22
"""Far more than a host sends before it hears that it should pause."""


class RelayBuffer:
    """One piece on its way out, and a queue of what is on its way in.

    Attributes:
        chunk: For whatever is passed on at once.
    """

    def __init__(self) -> None:
        self.chunk = kernel.unshared_memory(CHUNK)
        self._queue = kernel.unshared_memory(QUEUE_BYTES)
        self._first = self._end = 0

    def __len__(self) -> int:
        """Bytes in the queue."""
        return self._end - self._first

    @property
    def room(self) -> int:
        """Bytes that the queue can take."""
        return QUEUE_BYTES - len(self)

    def enqueue(self, source: int, most: int) -> int:
        """Read from a descriptor at most so many bytes; how many there were, 0 at its end."""
        if self._end + most > QUEUE_BYTES:
            held = len(self)
            self._queue[:held] = self._queue[self._first : self._end]
            self._first, self._end = 0, held
        size = os.readv(source, [self._queue[self._end : self._end + most]])
        self._end += size
        return size

    def dequeue(self, sink: int) -> None:
        """Write what the descriptor takes.

        Raises:
            OSError: Also where it takes nothing now.
        """
        self._first += os.writev(sink, [self._queue[self._first : self._end]])
        if not len(self):
            self.clear()

    def clear(self) -> None:
        """Forget what is queued, so that no later run finds it."""
        self._first = self._end = 0
