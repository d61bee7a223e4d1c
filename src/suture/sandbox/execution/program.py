"""A program in a sandbox: wait for its start, feed it, watch it, end it, and read its supervisor's report.

The report comes from inside the sandbox, so nothing in it is trusted before it is checked.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from signal import Signals
from typing import Any, Literal

from suture.errors import SandboxBroken, UsageError
from suture.sandbox import tuning
from suture.sandbox.contract import RunRequest, RunResult, RunStatus
from suture.sandbox.execution.process import CappedOutput, SupervisedRun

EndingKind = Literal["exit", "signal", "timeout", "memory"]


@dataclass(frozen=True, kw_only=True)
class ProgramEnding:
    """How the program ended, according to its supervisor.

    Attributes:
        kind: It exited, a signal ended it, it timed out, or it used too much memory in total.
        number: The exit code or the signal; 0 for the other kinds.
        cpu_s: CPU seconds of all its processes.
        files: The collected files, path -> content.
        changed: See `RunResult.changed`.
        created: See `RunResult.created`.
    """

    kind: EndingKind
    number: int
    cpu_s: float = 0.0
    files: dict[str, bytes] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    created: frozenset[str] = frozenset()


# The letters of the report's line `E` (see `supervisor.py`).
KINDS: dict[bytes, EndingKind] = {b"e": "exit", b"s": "signal", b"t": "timeout", b"m": "memory"}


async def read_start(report: asyncio.StreamReader) -> str | None:
    """Return `None` when the program starts, or the supervisor's message if it does not start.

    The message is empty if the sandbox died without one.
    """
    tag = await report.read(1)
    if tag == b"S":
        return None
    return (await report.read(4096)).decode("utf-8", "replace") if tag == b"X" else ""


async def read_ending(report: asyncio.StreamReader, collect: Sequence[str]) -> ProgramEnding | None:
    """Read how the program ended; `None` if the report is incomplete or makes no sense.

    `collect` has the paths of the requested files, which the report names by index.
    """
    files: dict[str, bytes] = {}
    paths: dict[bytes, set[str]] = {b"W": set(), b"N": set()}
    free_bytes = 2 * tuning.MAX_COLLECTED_BYTES  # as much again for paths, which are far shorter
    try:
        head = await report.readexactly(10)
        kind = KINDS.get(head[1:2])
        if head[:1] != b"E" or kind is None:
            return None
        while (tag := await report.readexactly(1)) != b".":
            number = int.from_bytes(await report.readexactly(4), "big")
            size = int.from_bytes(await report.readexactly(8), "big") if tag == b"F" else number
            if size > free_bytes:
                return None
            free_bytes -= size
            if tag in paths:
                paths[tag].add(os.fsdecode(await report.readexactly(size)))
            elif tag == b"F" and number < len(collect):
                files[collect[number]] = await report.readexactly(size)
            else:
                return None
    except asyncio.IncompleteReadError:
        return None
    number, cpu_ms = int.from_bytes(head[2:6], "big"), int.from_bytes(head[6:], "big")
    return ProgramEnding(
        kind=kind,
        number=number,
        cpu_s=cpu_ms / 1000,
        files=files,
        changed=frozenset(paths[b"W"]),
        created=frozenset(paths[b"N"]),
    )


SIGNAL_CODES = 128
"""bubblewrap's exit code is this number plus the signal that ended its child."""


class SandboxNotStarted(Exception):
    """The sandbox ended before the program could start. The message is that of bubblewrap or the engine."""


