"""What `inside.py` says of a run. It comes from behind the wall, so nothing of it is believed unread."""
# FIXME doc of sandbox/execution/program: """One process tree behind the wall: started, fed, watched, ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from signal import Signals
from typing import Any, Literal

from suture.errors import SandboxBroken, UsageError
from suture.sandbox.contract import RunRequest, RunResult, RunStatus
from suture.sandbox.execution.process import CappedOutput, SupervisedRun
from suture.sandbox.tuning import (
    FLOOD_FACTOR,
    KILL_TIMEOUT_S,
    MAX_COLLECTED_BYTES,
    READ_CHUNK_BYTES,
    REMOVAL_TIMEOUT_S,
    SETUP_TIMEOUT_S,
    WATCHDOG_GRACE_S,
)

EndingKind = Literal["exit", "signal", "timeout", "memory"]


@dataclass(frozen=True, kw_only=True)
class ProgramEnding:
    """How the program ended, by its own side's account.

    Attributes:
        kind: It exited, a signal ended it, its time was up, or it held too much memory in all.
        number: The exit code or the signal.
        cpu_s: CPU seconds of all its processes.
        files: The files that were asked for, path -> content.
    """

    kind: EndingKind
    number: int
    cpu_s: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)


KINDS: dict[bytes, EndingKind] = {b"e": "exit", b"s": "signal", b"t": "timeout", b"m": "memory"}


async def read_start(report: asyncio.StreamReader) -> str | None:
    """Wait until the program starts.

    Returns:
        `None` when it does; else why not, empty where the wall fell before it could say so.
    """
    first = await report.read(1)
    if first == b"S":
        return None
    return (await report.read(4096)).decode("utf-8", "replace") if first == b"X" else ""


async def read_ending(report: asyncio.StreamReader, collect: Sequence[str]) -> ProgramEnding | None:
    """Read how the program ended; `None` where the account breaks off or makes no sense.

    Args:
        report: The report's pipe, after its start.
        collect: The paths that were asked for.
    """
    try:
        head = await report.readexactly(10)
        kind = KINDS.get(head[1:2])
        if head[:1] != b"E" or kind is None:
            return None
        files: dict[str, bytes] = {}
        room = MAX_COLLECTED_BYTES
        while (tag := await report.readexactly(1)) == b"F":
            index = int.from_bytes(await report.readexactly(4), "big")
            size = int.from_bytes(await report.readexactly(8), "big")
            if index >= len(collect) or size > room:
                return None
            room -= size
            files[collect[index]] = await report.readexactly(size)
    except asyncio.IncompleteReadError:
        return None
    if tag != b".":
        return None
    number, cpu_ms = int.from_bytes(head[2:6], "big"), int.from_bytes(head[6:], "big")
    return ProgramEnding(kind=kind, number=number, cpu_s=cpu_ms / 1000, files=files)


SIGNAL_CODES = 128
"""bubblewrap's exit code is this plus the signal that ended its child."""


class SandboxNotStarted(Exception):
    """Bubblewrap gave up before the program could start; the text is its own."""


