"""The direct pipes between the host and a conversation's program in a zygote.

A zygote on this machine gets a socket beside its streams, from which only the zygote reads. Through it the
host sends the program's ends of two pipes, so that the conversation does not pass through the zygote. Pipes
belong to no namespace, so the program learns nothing from them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack


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