class Program:
    """A program that runs, or ran, in a sandbox. Create it with `Program.start`."""

    def __init__(self, request: RunRequest, run: SupervisedRun) -> None:
        self.stdin = run.stdin
        self.stdout = run.stdout
        self._run = run
        self._request = request
        self._stdout = CappedOutput(request.limits.output_bytes)
        self._stderr = CappedOutput(request.limits.output_bytes)
        self._killed_as: RunStatus | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self._report_task: asyncio.Task[ProgramEnding | None] | None = None
        self._timeout_task: asyncio.Task[None] | None = None
        self._collecting_stdout = False
        self._started_s = 0.0

    @classmethod
    async def start(
        cls, request: RunRequest, run: SupervisedRun, registry: set[Program] | None = None
    ) -> Program:
        """Wait until the program of a run starts.

        Args:
            registry: The set of running programs. It gets this one before the wait, so that code which ends all
                programs ends it too.

        Raises:
            UsageError: The files do not fit.
            SandboxNotStarted: The sandbox ended before the program could start.
            SandboxBroken: The program neither started nor ended.
        """
        program = cls(request, run)
        if registry is not None:
            registry.add(program)
        try:
            await program._wait_for_start()
        except BaseException:
            if registry is not None:
                registry.discard(program)
            await program.kill_and_release()
            raise
        return program

    async def _wait_for_start(self) -> None:
        """Wait for the report's line `S`, then watch the program and read its report."""
        self._start_task(self._copy_output(self._run.stderr, self._stderr))
        try:
            async with asyncio.timeout(tuning.SETUP_TIMEOUT_S):
                error_text = await read_start(self._run.report)
                if error_text == "":
                    await asyncio.gather(*self._tasks)
        except TimeoutError as fault:
            raise SandboxBroken(f"the sandbox was not ready after {tuning.SETUP_TIMEOUT_S:g} s") from fault
        if error_text == "":
            raise SandboxNotStarted(self._stderr.content().decode("utf-8", "replace").strip())
        if error_text is not None:
            raise UsageError(
                f"the files could not be written inside the sandbox: {error_text}",
                remedy="raise sandbox.disk_mb",
            )
        self._started_s = time.monotonic()
        self._report_task = asyncio.create_task(read_ending(self._run.report, self._request.collect))
        self._timeout_task = self._start_task(self._enforce_timeout())

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.append(task)
        return task

    async def _copy_output(self, stream: asyncio.StreamReader, output: CappedOutput) -> None:
        flood_bytes = tuning.FLOOD_FACTOR * self._request.limits.output_bytes
        while chunk := await stream.read(tuning.READ_CHUNK_BYTES):
            output.add(chunk)
            if output.total > flood_bytes:
                self.kill("output_limit")

    async def _enforce_timeout(self) -> None:
        # The supervisor inside ends a program that times out. This covers a supervisor that the program has
        # killed or stopped.
        assert self._report_task is not None
        await asyncio.wait([self._report_task], timeout=self._request.limits.wall_s + tuning.WATCHDOG_GRACE_S)
        if not self._report_task.done():
            self.kill("timeout")
            await asyncio.wait([self._report_task], timeout=tuning.KILL_TIMEOUT_S)

    def kill(self, status: RunStatus) -> None:
        """Kill the whole process tree now. `status` is the result's, unless the program has already ended."""
        if self._killed_as is None and self._run.returncode is None:
            self._killed_as = status
        self._run.kill()

    def _collect_stdout(self) -> None:
        if not self._collecting_stdout:
            self._collecting_stdout = True
            self._start_task(self._copy_output(self.stdout, self._stdout))

    async def terminate(self, status: RunStatus, *, grace_s: float = 0.0) -> None:
        """Give the program time to end on its own, then kill it. It is dead when this returns.

        Args:
            status: The result's status, if it must be killed.
            grace_s: Seconds to wait first.

        Raises:
            SandboxBroken: It still lives after SIGKILL.
        """
        assert self._report_task is not None
        if grace_s:
            await asyncio.wait([self._report_task], timeout=grace_s)
        if not self._report_task.done():
            self.kill(status)
        await self._wait_until_gone(tuning.KILL_TIMEOUT_S)

    async def write_stdin(self) -> None:
        """Write the request's stdin and close it. A program that does not read it is not at fault."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(self._request.stdin)
            await self.stdin.drain()
        self.close_stdin()

    def close_stdin(self) -> None:
        """Let the program see the end of its stdin."""
        self.stdin.close()

    async def wait_for_result(self, *, grace_s: float | None = None) -> RunResult:
        """Wait for the program's end and return its result.

        Args:
            grace_s: Seconds after which it is killed; by default only its own limits apply.

        Raises:
            SandboxBroken: Something still lives after SIGKILL, or the sandbox was ended by someone else.
        """
        self._collect_stdout()
        if grace_s is not None:
            await self.terminate("timeout", grace_s=grace_s)
        ending = await self._wait_for_report()
        wall_s = time.monotonic() - self._started_s
        if ending is None:
            # The report is forged or broken. The exit code of a sandbox that ended on its own says more.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._run.wait(), 1)  # a second is chosen by judgement
            self.kill("failed")
        await self._wait_until_gone(tuning.KILL_TIMEOUT_S, *self._tasks)
        status, exit_code, signal = self._determine_status(ending)
        return RunResult(
            status=status,
            exit_code=exit_code,
            signal=signal,
            stdout=self._stdout.content(),
            stderr=self._stderr.content(),
            truncated=self._stdout.truncated or self._stderr.truncated,
            files=ending.files if ending else {},
            changed=ending.changed if ending else frozenset(),
            created=ending.created if ending else frozenset(),
            wall_s=wall_s,
            cpu_s=ending.cpu_s if ending else None,
        )

    async def _wait_for_report(self) -> ProgramEnding | None:
        """Return the supervisor's report; `None` if it makes no sense or did not come in time."""
        assert self._report_task is not None
        assert self._timeout_task is not None
        await asyncio.wait([self._report_task, self._timeout_task], return_when=asyncio.FIRST_COMPLETED)
        return self._report_task.result() if self._report_task.done() else None

    async def _wait_until_gone(self, timeout_s: float, *tasks: asyncio.Task[Any]) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(self._run.wait(), *tasks)
        except TimeoutError as fault:
            raise SandboxBroken("a process in the sandbox still lives after SIGKILL") from fault

    def _determine_status(self, ending: ProgramEnding | None) -> tuple[RunStatus, int | None, int | None]:
        """Return `(status, exit code, signal)`."""
        if self._run.out_of_memory:
            return "memory", None, None
        if self._killed_as is not None:
            return self._killed_as, None, None
        if ending is None:
            return self._determine_status_without_report(self._run.returncode or 0)
        if ending.kind == "memory":
            return "memory", None, None
        if ending.kind == "timeout" or (ending.kind == "signal" and ending.number == Signals.SIGXCPU):
            return "timeout", None, None
        if ending.kind == "signal":
            return "signalled", None, ending.number
        if ending.number == 0:
            return "ok", 0, None
        return "memory" if self._ended_with_memory_error() else "failed", ending.number, None

    def _determine_status_without_report(self, code: int) -> tuple[RunStatus, int | None, int | None]:
        """Return `(status, exit code, signal)` by the exit code of what built the sandbox."""
        if code < 0:
            last_line = self._run.error_text.splitlines()[-1:]
            message = f"the sandbox was killed from outside, by signal {-code}"
            raise SandboxBroken(": ".join((message, *last_line)))
        if code > SIGNAL_CODES:
            # Only the program could kill its trusted parent: it killed everything that it could reach.
            return "signalled", None, code - SIGNAL_CODES
        return "failed", None, None

    def _ended_with_memory_error(self) -> bool:
        """Return whether the program is a Python that ended because an allocation exceeded its limit."""
        lines = self._stderr.content().rstrip().splitlines()
        return bool(lines) and lines[-1].startswith(b"MemoryError")

    async def kill_and_release(self) -> None:
        """Kill what still runs and close every file descriptor. Safe to call twice.

        Raises:
            SandboxBroken: Something still lives after SIGKILL.
        """
        self.kill("signalled")
        self.stdin.close()
        self._collect_stdout()
        tasks = [*self._tasks, *([self._report_task] if self._report_task else [])]
        _, alive = await asyncio.wait(tasks, timeout=tuning.KILL_TIMEOUT_S)
        for task in alive:
            task.cancel()
        self._run.release()
        await self._wait_until_gone(tuning.REMOVAL_TIMEOUT_S)
