"""The relay between the host and a running child, in frames.

A frame is one byte of kind, a 4-byte big-endian length, and the content. From the host:

    q   a request: a 4-byte length, a JSON head, the contents of the files; only the child reads it
    n   like `q`, and the child's stdin is empty
    d   like `q`; the child's stdin and stdout are sent separately as descriptors, and do not pass through here
    i   bytes for the child's stdin; an empty frame closes it
    p   stop reading the child's stdout for now
    c   continue to read it
    k   kill the child now

To the host:

    h   the zygote is ready
    o   bytes of the child's stdout
    e   bytes of its stderr
    r   bytes of its report
    p   send no stdin for now
    c   continue to send it
    .   the child is gone: JSON with its wait status, whether the kernel OOM-killed something of it as far as
        can be seen here, and what is wrong with this zygote, if anything

The relay's buffers are in memory that no child inherits, so no run finds what passed for another.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

from suture.sandbox.execution.supervisor import MAX_REQUEST_FRAME_BYTES
from suture.sandbox.zygote.inside import kernel

CHUNK = 1 << 16
"""Size of one read: the capacity of a Linux pipe."""
QUEUE_BYTES = 1 << 22
"""Far more than a host sends before it learns that it should pause."""


class RelayBuffer:
    """A buffer for output that is forwarded at once, and a queue of input that waits.

    Attributes:
        chunk: The buffer for output.
    """

    def __init__(self) -> None:
        self.chunk = kernel.unshared_memory(CHUNK)
        self._queue = kernel.unshared_memory(QUEUE_BYTES)
        self._start = self._end = 0

    def __len__(self) -> int:
        """Bytes in the queue."""
        return self._end - self._start

    @property
    def free_bytes(self) -> int:
        """Bytes that the queue can still take."""
        return QUEUE_BYTES - len(self)

    def enqueue(self, source: int, max_bytes: int) -> int:
        """Read at most `max_bytes` bytes from a descriptor into the queue; return how many, 0 at its end."""
        if self._end + max_bytes > QUEUE_BYTES:
            size = len(self)
            self._queue[:size] = self._queue[self._start : self._end]
            self._start, self._end = 0, size
        size = os.readv(source, [self._queue[self._end : self._end + max_bytes]])
        self._end += size
        return size

    def dequeue(self, sink: int) -> None:
        """Write as much of the queue as the descriptor takes.

        Raises:
            OSError: Also if it takes nothing now.
        """
        self._start += os.writev(sink, [self._queue[self._start : self._end]])
        if not len(self):
            self.clear()

    def clear(self) -> None:
        """Empty the queue, so that no later run finds its content."""
        self._start = self._end = 0


HEADER_BYTES = 5
"""A frame starts with its kind and its length (see the module's docstring)."""
SIGKILL = 9
TICK_MS = 50
"""Milliseconds between two checks whether a supervisor still runs."""
PAUSE_BYTES, RESUME_BYTES = 1 << 20, 1 << 18
"""Bytes of waiting stdin at which the host is asked to pause, and to continue."""


class HostGone(Exception):
    """The host has ended."""


class Host:
    """The channel to the host: two descriptors, `source` to read frames from and `sink` to write them to."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self._head = b""

    def send(self, kind: bytes, content: bytes | memoryview = b"") -> None:
        """Send one frame to the host."""
        unsent = [memoryview(kind + len(content).to_bytes(4, "big")), memoryview(content)]
        try:
            while unsent:
                written = os.writev(self.sink, unsent)
                while unsent and written >= len(unsent[0]):
                    written -= len(unsent.pop(0))
                unsent[:1] = [part[written:] for part in unsent[:1]]
        except BrokenPipeError as fault:
            raise HostGone from fault

    def read_head(self) -> tuple[bytes, int] | None:
        """Read what has arrived of a frame's head; return its kind and size once it is complete."""
        chunk = os.read(self.source, HEADER_BYTES - len(self._head))
        if not chunk:
            raise HostGone
        self._head += chunk
        if len(self._head) < HEADER_BYTES:
            return None
        head, self._head = self._head, b""
        size = int.from_bytes(head[1:], "big")
        if size > MAX_REQUEST_FRAME_BYTES:
            raise HostGone
        return head[:1], size

    def wait_head(self) -> tuple[bytes, int]:
        """Wait for the next frame and return its kind and size."""
        while (head := self.read_head()) is None:
            pass
        return head

    def discard(self, size: int, scratch: memoryview) -> None:
        """Read and discard `size` bytes of a frame."""
        while size:
            read_bytes = os.readv(self.source, [scratch[:size]])
            if not read_bytes:
                raise HostGone
            size -= read_bytes


class Relay:
    """Carries bytes between a child's pipes and the host until the child and all it started are gone.

    Args:
        pid: The process that is killed to end the run: the child, or -1 for every visible process.
        stdin: The descriptor of the child's stdin, if it is relayed.
        outputs: Descriptor of the child's output -> kind of frame.
        supervisor: The child, if its program could stop or kill it. Everything is killed then.
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
        self._stdin_bytes_expected = 0
        self._stdin_ends = False
        self._host_is_paused = self._stdout_is_paused = self._is_killed = False

    def run(self) -> None:
        """Carry bytes until every pipe of the child has ended."""
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)
        while self._outputs:
            poll = select.poll()
            if self._buffer.free_bytes:
                poll.register(self._host.source, select.POLLIN)
            for output_fd, kind in self._outputs.items():
                if not (self._stdout_is_paused and kind == b"o"):
                    poll.register(output_fd, select.POLLIN)
            if self._stdin is not None and self._buffer:
                poll.register(self._stdin, select.POLLOUT)
            for ready_fd, _ in poll.poll(None if self._supervisor is None else TICK_MS):
                if ready_fd == self._host.source:
                    self._handle_frame()
                elif ready_fd == self._stdin:
                    self._write_stdin()
                else:
                    self._forward_output(ready_fd)
            if self._supervisor is not None:
                self._check_supervisor(self._supervisor)
        self._host.discard(self._stdin_bytes_expected, self._buffer.chunk)
        self._close_stdin()

    def _check_supervisor(self, supervisor: int) -> None:
        """Kill everything if the supervisor can no longer do it."""
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitid(os.P_PID, supervisor, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT):
                os.kill(self._pid, SIGKILL)

    def _forward_output(self, output_fd: int) -> None:
        if output_fd not in self._outputs:
            return
        size = os.readv(output_fd, [self._buffer.chunk])
        if not size:
            os.close(output_fd)
            del self._outputs[output_fd]
        elif not (self._is_killed and self._outputs[output_fd] == b"o"):
            self._host.send(self._outputs[output_fd], self._buffer.chunk[:size])

    def _handle_frame(self) -> None:
        """Handle what has arrived of a frame from the host."""
        if self._stdin_bytes_expected:
            self._queue_stdin()
        elif (head := self._host.read_head()) is not None:
            kind, size = head
            if kind == b"i" and size:
                self._stdin_bytes_expected = size
            elif size:
                raise HostGone
            elif kind == b"i":
                self._stdin_ends = True
                self._write_stdin()
            elif kind in (b"p", b"c"):
                self._stdout_is_paused = kind == b"p" and not self._is_killed
            elif kind == b"k":
                self._is_killed, self._stdout_is_paused = True, False
                with suppress(ProcessLookupError):  # all of them may have just ended
                    os.kill(self._pid, SIGKILL)
            else:
                raise HostGone

    def _queue_stdin(self) -> None:
        max_bytes = min(self._stdin_bytes_expected, self._buffer.free_bytes, CHUNK)
        size = self._buffer.enqueue(self._host.source, max_bytes)
        if not size:
            raise HostGone
        self._stdin_bytes_expected -= size
        self._write_stdin()

    def _write_stdin(self) -> None:
        """Write what the child takes of its input now, and tell the host when to pause and when to continue."""
        if self._stdin is None:
            self._buffer.clear()
        while self._stdin is not None and self._buffer:
            try:
                self._buffer.dequeue(self._stdin)
            except BlockingIOError:
                break
            except BrokenPipeError:
                self._close_stdin()
        if len(self._buffer) > PAUSE_BYTES and not self._host_is_paused:
            self._host_is_paused = True
            self._host.send(b"p")
        if len(self._buffer) < RESUME_BYTES and self._host_is_paused:
            self._host_is_paused = False
            self._host.send(b"c")
        if self._stdin_ends and not self._buffer:
            self._close_stdin()

    def _close_stdin(self) -> None:
        self._buffer.clear()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
