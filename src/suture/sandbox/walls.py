"""Building walls with bubblewrap: one for each program, or one that waits for many."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from suture.languages import Interpreter
from suture.sandbox.command_line import ETC, wall_arguments, zygote_wall_arguments
from suture.sandbox.contract import BOX, LIBRARY, Mount, RunRequest
from suture.sandbox.copying import pack_request
from suture.sandbox.running import ColdProcess, Running, memory_file
from suture.sandbox.seccomp import own_filter
from suture.sandbox.staging import StageKeeper
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import boot_source, bundle
from suture.sandbox.zygote.carrier import ProcessCarrier
from suture.sandbox.zygote.warm import WarmRuns, ZygoteKind

__all__ = ["WallBuilder"]


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


class WallBuilder:
    """Builds walls, and keeps what the next one needs too.

    Args:
        own: The interpreter for our own programs.
    """

    def __init__(self, own: Interpreter) -> None:
        self._own = own
        self._stages = StageKeeper()
        self._warm = WarmRuns(own)

    async def close(self) -> None:
        """End what waits and let go of the rest; safe to call twice."""
        await self._warm.close()
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
        async with self._warm.begin(request, mounts, partial(self._start_zygote, path)) as running:
            yield running

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], kind: ZygoteKind) -> Zygote:
        with ExitStack() as held:
            launch = await self._prepare(path, mounts, own_filter(namespaces=True), held)
            command = (
                *launch.prefix,
                *zygote_wall_arguments(launch.mounts, launch.etc, launch.filter_fd),
                *(*kind.start, boot_source()),
            )
            words = bundle(dict(kind.modules), kind.preload, [mount.target for mount in mounts])
            carrier = await ProcessCarrier.start(command, launch.inherit)
            return await Zygote.start(carrier, words)

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
