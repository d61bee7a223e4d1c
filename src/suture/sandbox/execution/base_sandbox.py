"""What all backends do alike: a request becomes a program that runs, is talked with, and is ended."""

from __future__ import annotations

import asyncio
import errno
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress

from suture.errors import SandboxBroken, UsageError
from suture.sandbox.contract import Capabilities, ProgramLimits, RunRequest, RunResult
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.program import Program, SandboxNotStarted
from suture.sandbox.execution.request_encoding import check_and_flatten
from suture.sandbox.tuning import EXIT_GRACE_S, FINISH_TIMEOUT_S, MAX_CHANNEL_FRAME_BYTES

HEADER_BYTES = 4
"""A frame's length, the highest byte first."""

TRIAL = RunRequest(python="", files={"trial": b""}, limits=ProgramLimits(wall_s=30))
TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)
RunStarter = Callable[[RunRequest], AbstractAsyncContextManager[SupervisedRun]]


class FrameChannel:
    """A conversation with a running program; see `contract.Channel`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def send(self, frame: bytes) -> None:
        """Send one frame. A program that has ended does not make this fail; `receive` tells.

        Raises:
            UsageError: The frame is too long.
        """
        if len(frame) > MAX_CHANNEL_FRAME_BYTES:
            raise UsageError(
                f"a frame of {len(frame)} bytes is too long; the most is {MAX_CHANNEL_FRAME_BYTES}"
            )
        with suppress(BrokenPipeError, ConnectionResetError):
            self._program.stdin.write(len(frame).to_bytes(HEADER_BYTES, "big") + frame)
            await self._program.stdin.drain()

    async def receive(self, timeout_s: float) -> bytes | None:
        """The next frame, or `None` when the program ended, sent no frame, or was late; then it is dead.

        Args:
            timeout_s: Seconds to wait for it.
        """
        try:
            async with asyncio.timeout(timeout_s):
                size = int.from_bytes(await self._program.stdout.readexactly(HEADER_BYTES), "big")
                if size <= MAX_CHANNEL_FRAME_BYTES:
                    return await self._program.stdout.readexactly(size)
            await self._program.terminate("failed")
        except TimeoutError:
            await self._program.terminate("timeout")
        except asyncio.IncompleteReadError:
            # It is about to end, and then its exit code is of interest; or it closed its stdout to hide.
            await self._program.terminate("failed", grace_s=EXIT_GRACE_S)
        return None

    async def finish(self) -> RunResult:
        """Close its stdin, end it where it still runs, and tell how it ended.

        Raises:
            SandboxBroken: The wall failed.
        """
        self._program.close_stdin()
        return await self._program.wait_for_result(grace_s=FINISH_TIMEOUT_S)


class ProgramSandbox(ABC):
    """A `contract.Sandbox`, but for what it is made of: a backend says how a request's `SupervisedRun` is begun."""

    name: str

    def __init__(self) -> None:
        self._programs: set[Program] = set()
        self._starting: set[asyncio.Task[Program]] = set()
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        self._closed = False

    @abstractmethod
    def start_run(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        """Begin to run a request that has been checked; on leaving, all of it is let go.

        Raises:
            SandboxNotStarted: What builds the wall gave up.
        """
        ...

    def start_conversation(self, request: RunRequest) -> AbstractAsyncContextManager[SupervisedRun]:
        """As `start_run`, for a program to which more is said than the request's stdin."""
        return self.start_run(request)

    @abstractmethod
    async def capabilities(self) -> Capabilities:
        """What this wall means to do here; see `contract.Sandbox`."""
        ...

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program to its end.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        return await self.run_with(request, self.start_run)

    async def run_with(self, request: RunRequest, start_run: RunStarter) -> RunResult:
        """As `run`, for what is begun in a way of its own."""
        async with self._started(request, start_run) as program:
            feeding = asyncio.create_task(program.write_stdin())
            try:
                return await program.wait_for_result()
            finally:
                feeding.cancel()

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[FrameChannel]:
        """Start a program to talk with; leaving the context kills its whole tree.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        async with self._started(request, self.start_conversation) as program:
            yield FrameChannel(program)

    def add_close_callback(self, act: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._at_close.append(act)

    async def close(self) -> None:
        """Kill everything that runs or is being started; safe to call twice.

        A run that was being started raises `SandboxBroken`.

        Raises:
            SandboxBroken: Something does not end.
        """
        self._closed = True
        while self._at_close:
            await self._at_close.pop()()
        starting = tuple(self._starting)
        for task in starting:
            task.cancel()
        if starting:
            await asyncio.wait(starting)
        ended = await asyncio.gather(
            *(program.kill_and_release() for program in tuple(self._programs)), return_exceptions=True
        )
        await self.release()
        for fault in filter(None, ended):
            raise fault

    async def release(self) -> None:  # noqa: B027 - not every backend keeps something
        """Let go of what runs are made with; nothing is being started. Safe to call twice."""

    @asynccontextmanager
    async def _started(self, request: RunRequest, start_run: RunStarter) -> AsyncIterator[Program]:
        check_and_flatten(request)
        try:
            async with AsyncExitStack() as held:
                yield await self._entered(request, start_run, held)
        finally:
            # What was in use when all else was let go.
            if self._closed and not (self._programs or self._starting):
                await self.release()

    async def _entered(self, request: RunRequest, start_run: RunStarter, held: AsyncExitStack) -> Program:
        starting = asyncio.create_task(self._start(request, start_run, held))
        self._starting.add(starting)
        try:
            await asyncio.wait([starting])
        finally:
            if starting.cancel():
                await asyncio.wait([starting])
            self._starting.discard(starting)
        if starting.cancelled():
            raise SandboxBroken(f"{self.name} was closed")
        return starting.result()

    async def _start(self, request: RunRequest, start_run: RunStarter, held: AsyncExitStack) -> Program:
        try:
            running = await held.enter_async_context(start_run(request))
            program = await Program.start(request, running, self._programs)
        except SandboxNotStarted as fault:
            raise SandboxBroken(f"{self.name} could not build the wall: {fault}") from fault
        except OSError as fault:
            raise system_error(f"{self.name} could not build the wall", fault) from fault
        held.push_async_callback(self._end, program)
        return program

    async def _end(self, program: Program) -> None:
        self._programs.discard(program)
        await program.kill_and_release()


def system_error(what: str, fault: OSError) -> SandboxBroken:
    """The fault to raise where the system refuses something that a wall needs.

    Args:
        what: Could not be done.
        fault: The system's error.
    """
    remedy = "raise the limit on open files (`ulimit -n`), or run fewer programs at once"
    return SandboxBroken(f"{what}: {fault}", remedy=remedy if fault.errno in TOO_MANY_OPEN else "")


async def try_sandbox(start_run: RunStarter) -> str:
    """What goes wrong with a wall; empty where nothing does.

    Args:
        begin: Begins to run a request behind it.
    """
    try:
        async with start_run(TRIAL) as running:
            program = await Program.start(TRIAL, running)
            try:
                result = await program.wait_for_result()
            finally:
                await program.kill_and_release()
    except (SandboxNotStarted, SandboxBroken, OSError) as fault:
        return str(fault) or "it ended without a word"
    if result.status == "ok":
        return ""
    return result.stderr.decode("utf-8", "replace").strip() or f"a trial {result.status}"
