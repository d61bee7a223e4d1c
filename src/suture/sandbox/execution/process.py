"""What runs a program behind a wall, as the host sees it: its streams, what is kept of them, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Protocol, Self

from suture.sandbox.execution.memory_cgroups import MemoryCgroup


class Feed(Protocol):
    """Where a program's stdin is written."""

    def write(self, data: bytes) -> None:
        """Take bytes; they may go out only with `drain`."""
        ...

    async def drain(self) -> None:
        """Wait until more may be written."""
        ...

    def close(self) -> None:
        """Let the program see the end; safe to call twice."""
        ...


class SupervisedRun(Protocol):
    """One program and the supervisor beside it, behind a wall.

    Attributes:
        stdin: Where the program's stdin is written.
        stdout: What the program writes to its stdout.
        stderr: The program's, and before it starts that of whatever builds the wall.
        report: What the supervisor says of the run (see `report.py`).
    """

    stdin: Feed
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    report: asyncio.StreamReader

    @property
    def returncode(self) -> int | None:
        """How the supervisor ended, once it has."""
        ...

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended something of it for want of memory; settled once all is gone."""
        ...

    @property
    def complaint(self) -> str:
        """What the supervisor said of itself before it ended, where it did; settled once all is gone."""
        ...

    def kill(self) -> None:
        """End everything of this run now."""
        ...

    async def wait(self) -> int:
        """Wait until everything of this run is gone."""
        ...

    def release(self) -> None:
        """Let go of what is held besides; safe to call twice."""
        ...


class ColdRun:
    """A wall of its own for one program. Make it with `ColdProcess.start`."""

    def __init__(
        self,
        process: Process,
        report: asyncio.StreamReader,
        report_pipe: asyncio.ReadTransport,
        lifeline: asyncio.WriteTransport,
        cgroup: MemoryCgroup | None,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin: Feed = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.report = report
        self._report_pipe = report_pipe
        self._lifeline = lifeline
        self._cgroup = cgroup
        self._process = process

    @classmethod
    async def start(
        cls,
        packed: bytes,
        command: Sequence[str],
        inherit: Sequence[int],
        cgroup: MemoryCgroup | None = None,
    ) -> Self:
        """Start what builds the wall.

        Args:
            packed: The request, as `inside.py` reads it.
            command: What builds the wall and starts `inside.py`; its last two words, the descriptors of the
                request and of the report, are added here.
            inherit: Descriptors that the command needs besides.
            group: The control group that the command enters; it is dropped with what is started.
        """
        with ExitStack() as unless_started, ExitStack() as passed_on:
            request_fd, lifeline_fd = os.pipe()
            passed_on.callback(os.close, request_fd)
            lifeline = await _open_lifeline(lifeline_fd)
            unless_started.callback(lifeline.close)
            read_fd, write_fd = os.pipe()
            passed_on.callback(os.close, write_fd)
            report, report_pipe = await _open_report(read_fd)
            unless_started.callback(report_pipe.close)
            words = (*command, str(request_fd), str(write_fd))
            process = await start_session(words, (request_fd, write_fd, *inherit))
            unless_started.pop_all()
        lifeline.write(len(packed).to_bytes(8, "big"))
        lifeline.write(packed)
        return cls(process, report, report_pipe, lifeline, cgroup)

    @property
    def returncode(self) -> int | None:
        """How bubblewrap ended, once it has."""
        return self._process.returncode

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended something of it for want of memory; settled once all is gone."""
        return self._cgroup is not None and self._cgroup.kills() > 0

    complaint = ""

    def kill(self) -> None:
        """End everything of this run now."""
        kill_session(self._process)

    async def wait(self) -> int:
        """Wait until bubblewrap is gone."""
        return await self._process.wait()

    def release(self) -> None:
        """Let go of its pipes and of its control group; safe to call twice."""
        self._report_pipe.close()
        if self._cgroup is not None:
            self._cgroup.drop()
        self.hang_up()

    def hang_up(self) -> None:
        """Let what supervises the program believe that its host is gone; safe to call twice."""
        if not self._lifeline.is_closing():
            self._lifeline.abort()


async def start_session(command: Sequence[str], inherit: Sequence[int] = ()) -> Process:
    """Start what builds a wall, as the leader of a session, with pipes for its streams.

    Args:
        command: The words to start it with; its environment is empty, for it may be in sight behind the wall.
        inherit: Descriptors that the command needs.
    """
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            cwd="/",
            pass_fds=tuple(inherit),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cut short, asyncio would end this one process only, and what it has forked by then would live on.
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            kill_session(starting.result())
            await starting.result().communicate()
        raise


def kill_session(process: Process) -> None:
    """End a bubblewrap that leads a session, and everything behind its wall.

    The rest dies with it (`--die-with-parent`, and then its PID namespace); but its own child asks for that
    only some time after it was forked, and until then belongs to its group.

    Where the host itself is killed nobody does this, and it may die before anyone has asked to die with it.
    Then what runs behind the wall sees a pipe from the host end, and ends too.
    """
    # Not `process.kill`: it reaps a child that has just died, and asyncio then never learns how.
    if process.returncode is None:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(process.pid, signal.SIGKILL)


def create_memory_file(content: bytes) -> int:
    """A descriptor to read this content from, once; it belongs to the caller."""
    handle = os.memfd_create("suture")
    with os.fdopen(handle, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


async def _open_report(read_fd: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(read_fd, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    return reader, transport


async def _open_lifeline(write_fd: int) -> asyncio.WriteTransport:
    pipe = os.fdopen(write_fd, "wb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.Protocol, pipe)
    return transport


class CappedOutput:
    """Keeps the head and the tail of a stream; memory stays within twice the limit.

    Args:
        limit: The most bytes to keep, half of them from each end.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def truncated(self) -> bool:
        """Whether anything was left out."""
        return self.total > 2 * self._half

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[max(0, room) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def content(self) -> bytes:
        """What was kept; the cut is stated where there is one."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        left_out = self.total - 2 * self._half
        return (
            bytes(self._head)
            + b"\n[... %d bytes left out ...]\n" % left_out
            + bytes(self._tail[-self._half :])
        )
