"""Building walls with bubblewrap: one for each program, or one that waits for many."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from suture.errors import SandboxBroken
from suture.languages import Interpreter
from suture.sandbox.command_line import ETC, wall_arguments, zygote_wall_arguments
from suture.sandbox.contract import BOX, LIBRARY, Mount, RunRequest
from suture.sandbox.copying import pack_for_zygote, pack_request
from suture.sandbox.launch import WallNotBuilt
from suture.sandbox.running import ColdProcess, Running, memory_file
from suture.sandbox.seccomp import own_filter
from suture.sandbox.staging import StageKeeper
from suture.sandbox.zygote import Zygote, ZygoteKeeper
from suture.sandbox.zygote.bundle import boot_source, bundle

__all__ = ["WallBuilder"]

FORKED_VARIABLES = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
"""Settings of an interpreter that can still be made after it has started."""

PRELOAD_LIMITS = ("/usr/bin/prlimit", f"--as={8 << 30}", "--nproc=4096", "--cpu=300", "--core=0", "--")
"""A project's environment may hold code that nobody has read, and it runs before any run's own limits."""


@cache
def _inside_source() -> str:
    return importlib.resources.files("suture.sandbox").joinpath("inside.py").read_text("utf-8")


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
        modules: Modules that it has imported, as a request brings them.
        preload: Code that it has run.
    """

    start: tuple[str, ...]
    modules: tuple[tuple[str, bytes], ...] = ()
    preload: str = ""


class WallBuilder:
    """Builds walls, and keeps what the next one needs too.

    Args:
        own: The interpreter for our own programs.
    """

    def __init__(self, own: Interpreter) -> None:
        self._own = own
        self._stages = StageKeeper()
        self._zygotes = ZygoteKeeper()
        self._not_preloaded: set[ZygoteKind] = set()

    async def close(self) -> None:
        """End what waits and let go of the rest; safe to call twice."""
        await self._zygotes.close()
        self._stages.close()

    @asynccontextmanager
    async def cold(self, path: str, request: RunRequest, mounts: Sequence[Mount]) -> AsyncIterator[Running]:
        """A wall of its own for one program; arguments and faults as `warm`."""
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
        if request.modules:
            code = f"import sys; sys.path.insert(0, {f'{BOX}/{LIBRARY}'!r}); del sys\n{code}"
        laid = {f"{LIBRARY}/{path}": content for path, content in request.modules.items()}
        return replace(
            request,
            argv=(self._own.executable, "-I", "-S", "-B", "-c", code),
            python=None,
            modules={},
            files={**request.files, **laid},
        )

    @asynccontextmanager
    async def warm(self, path: str, request: RunRequest, mounts: Sequence[Mount]) -> AsyncIterator[Running]:
        """A fork of a process that waits behind a wall.

        Args:
            path: Bubblewrap.
            request: What to run.
            mounts: What to show, as planned.

        Raises:
            WallNotBuilt: Bubblewrap gave up.
            SandboxBroken: What should stand did neither stand nor end.
        """
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
        yield ZygoteKind(start=bare, modules=tuple(request.modules.items()))

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], kind: ZygoteKind) -> Zygote:
        with ExitStack() as held:
            launch = await self._prepare(path, mounts, own_filter(namespaces=True), held)
            command = (
                *launch.prefix,
                *zygote_wall_arguments(launch.mounts, launch.etc, launch.filter_fd),
                *(*kind.start, boot_source()),
            )
            words = bundle(dict(kind.modules), kind.preload, [mount.target for mount in mounts])
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
