"""Memory through which the words of a run pass. No child gets it, so none finds what passed for another."""
# FIXME doc of sandbox/zygote/inside/relay: """What goes between the host and a running child, in frames.
#
# A frame is one byte of kind, a 4-byte big-endian length, and the content. From the host:
#
#     q   a request: a 4-byte length, a JSON head, the contents of the files; only the child reads it
#     n   as `q`, and the child's stdin is empty
#     d   as `q`; the child's stdin and stdout are given to the zygote besides, and do not pass through here
#     i   bytes for the child's stdin; none at all closes it
#     p   do not read the child's stdout for now; `c`: go on
#     k   end the child now
#
# To the host:
#
#     h   the zygote is ready
#     o e r   bytes of the child's stdout, of its stderr, of its report
#     p   send no stdin for now; `c`: go on
#     .   the child is gone: JSON, its wait status, whether the kernel ended something of it for want of memory
#         as far as is seen here, and what is wrong with this zygote, if anything
# """

from __future__ import annotations

import os
import select
from contextlib import suppress

from suture.sandbox.execution.supervisor import MOST_FRAME_BYTES
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
        self._head = b""

    def send(self, kind: bytes, content: bytes | memoryview = b"") -> None:
        """Send one frame to the host."""
        left = [memoryview(kind + len(content).to_bytes(4, "big")), memoryview(content)]
        try:
            while left:
                written = os.writev(self.sink, left)
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                left[:1] = [part[written:] for part in left[:1]]
        except BrokenPipeError as fault:
            raise HostGone from fault

    def read_head(self) -> tuple[bytes, int] | None:
        """Take in what has come of a frame's head; its kind and its size, once that is all."""
        chunk = os.read(self.source, HEADER - len(self._head))
        if not chunk:
            raise HostGone
        self._head += chunk
        if len(self._head) < HEADER:
            return None
        head, self._head = self._head, b""
        size = int.from_bytes(head[1:], "big")
        if size > MOST_FRAME_BYTES:
            raise HostGone
        return head[:1], size

    def wait_head(self) -> tuple[bytes, int]:
        """The kind and the size of the next frame, however long it takes."""
        while (head := self.read_head()) is None:
            pass
        return head

    def pass_over(self, size: int, scratch: memoryview) -> None:
        """Read so many bytes of a frame that is for nobody."""
        while size:
            read = os.readv(self.source, [scratch[:size]])
            if not read:
                raise HostGone
            size -= read


class Relay:
    """Carries bytes between a child's pipes and the host until the child and all it started are gone.

    Args:
        host: The channel to the host.
        buffer: What its words pass through.
        pid: The child; -1 for every process in sight.
        supervisor: The child, where its program could stop or end it. Then all of them are ended.
        stdin: Where its stdin is written, if here.
        outputs: Descriptor -> kind of frame.
    """

    def __init__(
        self,
        host: Host,
        buffer: RelayBuffer,
        pid: int,
        stdin: int | None,
        outputs: dict[int, bytes],
        supervisor: int | None = None,
    ) -> None:
        self._host = host
        self._buffer = buffer
        self._pid = pid
        self._supervisor = supervisor
        self._stdin = stdin
        self._outputs = outputs
        self._coming = 0
        self._closing = self._paused_host = self._paused = self._killed = False

    def run(self) -> None:
        """Carry until every pipe of the child's has ended."""
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)
        while self._outputs:
            poll = select.poll()
            if self._buffer.room:
                poll.register(self._host.source, select.POLLIN)
            for handle, kind in self._outputs.items():
                if not (self._paused and kind == b"o"):
                    poll.register(handle, select.POLLIN)
            if self._stdin is not None and self._buffer:
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
        self._host.pass_over(self._coming, self._buffer.chunk)
        self._close_stdin()

    def _mind(self, supervisor: int) -> None:
        """End everything where the supervisor can no longer do it."""
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitid(os.P_PID, supervisor, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT):
                os.kill(self._pid, SIGKILL)

    def _carry(self, handle: int) -> None:
        if handle not in self._outputs:
            return
        size = os.readv(handle, [self._buffer.chunk])
        if not size:
            os.close(handle)
            del self._outputs[handle]
        elif not (self._killed and self._outputs[handle] == b"o"):
            self._host.send(self._outputs[handle], self._buffer.chunk[:size])

    def _take_orders(self) -> None:
        if self._coming:
            self._take_stdin()
        elif (head := self._host.read_head()) is not None:
            kind, size = head
            if kind == b"i" and size:
                self._coming = size
            elif size:
                raise HostGone
            elif kind == b"i":
                self._closing = True
                self._feed()
            elif kind in (b"p", b"c"):
                self._paused = kind == b"p" and not self._killed
            elif kind == b"k":
                self._killed, self._paused = True, False
                with suppress(ProcessLookupError):  # all of them may have just ended
                    os.kill(self._pid, SIGKILL)
            else:
                raise HostGone

    def _take_stdin(self) -> None:
        size = self._buffer.enqueue(self._host.source, min(self._coming, self._buffer.room, CHUNK))
        if not size:
            raise HostGone
        self._coming -= size
        self._feed()

    def _feed(self) -> None:
        if self._stdin is None:
            self._buffer.clear()
        while self._stdin is not None and self._buffer:
            try:
                self._buffer.dequeue(self._stdin)
            except BlockingIOError:
                break
            except BrokenPipeError:
                self._close_stdin()
        if len(self._buffer) > FULL and not self._paused_host:
            self._paused_host = True
            self._host.send(b"p")
        if len(self._buffer) < ROOMY and self._paused_host:
            self._paused_host = False
            self._host.send(b"c")
        if self._closing and not self._buffer:
            self._close_stdin()

    def _close_stdin(self) -> None:
        self._buffer.clear()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