class Program:
    """A program that runs, or ran, behind a wall. Make it with `Program.start`."""

    def __init__(self, request: RunRequest, running: SupervisedRun) -> None:
        self.stdin = running.stdin
        self.stdout = running.stdout
        self._running = running
        self._request = request
        self._output = CappedOutput(request.limits.output_bytes)
        self._errors = CappedOutput(request.limits.output_bytes)
        self._killed_as: RunStatus | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._ending: asyncio.Task[ProgramEnding | None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._collecting_stdout = False
        self._started_s = 0.0

    @classmethod
    async def start(
        cls, request: RunRequest, running: SupervisedRun, among: set[Program] | None = None
    ) -> Program:
        """Wait until the program starts.

        Args:
            request: What to run.
            running: The process that was started for it, and its streams.
            among: Has it from the first moment, so that whoever ends all of them ends it too.

        Raises:
            UsageError: The files do not fit.
            SandboxNotStarted: It ended before the program could start.
            SandboxBroken: It did neither start nor end.
        """
        program = cls(request, running)
        if among is not None:
            among.add(program)
        try:
            await program._await_start()
        except BaseException:
            if among is not None:
                among.discard(program)
            await program.kill_and_release()
            raise
        return program

    async def _await_start(self) -> None:
        self._keep(self._pump(self._running.stderr, self._errors))
        try:
            async with asyncio.timeout(SETUP_TIMEOUT_S):
                complaint = await read_start(self._running.report)
                if complaint == "":
                    await asyncio.gather(*self._tasks)
        except TimeoutError as fault:
            raise SandboxBroken(f"the wall did not stand after {SETUP_TIMEOUT_S:g} s") from fault
        if complaint == "":
            raise SandboxNotStarted(self._errors.content().decode("utf-8", "replace").strip())
        if complaint is not None:
            raise UsageError(
                f"the files could not be laid behind the wall: {complaint}", remedy="raise sandbox.disk_mb"
            )
        self._started_s = time.monotonic()
        self._ending = asyncio.create_task(read_ending(self._running.report, self._request.collect))
        self._watching = self._keep(self._watch())

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    async def _pump(self, stream: asyncio.StreamReader, output: CappedOutput) -> None:
        flood = FLOOD_FACTOR * self._request.limits.output_bytes
        while chunk := await stream.read(READ_CHUNK_BYTES):
            output.add(chunk)
            if output.total > flood:
                self.kill("output_limit")

    async def _watch(self) -> None:
        # Its own side ends a late program; this is for when that side was ended or stopped by the program.
        assert self._ending is not None
        await asyncio.wait([self._ending], timeout=self._request.limits.wall_s + WATCHDOG_GRACE_S)
        if not self._ending.done():
            self.kill("timeout")
            await asyncio.wait([self._ending], timeout=KILL_TIMEOUT_S)

    def kill(self, status: RunStatus) -> None:
        """End the whole tree now.

        Args:
            status: Why, unless the program has already ended otherwise.
        """
        if self._killed_as is None and self._running.returncode is None:
            self._killed_as = status
        self._running.kill()

    def _collect_stdout(self) -> None:
        if not self._collecting_stdout:
            self._collecting_stdout = True
            self._keep(self._pump(self.stdout, self._output))

    async def terminate(self, status: RunStatus, *, grace_s: float = 0.0) -> None:
        """Wait a little for the program to end by itself, then end it; it is dead when this returns.

        Args:
            status: Why it is ended, where it must be.
            grace_s: Seconds to wait first.

        Raises:
            SandboxBroken: It still lives after SIGKILL.
        """
        assert self._ending is not None
        if grace_s:
            await asyncio.wait([self._ending], timeout=grace_s)
        if not self._ending.done():
            self.kill(status)
        await self._await_death(KILL_TIMEOUT_S)

    async def write_stdin(self) -> None:
        """Write the request's stdin and close it; a program that does not read it is not at fault."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(self._request.stdin)
            await self.stdin.drain()
        self.close_stdin()

    def close_stdin(self) -> None:
        """Let the program see the end of its stdin."""
        self.stdin.close()

    async def wait_for_result(self, *, grace_s: float | None = None) -> RunResult:
        """Wait for the program's end and tell of it.

        Args:
            grace_s: Seconds after which it is ended; by default only its own limits count.

        Raises:
            SandboxBroken: Something still lives after SIGKILL, or the wall was ended by someone else.
        """
        self._collect_stdout()
        if grace_s is not None:
            await self.terminate("timeout", grace_s=grace_s)
        ending = await self._await_ending()
        wall_s = time.monotonic() - self._started_s
        if ending is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._running.wait(), 1)
            self.kill("failed")  # a forged or broken account, and still alive
        await self._await_death(KILL_TIMEOUT_S, *self._tasks)
        status, exit_code, signal = self._judge(ending)
        return RunResult(
            status=status,
            exit_code=exit_code,
            signal=signal,
            stdout=self._output.content(),
            stderr=self._errors.content(),
            truncated=self._output.truncated or self._errors.truncated,
            files=ending.files if ending else {},
            wall_s=wall_s,
            cpu_s=ending.cpu_s if ending else None,
        )

    async def _await_ending(self) -> ProgramEnding | None:
        """Its side's account; `None` also where it was ended and nobody told of it in time."""
        assert self._ending is not None
        assert self._watching is not None
        await asyncio.wait([self._ending, self._watching], return_when=asyncio.FIRST_COMPLETED)
        return self._ending.result() if self._ending.done() else None

    async def _await_death(self, most_s: float, *tasks: asyncio.Task[Any]) -> None:
        try:
            async with asyncio.timeout(most_s):
                await asyncio.gather(self._running.wait(), *tasks)
        except TimeoutError as fault:
            raise SandboxBroken("something behind the wall still lives after SIGKILL") from fault

    def _judge(self, ending: ProgramEnding | None) -> tuple[RunStatus, int | None, int | None]:
        if self._running.out_of_memory:
            return "memory", None, None
        if self._killed_as is not None:
            return self._killed_as, None, None
        if ending is None:
            return self._judge_without_ending(self._running.returncode or 0)
        if ending.kind == "memory":
            return "memory", None, None
        if ending.kind == "timeout" or (ending.kind == "signal" and ending.number == Signals.SIGXCPU):
            return "timeout", None, None
        if ending.kind == "signal":
            return "signalled", None, ending.number
        if ending.number == 0:
            return "ok", 0, None
        return ("memory" if _ran_out_of_memory(self._errors.content()) else "failed"), ending.number, None

    def _judge_without_ending(self, code: int) -> tuple[RunStatus, int | None, int | None]:
        if code < 0:
            last = self._running.complaint.splitlines()[-1:]
            raise SandboxBroken(": ".join((f"the wall was ended from outside, by signal {-code}", *last)))
        if code > SIGNAL_CODES:
            # Only the program could end its trusted parent: it killed all that it could reach.
            return "signalled", None, code - SIGNAL_CODES
        return "failed", None, None

    async def kill_and_release(self) -> None:
        """Kill what still runs and let go of every descriptor; safe to call twice.

        Raises:
            SandboxBroken: Something still lives after SIGKILL.
        """
        self.kill("signalled")
        self.stdin.close()
        self._collect_stdout()
        tasks = [*self._tasks, *([self._ending] if self._ending else [])]
        _, alive = await asyncio.wait(tasks, timeout=KILL_TIMEOUT_S)
        for task in alive:
            task.cancel()
        self._running.release()
        await self._await_death(REMOVAL_TIMEOUT_S)


def _ran_out_of_memory(errors: bytes) -> bool:
    lines = errors.rstrip().splitlines()
    return bool(lines) and lines[-1].startswith(b"MemoryError")
