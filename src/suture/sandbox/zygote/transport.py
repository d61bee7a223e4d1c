"""What a zygote lives in, as the host sees it: streams, an end, and a way to end it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Protocol

from suture.sandbox.execution.process import kill_session, start_session


class ZygoteTransport(Protocol):
    """Whatever carries a zygote: a process on this machine, a container, something further away.

    Attributes:
        stdout: What the zygote writes to its stdout.
        stderr: The zygote's, and before it starts that of whatever builds the wall.
    """

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def write(self, data: bytes) -> None:
        """Take bytes for the zygote's stdin; one that is gone does not make this fail."""
        ...

    async def drain(self) -> None:
        """Wait until more may be written; raises `ConnectionError` where it is gone."""
        ...

    def close_stdin(self) -> None:
        """Let the zygote see the end; safe to call twice."""
        ...

    @property
    def returncode(self) -> int | None:
        """How it ended, once it has; negative for a signal, or where nothing is known."""
        ...

    def kill(self) -> None:
        """End it, and everything that runs in it, now; safe to call twice."""
        ...

    async def wait(self) -> int:
        """Wait until everything is gone, and tell how it ended."""
        ...


class StreamTransport:
    """What carriers have in common whose stdin is a stream of asyncio's.

    Args:
        stdin: The zygote's.
    """

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    def write(self, data: bytes) -> None:
        """Take bytes for the zygote's stdin; one that is gone does not make this fail."""
        if not self._stdin.is_closing():
            self._stdin.write(data)

    async def drain(self) -> None:
        """Wait until more may be written; raises `ConnectionError` where it is gone."""
        await self._stdin.drain()

    def close_stdin(self) -> None:
        """Let the zygote see the end; safe to call twice."""
        self._stdin.close()


class ProcessTransport(StreamTransport):
    """A process on this machine that leads a session. Make it with `ProcessCarrier.start`."""

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
        """Start what builds the wall and the zygote behind it.

        Args:
            command: The words to start it with; its environment is empty.
            inherit: Descriptors that the command needs.
        """
        return cls(await start_session(command, inherit))

    @property
    def returncode(self) -> int | None:
        """How the process ended, once it has."""
        return self._process.returncode

    def kill(self) -> None:
        """End it, and everything that runs in it, now; safe to call twice."""
        kill_session(self._process)

    async def wait(self) -> int:
        """Wait until the process is gone, and tell how it ended."""
        return await self._process.wait()
