"""One run in a zygote, from the host's side, and the direct pipes to a conversation's program.

A zygote on this machine gets a socket beside its streams, from which only the zygote reads. Through it the
host sends the program's ends of two pipes, so that the conversation does not pass through the zygote. Pipes
belong to no namespace, so the program learns nothing from them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from suture.sandbox.execution.process import StdinWriter
from suture.sandbox.tuning import CHILD_KILL_TIMEOUT_S, READ_CHUNK_BYTES

if TYPE_CHECKING:
    from suture.sandbox.zygote.zygote_process import Zygote


class FdSender:
    """The socket through which a zygote receives file descriptors."""

    def __init__(self) -> None:
        self._local, self._remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._local.setblocking(False)

    @property
    def remote_fd(self) -> int:
        """The zygote's end, valid until `close_remote_end`."""
        return self._remote.fileno()

    def send_fds(self, fds: Sequence[int]) -> None:
        """Send descriptors to the zygote. This does not fail if the zygote is gone.

        Raises:
            BlockingIOError: It has not taken the previous ones.
        """
        try:
            socket.send_fds(self._local, [b"h"], fds)
        except (BrokenPipeError, ConnectionResetError):
            return

    def close_remote_end(self) -> None:
        """Close the zygote's end in this process, after the zygote was started."""
        self._remote.close()

    def close(self) -> None:
        """Close both ends. Safe to call twice."""
        self._remote.close()
        self._local.close()


class DirectPipes:
    """The host's ends of a program's stdin and stdout. Create them with `DirectPipes.create`."""

    def __init__(
        self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, source: asyncio.ReadTransport
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self._source = source

    @classmethod
    async def create(cls, fd_sender: FdSender) -> DirectPipes:
        """Create two pipes and send the program's ends to the zygote, whose next run is the program."""
        loop = asyncio.get_running_loop()
        with ExitStack() as remote_ends, ExitStack() as cleanup_on_failure:
            stdin_read, stdin_write = os.pipe()
            remote_ends.callback(os.close, stdin_read)
            stdin_pipe = os.fdopen(stdin_write, "wb", buffering=0)
            cleanup_on_failure.callback(stdin_pipe.close)
            stdout_read, stdout_write = os.pipe()
            remote_ends.callback(os.close, stdout_write)
            reader = asyncio.StreamReader()
            stdout_pipe = os.fdopen(stdout_read, "rb", buffering=0)
            cleanup_on_failure.callback(stdout_pipe.close)
            flow_protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
            write_transport, _ = await loop.connect_write_pipe(lambda: flow_protocol, stdin_pipe)
            cleanup_on_failure.callback(write_transport.abort)
            read_transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), stdout_pipe
            )
            cleanup_on_failure.callback(read_transport.close)
            fd_sender.send_fds((stdin_read, stdout_write))
            cleanup_on_failure.pop_all()
        return cls(asyncio.StreamWriter(write_transport, flow_protocol, None, loop), reader, read_transport)

    def close(self) -> None:
        """Close both ends. Safe to call twice."""
        if not self.stdin.transport.is_closing():  # asyncio fails when a closing transport is aborted
            self.stdin.transport.abort()
        self._source.close()


class ZygoteRun:
    """One run in a zygote; see `process.SupervisedRun`."""

    def __init__(
        self, zygote: Zygote, pipes: DirectPipes | None = None, *, stdin_closed: bool = False
    ) -> None:
        self._zygote = zygote
        self._pipes = pipes
        self._is_gone = asyncio.Event()
        self._code: int | None = None
        self._delayed_kill: asyncio.TimerHandle | None = None
        self.killed = self.out_of_memory = False
        self.error_text = ""
        self._relayed_stdin = RelayedStdin(zygote, self, closed=stdin_closed)
        self.stdin: StdinWriter = self._relayed_stdin
        self.stdout, self.stderr, self.report = (asyncio.StreamReader() for _ in range(3))
        self.stdout.set_transport(OutputFlowControl(zygote, self))
        self._relayed = {b"o": self.stdout, b"e": self.stderr, b"r": self.report}
        if pipes is not None:
            self.stdin, self.stdout = pipes.stdin, pipes.stdout
            del self._relayed[b"o"]

    @property
    def returncode(self) -> int | None:
        """See `SupervisedRun.returncode`."""
        return self._code

    def handle_frame(self, kind: bytes, content: bytes) -> bool:
        """Handle one frame; return false if it makes no sense."""
        if kind in (b"p", b"c"):
            self._relayed_stdin.pause(kind == b"p")
            return not content
        if kind not in self._relayed:
            return False
        self._relayed[kind].feed_data(content)
        return True

    def finish(self, code: int, *, out_of_memory: bool = False, error_text: str = "") -> None:
        """Record that everything of this run is gone; see `SupervisedRun` for the arguments."""
        self._code = code
        self.out_of_memory = out_of_memory
        self.error_text = error_text
        if self._delayed_kill is not None:
            self._delayed_kill.cancel()
        for stream in self._relayed.values():
            stream.feed_eof()
        self._relayed_stdin.pause(False)
        self._is_gone.set()

    def kill(self) -> None:
        """See `SupervisedRun.kill`. A zygote that does not obey is killed with the run."""
        if self._code is None and not self.killed:
            self.killed = True
            self._zygote.send(b"k")
            loop = asyncio.get_running_loop()
            self._delayed_kill = loop.call_later(
                CHILD_KILL_TIMEOUT_S, self._zygote.kill, "it did not end a child"
            )

    async def wait(self) -> int:
        """See `SupervisedRun.wait`."""
        await self._is_gone.wait()
        assert self._code is not None
        return self._code

    def release(self) -> None:
        """Close the direct pipes, if there are any. Safe to call twice."""
        if self._pipes is not None:
            self._pipes.close()


class RelayedStdin:
    """A child's stdin; see `process.StdinWriter`."""

    def __init__(self, zygote: Zygote, run: ZygoteRun, *, closed: bool) -> None:
        self._zygote = zygote
        self._run = run
        self._unsent = bytearray()
        self._may_send = asyncio.Event()
        self._may_send.set()
        self._closed = closed

    def write(self, data: bytes) -> None:
        """Queue bytes; `drain` sends them."""
        if not self._closed:
            self._unsent += data

    async def drain(self) -> None:
        """Send what was written, as fast as the child reads it."""
        while self._unsent:
            await self._may_send.wait()
            if self._run.returncode is not None:  # what is sent now would go to the next run
                break
            self._zygote.send(b"i", bytes(self._unsent[:READ_CHUNK_BYTES]))
            del self._unsent[:READ_CHUNK_BYTES]
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._zygote.drain()
        self._unsent.clear()

    def pause(self, paused: bool) -> None:
        """Record whether the child has enough input for now."""
        if paused:
            self._may_send.clear()
        else:
            self._may_send.set()

    def close(self) -> None:
        """Let the program see the end of its stdin. Safe to call twice."""
        if not self._closed and self._run.returncode is None:
            self._zygote.send(b"i")
        self._closed = True


class OutputFlowControl(asyncio.Transport):
    """The transport through which a stream reader reports that its buffer is full."""

    def __init__(self, zygote: Zygote, run: ZygoteRun) -> None:
        super().__init__()
        self._zygote = zygote
        self._run = run

    def pause_reading(self) -> None:
        """Ask the zygote to stop reading the child's stdout."""
        self._send_order(b"p")

    def resume_reading(self) -> None:
        """Ask the zygote to read the child's stdout again."""
        self._send_order(b"c")

    def _send_order(self, kind: bytes) -> None:
        if self._run.returncode is None:
            self._zygote.send(kind)
