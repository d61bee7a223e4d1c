"""Building walls with bubblewrap: one for each program, or one that waits for many."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from suture.project.languages import Interpreter
from suture.sandbox.bubblewrap.command_line import (
    KEPT,
    bubblewrap_arguments,
    bubblewrap_zygote_arguments,
    folder_with_libraries,
)
from suture.sandbox.bubblewrap.staging import StageKeeper
from suture.sandbox.contract import Mode, Mount, ProgramLimits, RunRequest
from suture.sandbox.mounts.bind_mounts import ETC
from suture.sandbox.runs.control_group import MemoryGroup
from suture.sandbox.runs.memory import MemoryGroups
from suture.sandbox.runs.packing import as_program, pack_request
from suture.sandbox.runs.program import SandboxNotStarted
from suture.sandbox.runs.running import ColdProcess, Running, memory_file
from suture.sandbox.seccomp import own_filter
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import boot_source, bundle
from suture.sandbox.zygote.carrier import ProcessCarrier
from suture.sandbox.zygote.fd_channel import FdSender
from suture.sandbox.zygote.warm import PRELOAD_MB, WarmRuns, ZygoteKind


@cache
def _inside_source() -> str:
    return importlib.resources.files("suture.sandbox.runs").joinpath("inside.py").read_text("utf-8")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a launch of bubblewrap is made of.

    Attributes:
        prefix: The first words, up to bubblewrap's own path.
        mounts: What to show; sources as bubblewrap can reach them.
        etc: Where it reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
        inherit: Descriptors that it needs.
        group: The control group that it enters.
    """

    prefix: tuple[str, ...]
    mounts: tuple[Mount, ...]
    etc: str
    filter_fd: int
    inherit: tuple[int, ...]
    group: MemoryGroup | None


