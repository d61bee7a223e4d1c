"""The wall made of bubblewrap: new namespaces for every program, each starting from nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

from suture.errors import SandboxBroken
from suture.languages import Interpreter
from suture.sandbox.channel import FrameChannel
from suture.sandbox.command_line import find_bubblewraps
from suture.sandbox.contract import LIMITS, Capabilities, Mount, ProgramLimits, RunRequest, RunResult
from suture.sandbox.copying import plain_request
from suture.sandbox.diagnosis import PROC, unavailable
from suture.sandbox.interpreter import own_interpreter
from suture.sandbox.launch import Program, WallNotBuilt
from suture.sandbox.mounts import interpreter_mounts, plan_mounts
from suture.sandbox.walls import WallBuilder

__all__ = ["BubblewrapSandbox"]

COLD_ONLY: dict[str, str] = {}
"""Bubblewraps that cannot build a warm wall here, and why; found out once in the life of this process."""


@lru_cache(maxsize=64)
def _planned(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    return plan_mounts(mounts)


class BubblewrapSandbox:
    """Runs each program behind a wall of its own; see `contract.Sandbox`.

    Warm where the kernel allows namespaces within namespaces: a zygote waits behind a wall and forks each
    program into new namespaces of its own. Cold where it does not: a wall is built for each program.

    Args:
        find: Finds the bubblewraps of this machine, best first.
        proc: Where the kernel tells about itself; for naming what is missing.
        cold: Build a wall for each program even where a warm one is possible.
    """

    name = "bubblewrap"

    def __init__(
        self, *, find: Callable[[], Sequence[str]] = find_bubblewraps, proc: Path = PROC, cold: bool = False
    ) -> None:
        self._find = find
        self._proc = proc
        self._own: Interpreter = own_interpreter()
        self._own_mounts = interpreter_mounts(self._own)
        self._walls = WallBuilder(self._own)
        self._programs: set[Program] = set()
        self._cold = "it was asked for" if cold else ""
        self._bubblewrap: str | None = None
        self._choosing = asyncio.Lock()

    async def run(self, request: RunRequest) -> RunResult:
        """Run a program to its end.

        Raises:
            UsageError: The request is not acceptable.
            SandboxUnavailable: No wall can be built here.
            SandboxBroken: The wall failed.
        """
        async with self._started(request) as program:
            feeding = asyncio.create_task(program.feed())
            try:
                return await program.result()
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
        async with self._started(request) as program:
            yield FrameChannel(program)

    async def close(self) -> None:
        """Kill everything that still runs; safe to call twice."""
        for program in tuple(self._programs):
            await program.end()
        await self._walls.close()

    async def choose(self) -> str:
        """The path of the bubblewrap that works here; tried once.

        Raises:
            SandboxUnavailable: None does.
        """
        async with self._choosing:
            if self._bubblewrap is None:
                self._bubblewrap = await self._try_each()
            return self._bubblewrap

    async def capabilities(self) -> Capabilities:
        """What this wall can do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        await self.choose()
        limits = set(LIMITS) - {"total_memory_mb"} - ({"inodes"} if self._cold else set())
        return Capabilities(
            level="namespace",
            mode="cold" if self._cold else "warm",
            limits=frozenset(limits),
            reason=self._cold,
        )

    async def _try_each(self) -> str:
        complaints: dict[str, str] = {}
        for path in self._find():
            cold = self._cold or COLD_ONLY.get(path) or await self._try(path, warm=True)
            if not cold:
                return path
            complaints[path] = await self._try(path, warm=False)
            if not complaints[path]:
                if not self._cold:
                    self._cold = COLD_ONLY[path] = cold
                return path
        raise unavailable(complaints, self._proc)

    async def _try(self, path: str, *, warm: bool) -> str:
        """What goes wrong with a bubblewrap here; empty where nothing does."""
        request = RunRequest(python="", limits=ProgramLimits(wall_s=30))
        start = self._walls.warm if warm else self._walls.cold
        try:
            async with start(path, request, self._own_mounts) as running:
                program = await Program.start(request, running)
                try:
                    result = await program.result()
                finally:
                    await program.end()
        except (WallNotBuilt, SandboxBroken, OSError) as fault:
            return str(fault) or "it ended without a word"
        if result.status == "ok":
            return ""
        return result.stderr.decode("utf-8", "replace").strip() or f"a trial {result.status}"

    @asynccontextmanager
    async def _started(self, request: RunRequest) -> AsyncIterator[Program]:
        plain_request(request)
        mounts = _planned((*self._own_mounts, *request.mounts))
        path = await self.choose()
        start = self._walls.cold if self._cold else self._walls.warm
        try:
            async with start(path, request, mounts) as running:
                program = await Program.start(request, running)
                self._programs.add(program)
                try:
                    yield program
                finally:
                    self._programs.discard(program)
                    await program.end()
        except WallNotBuilt as fault:
            raise SandboxBroken(f"bubblewrap could not build the wall: {fault}") from fault
