"""The base class of all back ends: it turns a request into a program that runs, communicates, and is ended."""

from __future__ import annotations

import asyncio
import errno
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from suture.errors import SandboxBroken, StorageError, UsageError
from suture.sandbox.contract import ProgramLimits, RunRequest, RunResult
from suture.sandbox.execution.process import SupervisedRun
from suture.sandbox.execution.program import Program, SandboxNotStarted
from suture.sandbox.execution.request_encoding import PAGE_BYTES, check_and_flatten
from suture.sandbox.tuning import (
    EXIT_GRACE_S,
    FINISH_TIMEOUT_S,
    MAX_CHANNEL_FRAME_BYTES,
    ROOM_STEP_FILES,
    ROOM_STEP_MB,
)

HEADER_BYTES = 4
"""A frame starts with its length as a big-endian u32."""

TRIAL_REQUEST = RunRequest(python="", files={"trial": b""}, limits=ProgramLimits(wall_s=30))
"""The smallest request that starts a program and writes a file."""
TOO_MANY_OPEN_FILES = (errno.EMFILE, errno.ENFILE)
"""Error numbers for too many open files in this process, and on the whole machine."""
RunStarter = Callable[[RunRequest], AbstractAsyncContextManager[SupervisedRun]]


class FrameChannel:
    """A conversation with a running program; see `contract.Channel`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def send(self, frame: bytes) -> None:
        """See `contract.Channel.send`. Raises `UsageError` for a frame that is too long."""
        if len(frame) > MAX_CHANNEL_FRAME_BYTES:
            raise UsageError(
                f"a frame of {len(frame)} bytes is too long; the most is {MAX_CHANNEL_FRAME_BYTES}"
            )
        with suppress(BrokenPipeError, ConnectionResetError):
            self._program.stdin.write(len(frame).to_bytes(HEADER_BYTES, "big") + frame)
            await self._program.stdin.drain()

    async def receive(self, timeout_s: float) -> bytes | None:
        """See `contract.Channel.receive`."""
        try:
            async with asyncio.timeout(timeout_s):
                size = int.from_bytes(await self._program.stdout.readexactly(HEADER_BYTES), "big")
                if size <= MAX_CHANNEL_FRAME_BYTES:
                    return await self._program.stdout.readexactly(size)
            await self._program.terminate("failed")
        except TimeoutError:
            await self._program.terminate("timeout")
        except asyncio.IncompleteReadError:
            # The program is about to end, and its exit code matters; or it closed its stdout and continues.
            await self._program.terminate("failed", grace_s=EXIT_GRACE_S)
        return None

    async def finish(self) -> RunResult:
        """See `contract.Channel.finish`."""
        self._program.close_stdin()
        return await self._program.wait_for_result(grace_s=FINISH_TIMEOUT_S)


class BaseSandbox(ABC):
    """A `contract.Sandbox` without its isolation: a back end adds `start_run` and `capabilities`."""

    name: str

    def __init__(self) -> None:
        self._programs: set[Program] = set()
        self._starting: set[asyncio.Task[Program]] = set()
        self._close_callbacks: list[Callable[[], Awaitable[None]]] = []
        self._closed = False

    @abstractmethod
    def start_run(
        self, request: RunRequest, *, conversation: bool = False
    ) -> AbstractAsyncContextManager[SupervisedRun]:
        """Start running a checked request. Everything is released when the context is left.

        Args:
            conversation: Whether more than the request's stdin will be sent to the program.

        Raises:
            SandboxNotStarted: The program that builds the sandbox failed.
        """
        ...

    async def run(self, request: RunRequest) -> RunResult:
        """See `contract.Sandbox.run`."""
        return await self.run_with(request, self.start_run)

    async def run_with(self, request: RunRequest, start_run: RunStarter) -> RunResult:
        """Run a program that is started by `start_run` instead of this sandbox's own method."""
        async with self._start_program(request, start_run) as program:
            feeding = asyncio.create_task(program.write_stdin())
            try:
                return await program.wait_for_result()
            finally:
                feeding.cancel()

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[FrameChannel]:
        """See `contract.Sandbox.open`."""
        async with self._start_program(request, partial(self.start_run, conversation=True)) as program:
            yield FrameChannel(program)

    def add_close_callback(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See `contract.SupportsCloseCallbacks`."""
        self._close_callbacks.append(callback)

    async def close(self) -> None:
        """Kill everything that runs or is being started. Safe to call twice.

        A run that was being started raises `SandboxBroken`.

        Raises:
            SandboxBroken: Something does not end.
        """
        self._closed = True
        while self._close_callbacks:
            await self._close_callbacks.pop()()
        starting = tuple(self._starting)
        for task in starting:
            task.cancel()
        if starting:
            await asyncio.wait(starting)
        outcomes = await asyncio.gather(
            *(program.kill_and_release() for program in tuple(self._programs)), return_exceptions=True
        )
        await self.release()
        for fault in filter(None, outcomes):
            raise fault

    async def release(self) -> None:  # noqa: B027 - not every back end holds resources
        """Release what all runs share, such as zygotes. No run is being started. Safe to call twice."""

    @asynccontextmanager
    async def _start_program(self, request: RunRequest, start_run: RunStarter) -> AsyncIterator[Program]:
        request = replace(request, limits=make_room(request))
        check_and_flatten(request)
        try:
            async with AsyncExitStack() as stack:
                yield await self._await_program(request, start_run, stack)
        finally:
            # The last program after `close` releases what was still in use then.
            if self._closed and not (self._programs or self._starting):
                await self.release()

    async def _await_program(
        self, request: RunRequest, start_run: RunStarter, stack: AsyncExitStack
    ) -> Program:
        """Start a program in its own task, so that `close` can cancel it."""
        starting = asyncio.create_task(self._create_program(request, start_run, stack))
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

    async def _create_program(
        self, request: RunRequest, start_run: RunStarter, stack: AsyncExitStack
    ) -> Program:
        """Start a program, and register on the stack what ends it."""
        try:
            supervised_run = await stack.enter_async_context(start_run(request))
            program = await Program.start(request, supervised_run, self._programs)
        except SandboxNotStarted as fault:
            raise SandboxBroken(f"{self.name} could not build the sandbox: {fault}") from fault
        except OSError as fault:
            raise system_error(f"{self.name} could not build the sandbox", fault) from fault
        stack.push_async_callback(self._end_program, program)
        return program

    async def _end_program(self, program: Program) -> None:
        self._programs.discard(program)
        await program.kill_and_release()


def system_error(action: str, fault: OSError | StorageError) -> SandboxBroken:
    """Return the exception to raise if the operating system refuses `action`, which a sandbox needs."""
    if isinstance(fault, StorageError):
        return SandboxBroken(f"{action}: {fault.message}", remedy=fault.remedy)
    remedy = "raise the limit on open files (`ulimit -n`), or run fewer programs at once"
    return SandboxBroken(f"{action}: {fault}", remedy=remedy if fault.errno in TOO_MANY_OPEN_FILES else "")


def make_room(request: RunRequest) -> ProgramLimits:
    """Return limits that leave a program its own space and inodes in addition to the files of its request."""
    limits, size = request.limits, sum(map(len, request.files.values())) + PAGE_BYTES * len(request.files)
    # This is done in large steps, because a place that was prepared for one request serves the next one of its size.
    more_mb = _count_steps(size, ROOM_STEP_MB << 20) * ROOM_STEP_MB
    more_inodes = _count_steps(len(request.files), ROOM_STEP_FILES) * ROOM_STEP_FILES
    return replace(limits, disk_mb=limits.disk_mb + more_mb, inodes=limits.inodes + more_inodes)


def _count_steps(amount: int, step: int) -> int:
    """Return how many steps an amount needs; less than a hundredth of a step is ignored, as in small requests."""
    return -(-(amount - step // 100) // step)


async def try_sandbox(start_run: RunStarter) -> str:
    """Run a trial program that `start_run` starts, and return what goes wrong; empty if nothing does."""
    try:
        async with start_run(TRIAL_REQUEST) as supervised_run:
            program = await Program.start(TRIAL_REQUEST, supervised_run)
            try:
                result = await program.wait_for_result()
            finally:
                await program.kill_and_release()
    except (SandboxNotStarted, SandboxBroken, OSError) as fault:
        return str(fault) or "it ended without a message"
    if result.status == "ok":
        return ""
    return result.stderr.decode("utf-8", "replace").strip() or f"the trial run ended with {result.status!r}"