class BubblewrapLauncher:
    """Builds walls, and keeps what the next one needs too.

    Args:
        own: The interpreter for our own programs.
        groups: Makes control groups.
    """

    def __init__(self, own: Interpreter, groups: MemoryGroups) -> None:
        self._own = own
        self._groups = groups
        self._stages = StageKeeper()
        self._warm = WarmRuns(own)

    async def close(self) -> None:
        """End what waits and let go of the rest; safe to call twice."""
        await self._warm.close()
        self._stages.close()

    def begin(
        self,
        mode: Mode,
        path: str,
        request: RunRequest,
        mounts: Sequence[Mount],
        *,
        conversation: bool = False,
    ) -> AbstractAsyncContextManager[Running]:
        """Begin to run a program behind a wall.

        Args:
            mode: Where the wall comes from.
            path: The program bwrap.
            request: What to run.
            mounts: What to show, as planned.
            conversation: Whether more will be said to it than the request's stdin.

        Raises:
            SandboxNotStarted: Bubblewrap gave up.
            SandboxBroken: What should stand did neither stand nor end.
        """
        if mode == "cold":
            return self.begin_cold(path, request, mounts)
        if mode == "warm":
            start_warm = partial(self._start_zygote, path)
            return self._warm.begin(request, mounts, start_warm, conversation=conversation)
        size = ProgramLimits(disk_mb=request.limits.disk_mb)
        start = partial(self._start_spare, path, size)
        return self._warm.begin(
            request, mounts, start, place=size.disk_mb, ahead=True, conversation=conversation
        )

    @asynccontextmanager
    async def begin_cold(
        self, path: str, request: RunRequest, mounts: Sequence[Mount], folder: str = ""
    ) -> AsyncIterator[Running]:
        """As `begin`, behind a wall of its own.

        Args:
            path: The program bwrap.
            request: What to run.
            mounts: What to show, as planned.
            folder: One of the host's that the program may write into; behind the wall it is `KEPT`.
        """
        packed = pack_request(as_program(request, self._own.executable))
        with ExitStack() as held, ExitStack() as unless_started:
            own = [Mount(source=folder, target=KEPT)] if folder else []
            launch = await self._prepare(path, [*mounts, *own], self._filter(), held, unless_started)
            shown, kept = launch.mounts[: len(mounts)], launch.mounts[len(mounts) :]
            if launch.group is not None:
                launch.group.limit(request.limits.total_memory_mb)
            command = (
                *launch.prefix,
                *bubblewrap_arguments(
                    *(shown, request.limits, launch.etc, launch.filter_fd),
                    kept="".join(mount.source for mount in kept),
                ),
                *(self._own.executable, "-I", "-S", "-B", "-c", _inside_source()),
            )
            running = await ColdProcess.start(packed, command, launch.inherit, launch.group)
            unless_started.pop_all()
        yield running

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], kind: ZygoteKind) -> Zygote:
        with ExitStack() as held, ExitStack() as unless_started:
            launch = await self._prepare(path, mounts, self._filter(namespaces=True), held, unless_started)
            arguments = bubblewrap_zygote_arguments(launch.mounts, launch.etc, launch.filter_fd)
            fd_sender = None if kind.preload else FdSender()  # what is preloaded may be a project's own code
            if fd_sender is not None:
                held.callback(fd_sender.let_go)
                unless_started.callback(fd_sender.close)
                launch = replace(launch, inherit=(*launch.inherit, fd_sender.theirs))
            shown = [mount.target for mount in mounts]
            words = bundle(
                dict(kind.modules), kind.preload, shown, fd_socket=fd_sender.theirs if fd_sender else None
            )
            carrier = await self._carry(launch, arguments, kind)
            unless_started.pop_all()
        return await Zygote.start(carrier, words, group=launch.group, fd_sender=fd_sender)

    async def _start_spare(
        self, path: str, size: ProgramLimits, mounts: Sequence[Mount], kind: ZygoteKind
    ) -> Zygote:
        with ExitStack() as held, ExitStack() as unless_started:
            launch = await self._prepare(path, mounts, self._filter(), held, unless_started)
            arguments = bubblewrap_arguments(launch.mounts, size, launch.etc, launch.filter_fd, waiting=True)
            words = bundle(dict(kind.modules), kind.preload, [], namespaces=False)
            carrier = await self._carry(launch, arguments, kind)
            unless_started.pop_all()
        return await Zygote.start(carrier, words, most_runs=1, group=launch.group)

    async def _carry(self, launch: Launch, arguments: Sequence[str], kind: ZygoteKind) -> ProcessCarrier:
        command = (*launch.prefix, *arguments, *kind.start, boot_source())
        if launch.group is not None:
            launch.group.confine(PRELOAD_MB)  # each run sets its own
        return await ProcessCarrier.start(command, launch.inherit)

    def _filter(self, *, namespaces: bool = False) -> bytes:
        return own_filter(namespaces=namespaces, memory_files=self._groups.keeper != "sampler")

    async def _prepare(
        self, path: str, mounts: Sequence[Mount], code: bytes, held: ExitStack, unless_started: ExitStack
    ) -> Launch:
        whole = folder_with_libraries(path)
        stage = await self._stages.stage((whole, str(ETC), *(mount.source for mount in mounts)))
        program = stage.reach(whole) + path[len(whole) :]
        filter_fd = memory_file(code)
        held.callback(os.close, filter_fd)
        try:
            group = self._groups.make()
        except OSError as fault:
            raise SandboxNotStarted(f"no control group: {fault}") from fault
        if group is not None:
            unless_started.callback(group.drop)
        return Launch(
            # First of all into the control group, while the launcher may still do that.
            prefix=(*(group.entrance if group else ()), *stage.prefix, program),
            mounts=tuple(Mount(source=stage.reach(mount.source), target=mount.target) for mount in mounts),
            etc=stage.reach(str(ETC)),
            filter_fd=filter_fd,
            inherit=(filter_fd,) if stage.namespace is None else (filter_fd, stage.namespace),
            group=group,
        )
