"""The wall made of bubblewrap: new namespaces for every program, each starting from nothing."""

from __future__ import annotations

import asyncio
import importlib.resources
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from suture.errors import SandboxBroken
from suture.languages import Interpreter
from suture.sandbox.channel import FrameChannel
from suture.sandbox.command_line import ETC, find_bubblewraps, wall_arguments
from suture.sandbox.contract import Mount, ProgramLimits, RunRequest, RunResult
from suture.sandbox.copying import pack_request
from suture.sandbox.diagnosis import PROC, unavailable
from suture.sandbox.interpreter import own_interpreter
from suture.sandbox.launch import Program, WallNotBuilt, memory_file
from suture.sandbox.mounts import interpreter_mounts, plan_mounts
from suture.sandbox.seccomp import own_filter
from suture.sandbox.staging import StageKeeper

__all__ = ["BubblewrapSandbox"]


@cache
def _inside_source() -> str:
    return importlib.resources.files("suture.sandbox").joinpath("inside.py").read_text("utf-8")


class BubblewrapSandbox:
    """Runs each program behind a wall of its own; see `contract.Sandbox`.

    Args:
        find: Finds the bubblewraps of this machine, best first.
        proc: Where the kernel tells about itself; for naming what is missing.
    """

    name = "bubblewrap"

    def __init__(self, *, find: Callable[[], Sequence[str]] = find_bubblewraps, proc: Path = PROC) -> None:
        self._find = find
        self._proc = proc
        self._own: Interpreter = own_interpreter()
        self._own_mounts = interpreter_mounts(self._own)
        self._stages = StageKeeper()
        self._programs: set[Program] = set()
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
        self._stages.close()

    async def choose(self) -> str:
        """The path of the bubblewrap that works here; tried once.

        Raises:
            SandboxUnavailable: None does.
        """
        async with self._choosing:
            if self._bubblewrap is None:
                self._bubblewrap = await self._try_each()
            return self._bubblewrap

    async def _try_each(self) -> str:
        complaints: dict[str, str] = {}
        request = RunRequest(
            argv=(self._own.executable, "-I", "-S", "-c", ""), limits=ProgramLimits(wall_s=30)
        )
        packed = pack_request(request)
        for path in self._find():
            try:
                program = await self._launch(path, request, packed, self._own_mounts)
            except (WallNotBuilt, OSError) as fault:
                complaints[path] = str(fault) or "it ended without a word"
                continue
            try:
                result = await program.result()
            finally:
                await program.end()
            if result.status == "ok":
                return path
            complaints[path] = result.stderr.decode("utf-8", "replace").strip() or f"a trial {result.status}"
        raise unavailable(complaints, self._proc)

    @asynccontextmanager
    async def _started(self, request: RunRequest) -> AsyncIterator[Program]:
        packed = pack_request(request)
        mounts = plan_mounts((*self._own_mounts, *request.mounts))
        bubblewrap = await self.choose()
        try:
            program = await self._launch(bubblewrap, request, packed, mounts)
        except WallNotBuilt as fault:
            raise SandboxBroken(f"bubblewrap could not build the wall: {fault}") from fault
        self._programs.add(program)
        try:
            yield program
        finally:
            self._programs.discard(program)
            await program.end()

    async def _launch(
        self, bubblewrap: str, request: RunRequest, packed: bytes, mounts: Sequence[Mount]
    ) -> Program:
        stage = await self._stages.stage((bubblewrap, str(ETC), *(mount.source for mount in mounts)))
        reachable = [Mount(source=stage.reach(mount.source), target=mount.target) for mount in mounts]
        filter_fd = memory_file(own_filter())
        try:
            command = (
                *(*stage.prefix, stage.reach(bubblewrap)),
                *wall_arguments(reachable, request.limits, stage.reach(str(ETC)), filter_fd),
                *(self._own.executable, "-I", "-S", "-B", "-c", _inside_source()),
            )
            inherit = () if stage.namespace is None else (stage.namespace,)
            return await Program.start(request, packed, command, (*inherit, filter_fd))
        finally:
            os.close(filter_fd)
