"""What goes between the host and a running child, in frames.

A frame is one byte of kind, a 4-byte big-endian length, and the content. From the host:

    q   a request: a 4-byte length, a JSON head, the contents of the files; only the child reads it
    d   as `q`; the child's stdin and stdout are given to the zygote besides, and do not pass through here
    i   bytes for the child's stdin; none at all closes it
    p   do not read the child's stdout for now; `c`: go on
    k   end the child now

To the host:

    h   the zygote is ready
    o e r   bytes of the child's stdout, of its stderr, of its report
    p   send no stdin for now; `c`: go on
    .   the child is gone: JSON, its wait status and what is wrong with this zygote, if anything
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

__all__ = ["Host", "HostGone", "Relay"]

CHUNK = 1 << 16
MOST_FRAME = 1 << 28
HEADER = 5
SIGKILL = 9
TICK_MS = 50
"""Milliseconds between two looks at whether a supervisor still runs."""
FULL, ROOMY = 1 << 20, 1 << 18
"""Bytes of waiting stdin at which the host is asked to pause, and to go on."""


class HostGone(Exception):
    """There is nobody left to serve."""


class Host:
    """The host's end, as seen from here.

    Args:
        source: Descriptor to read frames from.
        sink: Descriptor to write frames to.
    """

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self._buffer = bytearray()

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame."""
        view = memoryview(kind + len(content).to_bytes(4, "big") + content)
        try:
            while view:
                view = view[os.write(self.sink, view) :]
        except BrokenPipeError as fault:
            raise HostGone from fault

    def read(self) -> None:
        """Take in what has come of the next frame, and nothing beyond; waits where nothing has."""
        whole = HEADER + self._size() if len(self._buffer) >= HEADER else HEADER
        chunk = os.read(self.source, min(whole - len(self._buffer), CHUNK))
        if not chunk:
            raise HostGone
        self._buffer += chunk

    def _size(self) -> int:
        size = int.from_bytes(self._buffer[1:HEADER], "big")
        if size > MOST_FRAME:
            raise HostGone
        return size

    def wait_head(self) -> tuple[bytes, int]:
        """The kind and the size of the next frame, however long it takes."""
        while len(self._buffer) < HEADER:
            self.read()
        return bytes(self._buffer[:1]), self._size()

    def leave_content(self) -> None:
        """Let another process read the content of the frame of which only the head was taken in."""
        self._buffer.clear()

    def next_frame(self) -> tuple[bytes, bytes] | None:
        """The next frame, once all of it was taken in."""
        if len(self._buffer) < HEADER:
            return None
        size = self._size()
        if len(self._buffer) < HEADER + size:
            return None
        kind, content = bytes(self._buffer[:1]), bytes(self._buffer[HEADER : HEADER + size])
        del self._buffer[: HEADER + size]
        return kind, content

    def wait_frame(self) -> tuple[bytes, bytes]:
        """The next whole frame, however long it takes."""
        while (frame := self.next_frame()) is None:
            self.read()
        return frame


class Relay:
    """Carries bytes between a child's pipes and the host until the child and all it started are gone.

    Args:
        host: The host.
        pid: The child; -1 for every process in sight.
        supervisor: The child, where its program could stop or end it. Then all of them are ended.
        stdin: Where its stdin is written, if here.
        outputs: Descriptor -> kind of frame.
    """

    def __init__(
        self,
        host: Host,
        pid: int,
        stdin: int | None,
        outputs: dict[int, bytes],
        supervisor: int | None = None,
    ) -> None:
        self._host = host
        self._pid = pid
        self._supervisor = supervisor
        self._stdin = stdin
        self._outputs = outputs
        self._waiting = bytearray()
        self._closing = self._paused_host = self._paused = self._killed = False

    def run(self) -> None:
        """Carry until every pipe of the child's has ended."""
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)
        while self._outputs:
            poll = select.poll()
            poll.register(self._host.source, select.POLLIN)
            for handle, kind in self._outputs.items():
                if not (self._paused and kind == b"o"):
                    poll.register(handle, select.POLLIN)
            if self._stdin is not None and self._waiting:
                poll.register(self._stdin, select.POLLOUT)
            for handle, _ in poll.poll(None if self._supervisor is None else TICK_MS):
                if handle == self._host.source:
                    self._take_orders()
                elif handle == self._stdin:
                    self._feed()
                else:
                    self._carry(handle)
            if self._supervisor is not None:
                self._mind(self._supervisor)
        self._close_stdin()

    def _mind(self, supervisor: int) -> None:
        """End everything where the supervisor can no longer do it."""
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitid(os.P_PID, supervisor, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT):
                os.kill(self._pid, SIGKILL)

    def _carry(self, handle: int) -> None:
        if handle not in self._outputs:
            return
        chunk = os.read(handle, CHUNK)
        if not chunk:
            os.close(handle)
            del self._outputs[handle]
        elif not (self._killed and self._outputs[handle] == b"o"):
            self._host.send(self._outputs[handle], chunk)

    def _take_orders(self) -> None:
        self._host.read()
        while (frame := self._host.next_frame()) is not None:
            kind, content = frame
            if kind == b"i" and content:
                self._waiting += content
                self._feed()
            elif kind == b"i":
                self._closing = True
                if not self._waiting:
                    self._close_stdin()
            elif kind in (b"p", b"c"):
                self._paused = kind == b"p" and not self._killed
            elif kind == b"k":
                self._killed, self._paused = True, False
                with suppress(ProcessLookupError):  # all of them may have just ended
                    os.kill(self._pid, SIGKILL)
            else:
                raise HostGone

    def _feed(self) -> None:
        if self._stdin is None:
            self._waiting.clear()
        while self._stdin is not None and self._waiting:
            try:
                del self._waiting[: os.write(self._stdin, self._waiting[:CHUNK])]
            except BlockingIOError:
                break
            except BrokenPipeError:
                self._close_stdin()
        if len(self._waiting) > FULL and not self._paused_host:
            self._paused_host = True
            self._host.send(b"p")
        if len(self._waiting) < ROOMY and self._paused_host:
            self._paused_host = False
            self._host.send(b"c")
        if self._closing and not self._waiting:
            self._close_stdin()

    def _close_stdin(self) -> None:
        self._waiting.clear()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
