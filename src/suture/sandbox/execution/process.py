"""A program in a sandbox as the host sees it: its streams, its supervisor's report, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import resources
from typing import Protocol, Self

from suture.sandbox.execution.memory_cgroups import MemoryCgroup


class StdinWriter(Protocol):
    """The stdin of a program."""

    def write(self, data: bytes) -> None:
        """Queue bytes; they may be sent only by `drain`."""
        ...

    async def drain(self) -> None:
        """Wait until more may be written."""
        ...

    def close(self) -> None:
        """Let the program see the end of its stdin. Safe to call twice."""
        ...


class SupervisedRun(Protocol):
    """One program in a sandbox, with its supervisor.

    Attributes:
        stdin: The program's stdin.
        stdout: What the program writes to its stdout.
        stderr: The program's stderr; before the program starts, that of whatever builds the sandbox.
        report: What the supervisor reports about the run (see `supervisor.py`).
    """

    stdin: StdinWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    report: asyncio.StreamReader

    @property
    def returncode(self) -> int | None:
        """The exit code of the supervisor or of what started it, once it has ended; negative for a signal."""
        ...

    @property
    def out_of_memory(self) -> bool:
        """Whether the OOM killer has killed a process of this run. Final once everything is gone."""
        ...

    @property
    def error_text(self) -> str:
        """What the supervisor printed before it ended abnormally. Final once everything is gone."""
        ...

    def kill(self) -> None:
        """Kill everything of this run now."""
        ...

    async def wait(self) -> int:
        """Wait until everything of this run is gone."""
        ...

    def release(self) -> None:
        """Release the remaining resources. Safe to call twice."""
        ...


class ColdRun:
    """A sandbox that was built for one program. Create it with `ColdRun.start`.

    The pipe that carries the request is the *lifeline*: it stays open as long as the host lives, and the
    supervisor ends when it is closed.
    """

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
        self.stdin: StdinWriter = process.stdin
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
        encoded: bytes,
        command: Sequence[str],
        inherit: Sequence[int],
        cgroup: MemoryCgroup | None = None,
    ) -> Self:
        """Start the command that builds the sandbox.

        Args:
            encoded: The request, as `supervisor.py` reads it.
            command: The command that builds the sandbox and starts `supervisor.py`. Its last two arguments,
                the descriptors of the request and of the report, are added here.
            inherit: Further file descriptors that the command needs.
            cgroup: The control group that the command enters.
        """
        with ExitStack() as cleanup_on_failure, ExitStack() as child_ends:
            request_fd, lifeline_fd = os.pipe()
            child_ends.callback(os.close, request_fd)
            lifeline = await _open_lifeline(lifeline_fd)
            cleanup_on_failure.callback(lifeline.close)
            read_fd, write_fd = os.pipe()
            child_ends.callback(os.close, write_fd)
            report, report_pipe = await _open_report(read_fd)
            cleanup_on_failure.callback(report_pipe.close)
            full_command = (*command, str(request_fd), str(write_fd))
            process = await start_session(full_command, (request_fd, write_fd, *inherit))
            cleanup_on_failure.pop_all()
        lifeline.write(len(encoded).to_bytes(8, "big"))
        lifeline.write(encoded)
        return cls(process, report, report_pipe, lifeline, cgroup)

    @property
    def returncode(self) -> int | None:
        """See `SupervisedRun.returncode`."""
        return self._process.returncode

    @property
    def out_of_memory(self) -> bool:
        """See `SupervisedRun.out_of_memory`."""
        return self._cgroup is not None and self._cgroup.count_oom_kills() > 0

    error_text = ""

    def kill(self) -> None:
        """See `SupervisedRun.kill`."""
        kill_session(self._process)

    async def wait(self) -> int:
        """See `SupervisedRun.wait`."""
        return await self._process.wait()

    def release(self) -> None:
        """Release its pipes and its control group. Safe to call twice."""
        self._report_pipe.close()
        if self._cgroup is not None:
            self._cgroup.schedule_removal()
        self.close_lifeline()

    def close_lifeline(self) -> None:
        """Close the lifeline, so that the supervisor assumes that its host is gone. Safe to call twice."""
        if not self._lifeline.is_closing():
            self._lifeline.abort()


async def start_session(command: Sequence[str], inherit: Sequence[int] = ()) -> Process:
    """Start a command that builds a sandbox, as a session leader, with pipes for its streams.

    Its environment is empty, because the sandbox's `/proc/1/environ` shows it.

    Args:
        inherit: File descriptors that the command needs.
    """
    creation = asyncio.create_task(
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
        return await asyncio.shield(creation)
    except asyncio.CancelledError:
        # When cancelled, asyncio would kill only this process, and what it has forked by then would live on.
        await asyncio.wait([creation])
        if not creation.cancelled() and creation.exception() is None:
            kill_session(creation.result())
            await creation.result().communicate()
        raise


def kill_session(process: Process) -> None:
    """Kill a bubblewrap that leads a session, and everything in its sandbox.

    The rest dies with it (`--die-with-parent`, and then its PID namespace). But bubblewrap's child asks for
    that only some time after the fork, and until then it belongs to the process group, so the group is killed
    first.

    If the host itself is killed, nothing does this, and it may die before any child has asked to die with it.
    What runs in the sandbox then sees its pipe from the host end, and ends too.
    """
    # Not `process.kill`: it reaps a child that has just died, and asyncio then never learns its exit code.
    if process.returncode is None:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(process.pid, signal.SIGKILL)


@cache
def read_source(module: str) -> str:
    """Return the source of a module of Suture that runs inside the sandbox."""
    package, _, name = module.rpartition(".")
    return resources.files(package).joinpath(f"{name}.py").read_text("utf-8")


def create_memory_file(content: bytes) -> int:
    """Return a file descriptor from which `content` can be read once. The caller must close it."""
    memory_fd = os.memfd_create("suture")
    with os.fdopen(memory_fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(memory_fd, 0, os.SEEK_SET)
    return memory_fd


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
    """Keeps `limit` bytes of a stream, half from each end, and uses at most twice as much memory."""

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
        """Add the next bytes of the stream."""
        self.total += len(chunk)
        free_bytes = self._half - len(self._head)
        self._head += chunk[:free_bytes]
        self._tail += chunk[max(0, free_bytes) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def content(self) -> bytes:
        """Return what was kept, with a line that marks the gap if there is one."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        omitted = self.total - 2 * self._half
        gap = b"\n[... %d bytes omitted ...]\n" % omitted
        return bytes(self._head) + gap + bytes(self._tail[-self._half :])
