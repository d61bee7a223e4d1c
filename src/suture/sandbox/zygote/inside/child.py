"""One run: PID 1 of new namespaces, which supervises, and the program itself.

PID 1 never executes the program's code. It reports on the run in the format of `supervisor.py`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # as in `supervisor.py`
import importlib
import os
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import all_suffixes
from types import CodeType
from typing import Any

from suture.sandbox.execution.supervisor import (
    InputWatch,
    apply_limits,
    build_report,
    exec_program,
    kill_remaining,
    open_box,
    wait_for_program,
    write_request_files,
)
from suture.sandbox.zygote.inside import kernel
from suture.sandbox.zygote.inside.kernel import FolderEvents, OomKillCounter, find_kill_counts

BOX_ID = 65534
"""The program's user and group inside the sandbox, which Linux calls `nobody`."""
SHM_BYTES = 16 << 20
SHM_INODES = 10_000
"""Limits of `/dev/shm`, for semaphores and shared memory. Without a size it may grow to half of the machine's
memory."""
REPORT_FD = 3
"""The first descriptor after stdin, stdout and stderr."""
MAX_FDS = 1 << 16
"""Descriptors up to this number are closed without a check."""


class ChildSetup:
    """What each child of a zygote sets up before it runs a program.

    Args:
        namespaces: Whether each child is PID 1 of new namespaces and mounts its own folders. Otherwise it
            uses the existing ones, and there is only one child.
        covered: Mount targets below `/tmp`, which each child mounts again over its own `/tmp`.
        hidden_folders: Folders that each child covers with an empty one.
    """

    def __init__(self, namespaces: bool, covered: list[str], hidden_folders: list[str]) -> None:
        self.namespaces = namespaces
        self.covered = covered
        self.hidden_folders = hidden_folders
        self.kill_counts = find_kill_counts()
        self.user, self.group = os.getuid(), os.getgid()


def run_child(
    request: dict[str, Any], fds: Sequence[int], seccomp_filter: bytes, setup: ChildSetup
) -> CodeType | None:
    """Run as the child of a zygote. Returns only in the process that is to run Python code, with that code.

    Args:
        request: The decoded request.
        fds: Stdin, stdout, stderr and the report's pipe.
    """
    try:
        for target, child_fd in enumerate(fds):
            os.dup2(child_fd, target)
        os.closerange(REPORT_FD + 1, MAX_FDS)
        oom_kills = OomKillCounter(setup.kill_counts)
        if setup.namespaces:
            set_up_namespaces(request["limits"], setup)
        else:
            # older versions of gVisor do not know this call; the zygote adopts the orphans then
            with suppress(OSError):
                kernel.become_subreaper()  # as PID 1 of a namespace does
        os.chdir("/box")
        files = request.pop("files")
        forked = request["forked"] and not shadows_imported_module(files)
        try:
            write_request_files(files)
        except OSError as fault:
            os.write(REPORT_FD, b"X" + os.strerror(fault.errno or 0).encode())
            os._exit(0)
        box = open_box()
        inputs = InputWatch(request["watched"], files)
        events = FolderEvents(inputs.folders)  # the filter refuses the calls that this makes
        del files
        kernel.drop_capabilities()
        kernel.install_filter(seccomp_filter)
    except OSError as fault:
        os.write(2, str(fault).encode())
        os._exit(1)
    os.write(REPORT_FD, b"S")
    deadline = time.monotonic() + request["limits"]["wall_s"]
    pid = os.fork()
    if pid == 0:
        oom_kills.close()
        events.close()
        os.close(box)
        prefer_for_oom_kill()
        if request["python"] is not None:
            return become_python(request, request["python"])
        if forked:
            return become_module(request)
        exec_program(request)
    supervise(request, pid, deadline, oom_kills, box, inputs, events)
    os._exit(0)


def prefer_for_oom_kill() -> None:
    """Make the OOM killer choose the program, and neither its supervisor nor the zygote."""
    kernel.allow_inspection()  # /proc files of a non-dumpable process belong to the machine's root
    with suppress(OSError):  # gVisor may not have this file
        write("/proc/self/oom_score_adj", "1000")


