"""Pipes from the host straight to a conversation's program, so that its words do not pass through the zygote.

A zygote of this machine gets a socket beside its streams, from which only it reads. The host sends it the
program's ends of two pipes; pipes belong to no namespace, so the program learns nothing by holding them.
"""
# FIXME doc of sandbox/zygote/zygote_run: """One run in a zygote, from the host's side."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Protocol

from suture.sandbox.execution.process import Feed
from suture.sandbox.tuning import CHILD_KILL_TIMEOUT_S, READ_CHUNK_BYTES


class FdSender:
    """The way by which a zygote is given descriptors."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)

    @property
    def remote_fd(self) -> int:
        """The zygote's end, until `close_remote_end`."""
        return self._theirs.fileno()

    def give(self, handles: Sequence[int]) -> None:
        """Give it descriptors; one that is gone does not make this fail.

        Raises:
            BlockingIOError: It has not taken those that it was given before.
        """
        try:
            socket.send_fds(self._ours, [b"h"], handles)
        except (BrokenPipeError, ConnectionResetError):
            return

    def close_remote_end(self) -> None:
        """Close the zygote's end on this side, once it has been started."""
        self._theirs.close()

    def close(self) -> None:
        """Close both; safe to call twice."""
        self._theirs.close()
        self._ours.close()


class DirectPipes:
    """The host's ends of a program's stdin and stdout. Make them with `DirectPipes.lay`."""

    def __init__(
        self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, source: asyncio.ReadTransport
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self._source = source

    @classmethod
    async def lay(cls, fd_sender: FdSender) -> DirectPipes:
        """Make two pipes and give the program's ends away.

        Args:
            fd_sender: Of the zygote whose next run has the program.
        """
        loop = asyncio.get_running_loop()
        with ExitStack() as remote_ends, ExitStack() as unless_laid:
            stdin_read, stdin_write = os.pipe()
            remote_ends.callback(os.close, stdin_read)
            sink = os.fdopen(stdin_write, "wb", buffering=0)
            unless_laid.callback(sink.close)
            stdout_read, stdout_write = os.pipe()
            remote_ends.callback(os.close, stdout_write)
            reader = asyncio.StreamReader()
            pipe = os.fdopen(stdout_read, "rb", buffering=0)
            unless_laid.callback(pipe.close)
            drained = asyncio.StreamReaderProtocol(asyncio.StreamReader())
            write_transport, _ = await loop.connect_write_pipe(lambda: drained, sink)
            unless_laid.callback(write_transport.abort)
            read_transport, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), pipe
            )
            unless_laid.callback(read_transport.close)
            fd_sender.give((stdin_read, stdout_write))
            unless_laid.pop_all()
        return cls(asyncio.StreamWriter(write_transport, drained, None, loop), reader, read_transport)

    def close(self) -> None:
        """Let go of both; safe to call twice."""
        if not self.stdin.transport.is_closing():  # else asyncio fails
            self.stdin.transport.abort()
        self._source.close()


class ZygoteControl(Protocol):
    """A zygote, as its run sees it."""

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send one frame (see `inside/relay.py`)."""
        ...

    async def drain(self) -> None:
        """Wait until more may be sent."""
        ...

    def kill(self, why: str) -> None:
        """End the zygote, and everything that runs in it, now."""
        ...


class ZygoteRun:
    """One run in a zygote; see `running.SupervisedRun`."""

    def __init__(
        self, zygote: ZygoteControl, pipes: DirectPipes | None = None, *, stdin_closed: bool = False
    ) -> None:
        self._zygote = zygote
        self._pipes = pipes
        self._gone = asyncio.Event()
        self._code: int | None = None
        self._ultimatum: asyncio.TimerHandle | None = None
        self.killed = self.out_of_memory = False
        self.complaint = ""
        self._feed = RunFeed(zygote, self, closed=stdin_closed)
        self.stdin: Feed = self._feed
        self.stdout, self.stderr, self.report = (asyncio.StreamReader() for _ in range(3))
        self.stdout.set_transport(OutputValve(zygote, self))
        self._relayed = {b"o": self.stdout, b"e": self.stderr, b"r": self.report}
        if pipes is not None:
            self.stdin, self.stdout = pipes.stdin, pipes.stdout
            del self._relayed[b"o"]

    @property
    def returncode(self) -> int | None:
        """How the child ended, once it has."""
        return self._code

    def take(self, kind: bytes, content: bytes) -> bool:
        """Act on one frame; false where it makes no sense."""
        if kind in (b"p", b"c"):
            self._feed.pause(kind == b"p")
            return not content
        if kind not in self._relayed:
            return False
        self._relayed[kind].feed_data(content)
        return True

    def over(self, code: int, *, out_of_memory: bool = False, complaint: str = "") -> None:
        """Be told that everything of this run is gone.

        Args:
            code: How the child ended.
            starved: Whether the kernel has ended something of it for want of memory.
            complaint: What the zygote said last, where it ended too.
        """
        self._code = code
        self.out_of_memory = out_of_memory
        self.complaint = complaint
        if self._ultimatum is not None:
            self._ultimatum.cancel()
        for stream in self._relayed.values():
            stream.feed_eof()
        self._feed.pause(False)
        self._gone.set()

    def kill(self) -> None:
        """End everything of this run now."""
        if self._code is None and not self.killed:
            self.killed = True
            self._zygote.send(b"k")
            loop = asyncio.get_running_loop()
            self._ultimatum = loop.call_later(
                CHILD_KILL_TIMEOUT_S, self._zygote.kill, "it did not end a child"
            )

    async def wait(self) -> int:
        """Wait until everything of this run is gone."""
        await self._gone.wait()
        assert self._code is not None
        return self._code

    def release(self) -> None:
        """Let go of the pipes, where there are some; safe to call twice."""
        if self._pipes is not None:
            self._pipes.close()


class RunFeed:
    """A child's stdin; see `running.Feed`."""

    def __init__(self, zygote: ZygoteControl, run: ZygoteRun, *, closed: bool) -> None:
        self._zygote = zygote
        self._run = run
        self._waiting = bytearray()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._closed = closed

    def write(self, data: bytes) -> None:
        """Take bytes; they go out with `drain`."""
        if not self._closed:
            self._waiting += data

    async def drain(self) -> None:
        """Send what was written, as fast as the child takes it."""
        while self._waiting:
            await self._flowing.wait()
            if self._run.returncode is not None:  # what is sent now would be the next run's
                break
            self._zygote.send(b"i", bytes(self._waiting[:READ_CHUNK_BYTES]))
            del self._waiting[:READ_CHUNK_BYTES]
            with suppress(BrokenPipeError, ConnectionResetError):
                await self._zygote.drain()
        self._waiting.clear()

    def pause(self, paused: bool) -> None:
        """Be told whether the child has enough for now."""
        if paused:
            self._flowing.clear()
        else:
            self._flowing.set()

    def close(self) -> None:
        """Let the program see the end; safe to call twice."""
        if not self._closed and self._run.returncode is None:
            self._zygote.send(b"i")
        self._closed = True


class OutputValve(asyncio.Transport):
    """What a stream's reader tells that it has enough for now."""

    def __init__(self, zygote: ZygoteControl, run: ZygoteRun) -> None:
        super().__init__()
        self._zygote = zygote
        self._run = run

    def pause_reading(self) -> None:
        """Let the child wait."""
        self._order(b"p")

    def resume_reading(self) -> None:
        """Let the child go on."""
        self._order(b"c")

    def _order(self, kind: bytes) -> None:
        if self._run.returncode is None:
            self._zygote.send(kind)
