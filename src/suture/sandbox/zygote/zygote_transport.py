"""How the host reaches a zygote: its streams, its end, and a way to kill it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Protocol

from suture.sandbox.execution.process import kill_session, start_session


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
