"""The wall made of bubblewrap: new namespaces for every program, each starting from nothing."""

from __future__ import annotations

import asyncio
import importlib.resources
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path

from suture.errors import SandboxBroken
from suture.languages import Interpreter
from suture.sandbox.channel import FrameChannel
from suture.sandbox.command_line import ETC, find_bubblewraps, wall_arguments, zygote_wall_arguments
from suture.sandbox.contract import (
    BOX,
    LIBRARY,
    Capabilities,
    Mount,
    ProgramLimits,
    RunRequest,
    RunResult,
)
from suture.sandbox.copying import pack_for_zygote, pack_request, plain_request
from suture.sandbox.diagnosis import PROC, unavailable
from suture.sandbox.interpreter import own_interpreter
from suture.sandbox.launch import Program, WallNotBuilt
from suture.sandbox.mounts import interpreter_mounts, plan_mounts
from suture.sandbox.running import ColdProcess, Running, memory_file
from suture.sandbox.seccomp import own_filter
from suture.sandbox.staging import StageKeeper
from suture.sandbox.zygote import Zygote, ZygoteKeeper
from suture.sandbox.zygote.bundle import boot_source, bundle

__all__ = ["BubblewrapSandbox"]

FORKED_VARIABLES = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Settings of an interpreter that can still be made after it has started."""

PRELOAD_LIMITS = ("/usr/bin/prlimit", f"--as={8 << 30}", "--nproc=4096", "--cpu=300", "--core=0", "--")
"""A project's environment may hold code that nobody has read, and it runs before any run's own limits."""

COLD_ONLY: dict[str, str] = {}
"""Bubblewraps that cannot build a warm wall here, and why; found out once in the life of this process."""


@cache
def _inside_source() -> str:
    return importlib.resources.files("suture.sandbox").joinpath("inside.py").read_text("utf-8")


@lru_cache(maxsize=64)
def _planned(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    return plan_mounts(mounts)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a launch of bubblewrap is made of.

    Attributes:
        prefix: The first words, up to bubblewrap's own path.
        mounts: What to show; sources as bubblewrap can reach them.
        etc: Where it reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
        inherit: Descriptors that it needs.
    """

    prefix: tuple[str, ...]
    mounts: tuple[Mount, ...]
    etc: str
    filter_fd: int
    inherit: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ZygoteKind:
    """What a zygote has been made ready for.

    Attributes:
        start: The interpreter and its options.
        library: Modules that it has imported, as a request brings them.
        preload: Code that it has run.
    """

    start: tuple[str, ...]
    library: tuple[tuple[str, bytes], ...] = ()
    preload: str = ""


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
        self._stages = StageKeeper()
        self._programs: set[Program] = set()
        self._zygotes = ZygoteKeeper()
        self._not_preloaded: set[ZygoteKind] = set()
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
        await self._zygotes.close()
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

    async def capabilities(self) -> Capabilities:
        """What this wall can do here; tried once.

        Raises:
            SandboxUnavailable: There is none.
        """
        await self.choose()
        return Capabilities(mode="cold" if self._cold else "warm", reason=self._cold)

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
        start = self._warm if warm else self._new_wall
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
        start = self._new_wall if self._cold else self._warm
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

    @asynccontextmanager
    async def _new_wall(
        self, path: str, request: RunRequest, mounts: Sequence[Mount]
    ) -> AsyncIterator[Running]:
        if request.python is not None:
            request = self._as_program(request, request.python)
        packed = pack_request(request)
        with ExitStack() as held:
            launch = await self._prepare(path, mounts, own_filter(), held)
            command = (
                *launch.prefix,
                *wall_arguments(launch.mounts, request.limits, launch.etc, launch.filter_fd),
                *(self._own.executable, "-I", "-S", "-B", "-c", _inside_source()),
            )
            running = await ColdProcess.start(packed, command, launch.inherit)
        yield running

    def _as_program(self, request: RunRequest, code: str) -> RunRequest:
        if request.library:
            code = f"import sys; sys.path.insert(0, {f'{BOX}/{LIBRARY}'!r}); del sys\n{code}"
        laid = {f"{LIBRARY}/{path}": content for path, content in request.library.items()}
        return replace(
            request,
            argv=(self._own.executable, "-I", "-S", "-B", "-c", code),
            python=None,
            library={},
            files={**request.files, **laid},
        )

    @asynccontextmanager
    async def _warm(self, path: str, request: RunRequest, mounts: Sequence[Mount]) -> AsyncIterator[Running]:
        # With inodes in the key, an environment that was made anew is not taken for the old one.
        facts = ((mount, os.stat(mount.source)) for mount in mounts)  # noqa: PTH116 - no disk is waited for
        try:
            key = tuple((mount, status.st_dev, status.st_ino) for mount, status in facts)
        except OSError as fault:
            raise WallNotBuilt(str(fault)) from fault
        for kind in self._kinds(request):
            packed = pack_for_zygote(request, forked=bool(kind.preload))
            async with AsyncExitStack() as held:
                start = partial(self._start_zygote, path, mounts, kind)
                try:
                    zygote = await held.enter_async_context(
                        self._zygotes.lease((key, kind), start, dear=bool(kind.preload))
                    )
                except (WallNotBuilt, SandboxBroken):
                    if not kind.preload:
                        raise
                    self._not_preloaded.add(kind)
                    continue
                yield zygote.begin(packed)
                return

    def _kinds(self, request: RunRequest) -> Iterator[ZygoteKind]:
        """What may serve a request, best first."""
        preloaded = ZygoteKind(start=(*PRELOAD_LIMITS, *request.argv[:1], "-c"), preload=request.preload)
        variables = {name for name in request.env if name.startswith("PYTHON")}
        if (
            request.preload
            and request.argv[1:2] == ("-m",)
            and len(request.argv) > 2
            and variables <= FORKED_VARIABLES
            and preloaded not in self._not_preloaded
        ):
            yield preloaded
        bare = (self._own.executable, "-I", "-S", "-B", "-c")
        yield ZygoteKind(start=bare, library=tuple(request.library.items()))

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], kind: ZygoteKind) -> Zygote:
        with ExitStack() as held:
            launch = await self._prepare(path, mounts, own_filter(namespaces=True), held)
            command = (
                *launch.prefix,
                *zygote_wall_arguments(launch.mounts, launch.etc, launch.filter_fd),
                *(*kind.start, boot_source()),
            )
            words = bundle(dict(kind.library), kind.preload, [mount.target for mount in mounts])
            return await Zygote.start(command, launch.inherit, words)

    async def _prepare(self, path: str, mounts: Sequence[Mount], code: bytes, held: ExitStack) -> Launch:
        stage = await self._stages.stage((path, str(ETC), *(mount.source for mount in mounts)))
        filter_fd = memory_file(code)
        held.callback(os.close, filter_fd)
        return Launch(
            prefix=(*stage.prefix, stage.reach(path)),
            mounts=tuple(Mount(source=stage.reach(mount.source), target=mount.target) for mount in mounts),
            etc=stage.reach(str(ETC)),
            filter_fd=filter_fd,
            inherit=(filter_fd,) if stage.namespace is None else (filter_fd, stage.namespace),
        )