def set_up_namespaces(limits: dict[str, int], setup: ChildSetup) -> None:
    """Set up the new namespaces: one user, and fresh folders of the limited size."""
    kernel.allow_inspection()  # /proc files of a non-dumpable process belong to the machine's root
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{BOX_ID} {setup.user} 1")
    write("/proc/self/gid_map", f"{BOX_ID} {setup.group} 1")
    kernel.forbid_inspection()
    safe = kernel.NO_SETUID | kernel.NO_DEVICES
    kernel.mount("proc", "/proc", safe | kernel.NO_PROGRAMS)
    kernel.mount("", "/proc/sys", kernel.BIND, source="/proc/sys")
    kernel.mount("", "/proc/sys", kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | kernel.NO_PROGRAMS | safe)
    covered_fds = [(path, os.open(path, os.O_PATH)) for path in setup.covered]
    size, inodes = limits["disk_mb"] << 20, limits["inodes"]
    kernel.mount("tmpfs", "/box", safe, f"size={size},nr_inodes={inodes},mode=0700")
    kernel.mount("tmpfs", "/tmp", safe, f"size={size},nr_inodes={inodes},mode=1777")
    kernel.mount("tmpfs", "/dev/shm", safe, f"size={SHM_BYTES},nr_inodes={SHM_INODES},mode=1777")
    for path, covered_fd in covered_fds:
        mount_again(path, covered_fd)
    for folder in setup.hidden_folders:
        # It is as small as possible: nothing is ever written to it.
        kernel.mount("tmpfs", folder, safe | kernel.READ_ONLY, "size=4k,nr_inodes=2,mode=0555")


def mount_again(path: str, covered_fd: int) -> None:
    """Show a path again that a fresh folder has covered; as before, it is not writable."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(covered_fd).st_mode):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    kernel.mount("", path, kernel.BIND, source=f"/proc/self/fd/{covered_fd}")
    os.close(covered_fd)


def write(path: str, text: str) -> None:
    """Write to a file of the kernel."""
    file_fd = os.open(path, os.O_WRONLY)
    try:
        os.write(file_fd, text.encode())
    finally:
        os.close(file_fd)


def supervise(
    request: dict[str, Any],
    pid: int,
    deadline: float,
    oom_kills: OomKillCounter,
    box: int,
    inputs: InputWatch,
    events: FolderEvents,
) -> None:
    """Wait for the program, kill what it left, and report how it ended."""
    os.closerange(0, REPORT_FD)
    max_bytes = request["limits"]["total_memory_mb"] << 20
    kind, number = wait_for_program(pid, deadline, max_bytes, out_of_memory=oom_kills.has_grown)
    kill_remaining()
    for part in build_report(kind, number, request, box, inputs, events.read):
        view = memoryview(part)
        while view:
            view = view[os.write(REPORT_FD, view) :]


MODULE_SUFFIXES = tuple(all_suffixes())
"""Endings of the files that Python imports: sources, bytecode and compiled extensions."""


def shadows_imported_module(files: dict[str, bytes]) -> bool:
    """Return whether a file would be imported in place of a module that this process has already imported.

    Args:
        files: All files of the program. Each folder that is not a package may be on `sys.path`.
    """
    # Compiled files are only imported in place of their source.
    paths = {path for path in files if "/__pycache__/" not in f"/{path}"}
    folders = {path.rpartition("/")[0] for path in paths}
    # The name of a data file is not that of a module: pytest.ini is not the module `pytest`.
    paths = {path for path in paths if path.endswith(MODULE_SUFFIXES)}
    folders |= {folder[:index] for folder in folders for index, char in enumerate(folder) if char == "/"}
    names = set()
    for path in (*paths, *folders):
        folder, _, name = path.rpartition("/")
        if not folder or f"{folder}/__init__.py" not in paths:
            names.add(name.partition(".")[0])
    return bool(names & {name.partition(".")[0] for name in sys.modules})


def become_module(request: dict[str, Any]) -> CodeType:
    """Prepare to run `-m MODULE`; see `become_python`."""
    environment = request["env"]
    sys.argv[:] = ["-m", *request["argv"][3:]]
    paths = environment.get("PYTHONPATH", "").split(":")
    sys.path[:1] = [os.getcwd(), *(path for path in paths if path)]
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    code = "import runpy; runpy._run_module_as_main(%r)" % request["argv"][2]  # noqa: UP031 - as `-m` does
    return become_python(request, code)


def become_python(request: dict[str, Any], code: str) -> CodeType:
    """Make this process look like an interpreter that has just started, and return the code to run."""
    kernel.allow_inspection()
    os.close(REPORT_FD)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    apply_limits(request["limits"])
    os.environ.update(request["env"])
    try:
        return compile(code, "<string>", "exec", dont_inherit=True)
    except Exception as fault:
        sys.excepthook(type(fault), fault.with_traceback(None), None)
        sys.stderr.flush()
        os._exit(1)
