"""The program's end of a channel: frames on descriptors that a stray print cannot reach.

This file runs behind the wall, on a bare interpreter.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from suture.judge.split.wire import dump, load


class FrameStream:
    """Takes stdin and stdout for itself, and leaves the program an empty stdin and stderr as stdout."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        self._read, self._write = os.read, os.write

    def receive(self) -> dict[str, Any] | None:
        """The next message, or `None` when there will be none."""
        head = self._exactly(4)
        body = self._exactly(int.from_bytes(head, "big")) if head is not None else None
        return None if body is None else load(body)

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            NotData: It is too large.
        """
        body = dump(message)
        view = memoryview(len(body).to_bytes(4, "big") + body)
        while view:
            view = view[self._write(self._out, view) :]

    def _exactly(self, size: int) -> bytes | None:
        chunks = []
        while size:
            chunk = self._read(self._in, min(size, 1 << 20))
            if not chunk:
                return None
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    @staticmethod
    def flush_prints() -> None:
        """Hand on what the program printed."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                continue  # the program closed or replaced it
