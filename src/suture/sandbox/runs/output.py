"""Keeping what a program prints, within bounds."""

from __future__ import annotations

__all__ = ["CappedOutput"]


class CappedOutput:
    """Keeps the head and the tail of a stream; memory stays within twice the limit.

    Args:
        limit: The most bytes to keep, half of them from each end.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def truncated(self) -> bool:
        """Whether anything was left out."""
        return self.total > 2 * self._half

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[max(0, room) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def content(self) -> bytes:
        """What was kept; the cut is stated where there is one."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        left_out = self.total - 2 * self._half
        return (
            bytes(self._head)
            + b"\n[... %d bytes left out ...]\n" % left_out
            + bytes(self._tail[-self._half :])
        )
