"""How the host reaches a zygote: its streams, its end, and a way to kill it.

The direct pipes between the host and a conversation's program in a zygote.

A zygote on this machine gets a socket in addition to its streams, from which only the zygote reads. Through it the
host sends the program's ends of two pipes, so that the conversation does not pass through the zygote. Pipes
belong to no namespace, so the program learns nothing from them.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

from suture.sandbox.execution.process import kill_session, read_source, start_session
from suture.sandbox.seccomp import build_filter_for_host


class ZygoteTransport(Protocol):
    """The connection to a zygote: in a process on this machine, in a container, or on another machine.

    Attributes:
        stdout: What the zygote writes to its stdout.
        stderr: The zygote's stderr; before it starts, that of whatever builds the sandbox.
    """

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def write(self, data: bytes) -> None:
        """Queue bytes for the zygote's stdin. This does not fail if the zygote is gone."""
        ...

    async def drain(self) -> None:
        """Wait until more may be written. Raises `ConnectionError` if the zygote is gone."""
        ...

    def close_stdin(self) -> None:
        """Let the zygote see the end of its stdin. Safe to call twice."""
        ...

    @property
    def returncode(self) -> int | None:
        """The zygote's exit code, once it has ended; negative for a signal, or if the cause is unknown."""
        ...

    def kill(self) -> None:
        """Kill the zygote and everything that runs in it now. Safe to call twice."""
        ...

    async def wait(self) -> int:
        """Wait until everything is gone, and return how it ended."""
        ...


class StreamStdin:
    """Base class of transports whose stdin is an asyncio stream. It implements only the part about stdin."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    def write(self, data: bytes) -> None:
        """See `ZygoteTransport.write`."""
        if not self._stdin.is_closing():
            self._stdin.write(data)

    async def drain(self) -> None:
        """See `ZygoteTransport.drain`."""
        await self._stdin.drain()

    def close_stdin(self) -> None:
        """See `ZygoteTransport.close_stdin`."""
        self._stdin.close()


class ProcessTransport(StreamStdin):
    """A process on this machine that leads a session. Create it with `ProcessTransport.start`."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        super().__init__(process.stdin)
        self._process = process
        self.stdout = process.stdout
        self.stderr = process.stderr

    @classmethod
    async def start(cls, command: Sequence[str], inherit: Sequence[int] = ()) -> ProcessTransport:
        """Start the command that builds the sandbox with the zygote in it; see `start_session`."""
        return cls(await start_session(command, inherit))

    @property
    def returncode(self) -> int | None:
        """See `ZygoteTransport.returncode`."""
        return self._process.returncode

    def kill(self) -> None:
        """See `ZygoteTransport.kill`."""
        kill_session(self._process)

    async def wait(self) -> int:
        """See `ZygoteTransport.wait`."""
        return await self._process.wait()


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


PARTS = (
    "suture.sandbox.execution.supervisor",
    "suture.sandbox.zygote.inside.kernel",
    "suture.sandbox.zygote.inside.child",
    "suture.sandbox.zygote.inside.relay",
    "suture.sandbox.zygote.inside.server",
)
"""The modules of the zygote in import order; the last one serves."""
PACKAGES = (
    "suture",
    "suture.sandbox",
    "suture.sandbox.execution",
    "suture.sandbox.zygote",
    "suture.sandbox.zygote.inside",
)
"""The parent packages of `PARTS`, which become empty modules in the zygote."""


ZYGOTE_ENVIRONMENT = {"LD_BIND_NOW": "1", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
"""Environment of a process that is forked from. `LD_BIND_NOW`: otherwise each child repeats the symbol
lookups of its libraries. `MALLOC_ARENA_MAX`: glibc reserves 64 MiB of address space for each thread's arena,
and the limit on address space has room for only some twenty."""


def read_boot_source() -> str:
    """Return the source of the program that loads the zygote."""
    return read_source("suture.sandbox.zygote.inside.boot")


def build_bundle(
    modules: Mapping[str, bytes],
    preload: str,
    mount_targets: Sequence[str],
    *,
    namespaces: bool = True,
    hidden_folders: Sequence[str] = (),
    fd_socket: int | None = None,
) -> bytes:
    """Return what the zygote reads first: its sources, then a frame with its settings.

    Args:
        modules: Modules to import before the first run, as in a request.
        preload: Code to run before the first run.
        mount_targets: The targets of all mounts.
        namespaces: Whether each run gets its own namespaces; otherwise there is only one run.
        hidden_folders: Folders inside the sandbox that each run covers with an empty one.
        fd_socket: The file descriptor of the socket through which the zygote receives descriptors.
    """
    sources = [*((name, "") for name in PACKAGES), *((name, read_source(name)) for name in PARTS)]
    settings = {
        "filter": build_filter_for_host().hex(),
        "modules": {_module(path): content.decode("utf-8") for path, content in modules.items()},
        "preload": preload,
        "namespaces": namespaces,
        # Each run mounts an empty /tmp over these, and then shows them again.
        "covered": [path for path in mount_targets if path.startswith("/tmp/")],
        "hidden_folders": list(hidden_folders),
        "fd_socket": fd_socket,
    }
    return _with_length(sources) + b"s" + _with_length(settings)  # a frame's kind, which is ignored


def _with_length(value: object) -> bytes:
    text = json.dumps(value).encode("ascii")
    return len(text).to_bytes(4, "big") + text


def _module(path: str) -> str:
    """Return the name by which a file is imported: `a.b` for `a/b.py` and for `a/b/__init__.py`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
