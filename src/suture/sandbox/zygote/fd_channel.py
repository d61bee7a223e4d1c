"""Pipes from the host straight to a conversation's program, so that its words do not pass through the zygote.

A zygote of this machine gets a socket beside its streams, from which only it reads. The host sends it the
program's ends of two pipes; pipes belong to no namespace, so the program learns nothing by holding them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack


class FdSender:
    """The way by which a zygote is given descriptors."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)

    @property
    def theirs(self) -> int:
        """The zygote's end, until `let_go`."""
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

    def let_go(self) -> None:
        """Close the zygote's end on this side, once it has been started."""
        self._theirs.close()

    def close(self) -> None:
        """Close both; safe to call twice."""
        self._theirs.close()
        self._ours.close()


class FdChannel:
    """The host's ends of a program's stdin and stdout. Make them with `FdChannel.lay`."""

    def __init__(
        self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, source: asyncio.ReadTransport
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self._source = source

    @classmethod
    async def lay(cls, fd_sender: FdSender) -> FdChannel:
        """Make two pipes and give the program's ends away.

        Args:
            fd_sender: Of the zygote whose next run has the program.
        """
        loop = asyncio.get_running_loop()
        with ExitStack() as theirs, ExitStack() as unless_laid:
            stdin_read, stdin_write = os.pipe()
            theirs.callback(os.close, stdin_read)
            sink = os.fdopen(stdin_write, "wb", buffering=0)
            unless_laid.callback(sink.close)
            stdout_read, stdout_write = os.pipe()
            theirs.callback(os.close, stdout_write)
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
