"""The trusted program inside the sandbox: it writes the files, runs the program, and returns files.

It is started as `python -I -S -B -c SOURCE REQUEST_FD REPORT_FD`, and imports only modules that load quickly:
`json`, `signal` or `typing` would double its start-up time. It must work on Python 3.8. The request is a
big-endian u64 and a marshalled mapping of that length; marshal is safe here because the host wrote it and
both ends are the same interpreter. The request's pipe stays open as long as the host lives, and whatever runs
here ends with it. The report goes the other way and is parsed by hand (see `program.py`):

    X message                     the files could not be written
    S                             the program starts now
    E kind number cpu             how it ended: `e` exit code, `s` signal, `t` time-out, `m` too much memory
                                  of all processes and files together; then its CPU time in milliseconds;
                                  both numbers are big-endian u32
    W size path                   a watched file that has changed, or a folder above it: big-endian u32
    N size path                   a new path next to watched files
    F index size content          a collected file: big-endian u32 and u64
    .                             the end
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` itself pulls in `enum`: half of the start-up
import errno
import marshal
import os
import select
import stat
import sys
import time

try:  # noqa: SIM105 - `contextlib` would cost time at each start
    import resource
except ImportError:  # On Windows, where Suture only reads the numbers of this file.
    pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any


MIB = 1 << 20
MAX_REQUEST_FRAME_BYTES = 256 * MIB
"""The longest request that a zygote accepts."""
MAX_FDS = 1 << 20
"""By default Linux gives no process more descriptors than this (`fs.nr_open`)."""
MAX_QUEUED_SIGNALS = 1024
"""Signals that may be queued for the program; a machine allows some ten thousand for each user."""
TICK_S, QUICK_TICK_S = 0.05, 0.005
"""Seconds between two checks of what runs here. Without pidfds, the program's end is noticed at a check only,
so the interval is shorter."""
SET_DUMPABLE = 4
"""`PR_SET_DUMPABLE` of `linux/prctl.h`: with 0, no other process of this user may inspect this one."""
WRITABLE = ("/box", "/tmp", "/dev/shm")
"""The folders of the sandbox that a program may write to."""
INODE_BYTES = 1024
"""Roughly what the kernel uses for an in-memory file, however empty."""
ROOT = "."
"""The working directory, which contains a request's files."""
MAX_NEW_PATHS = 10_000
"""New paths that are reported. Suites that leave files leave a few hundred; the number is chosen by judgement."""


def main() -> None:
    """Serve the one request."""
    request_fd, report_fd = int(sys.argv[1]), int(sys.argv[2])
    low_fd, high_fd = sorted((request_fd, report_fd))
    for start, end in ((3, low_fd), (low_fd + 1, high_fd), (high_fd + 1, MAX_FDS)):
        os.closerange(start, end)  # such as the mount namespace through which the launcher came
    forbid_inspection()
    reset_sigint()
    serve(request_fd, report_fd, wait_for_program, kill_remaining)


def serve(
    request_fd: int,
    report_fd: int,
    wait: Callable[[int, float, int, int], tuple[bytes, int]],
    kill: Callable[[], None],
) -> None:
    """Run the requested program and report on it.

    Args:
        wait: Waits for the program, as `wait_for_program` does.
        kill: Kills whatever the program left behind.
    """
    request = marshal.loads(read_exactly(request_fd, int.from_bytes(read_exactly(request_fd, 8), "big")))
    try:
        write_request_files(request["files"])
    except OSError as fault:
        os.write(report_fd, b"X" + os.strerror(fault.errno or 0).encode())
        return
    box = open_box()
    inputs = InputWatch(request["watched"], request["files"])
    os.write(report_fd, b"S")
    deadline = time.monotonic() + request["limits"]["wall_s"]
    pid = os.fork()
    if pid == 0:
        exec_program(request)
    kind, number = wait(pid, deadline, request["limits"]["total_memory_mb"] * MIB, request_fd)
    kill()
    with open(report_fd, "wb") as report:
        report.writelines(build_report(kind, number, request, box, inputs))


def forbid_inspection() -> None:
    """Forbid other processes to inspect this one, because the program runs as the same user.

    Raises:
        OSError: The kernel refuses.
    """
    import _ctypes  # importing `ctypes` itself is slow, and a zygote's child uses `zygote/inside/kernel.py`

    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL

    this_process = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # as `ctypes` itself does
    prctl = Call(_ctypes.dlsym(this_process, "prctl"))
    if prctl(SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("PR_SET_DUMPABLE")


def reset_sigint() -> None:
    """Remove Python's SIGINT handler: PID 1 of a namespace gets only signals that it has a handler for."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def read_exactly(read_fd: int, size: int) -> bytes:
    """Read exactly `size` bytes. Ends this process if the host has gone."""
    content = bytearray()
    while len(content) < size:
        chunk = os.read(read_fd, min(size - len(content), MIB))
        if not chunk:
            os._exit(1)
        content += chunk
    return bytes(content)


def write_request_files(files: dict[str, bytes]) -> None:
    """Write the files of the request below the working directory."""
    for folder in {path.rpartition("/")[0] for path in files} - {""}:
        os.makedirs(folder, exist_ok=True)
    for path, content in files.items():
        write_request_file(path, content)


def write_request_file(path: str, content: bytes) -> None:
    """Write one file of the request into an existing folder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    # A request carries no modes, so a file that starts with `#!` is made executable.
    file_fd = os.open(path, flags, 0o755 if content[:2] == b"#!" else 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file_fd, view) :]
    finally:
        os.close(file_fd)


def exec_program(request: dict[str, Any]) -> None:
    """Turn this process into the program. Does not return."""
    argv = request["argv"]
    try:
        os.closerange(3, MAX_FDS)
        # Python ignores SIGPIPE, and the program would inherit that
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        apply_limits(request["limits"])
        os.execvpe(argv[0], argv, request["env"])
    except OSError as fault:
        os.write(2, f"cannot start {argv[0]!r}: {os.strerror(fault.errno or 0)}\n".encode())
        os._exit(127 if fault.errno == errno.ENOENT else 126)  # the exit codes of a shell
    finally:
        os._exit(126)


def apply_limits(limits: dict[str, int]) -> None:
    """Lower this process's limits permanently."""
    for kind, amount in (
        (resource.RLIMIT_AS, limits["memory_mb"] * MIB),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_mb"] * MIB),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        lower_limit(kind, amount)
    # The soft limit sends SIGXCPU, which says what happened; the hard limit kills a second later.
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_s"], limits["cpu_s"] + 1))
    try:
        # The kernel counts queued signals per host user over all namespaces; POSIX timers count too.
        lower_limit(resource.RLIMIT_SIGPENDING, MAX_QUEUED_SIGNALS)
    except ValueError:
        return  # gVisor cannot change this limit, and its count does not affect the host


def lower_limit(kind: int, amount: int) -> None:
    """Lower one limit of this process permanently."""
    hard_limit = resource.getrlimit(kind)[1]
    amount = amount if hard_limit == resource.RLIM_INFINITY else min(amount, hard_limit)
    resource.setrlimit(kind, (amount, amount))


def wait_for_program(
    pid: int,
    deadline: float,
    max_bytes: int,
    lifeline: int | None = None,
    out_of_memory: Callable[[], bool] = lambda: False,
) -> tuple[bytes, int]:
    """Wait for the program until the deadline, and return `(kind, number)` of the report's line `E`.

    Args:
        deadline: A time of the monotonic clock.
        max_bytes: Maximum memory of everything here except this process and PID 1.
        lifeline: A file descriptor that ends when the host ends.
        out_of_memory: Returns whether the kernel's OOM killer has killed something here.
    """
    watched_fds, tick_s = [] if lifeline is None else [lifeline], TICK_S
    try:
        watched_fds.append(os.pidfd_open(pid))
    except OSError:  # older versions of gVisor have no pidfd_open
        tick_s = QUICK_TICK_S
    trusted_pids = {"1", str(os.getpid())}
    folders = None
    while (remaining_s := deadline - time.monotonic()) > 0:
        ready_fds, _, _ = select.select(watched_fds, [], [], min(remaining_s, tick_s))
        if lifeline in ready_fds:
            os._exit(1)
        # As PID 1 of its namespace, this process inherits every process that loses its parent.
        while True:
            ended_pid, status = os.waitpid(-1, os.WNOHANG)
            if not ended_pid:
                break
            if ended_pid == pid:
                if out_of_memory():
                    return b"m", 0
                if os.WIFSIGNALED(status):
                    return b"s", os.WTERMSIG(status)
                return b"e", os.WEXITSTATUS(status)
        if folders is None:
            folders = find_memory_folders()
        if out_of_memory() or measure_memory(trusted_pids, folders, max_bytes) > max_bytes:
            return b"m", 0
    return b"t", 0


def find_memory_folders() -> list[str]:
    """Return the writable folders that are in memory."""
    with open("/proc/self/mountinfo") as file:
        lines = [line.split() for line in file]
    return [words[4] for words in lines if words[4] in WRITABLE and words[words.index("-") + 1] == "tmpfs"]


def measure_memory(trusted_pids: set[str], folders: list[str], max_bytes: int) -> int:
    """Return the memory of all processes but the trusted ones and of in-memory folders.

    If a quick overestimate is within `max_bytes`, the memory of processes is left out.
    """
    folder_bytes = 0
    for folder in folders:
        usage = os.statvfs(folder)
        folder_bytes += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
        folder_bytes += (usage.f_files - usage.f_ffree) * INODE_BYTES
    pids = {name for name in os.listdir("/proc") if name.isdigit()} - trusted_pids
    if folder_bytes + sum(map(resident_bytes, pids)) <= max_bytes:
        return folder_bytes
    # Pages that several processes share count once: a fork costs nothing until it writes.
    return folder_bytes + sum(map(proportional_bytes, pids))


def resident_bytes(pid: str) -> int:
    """Return the resident memory of a process, shared or not."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0  # it has just ended


def proportional_bytes(pid: str) -> int:
    """Return a process's share of its memory: shared pages count for each of their users in part.

    All of its memory counts if the share is unknown, as under gVisor.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = [line.split() for line in file]
    except OSError:
        # This is 0 if it has ended since: many processes that end together must not count in full.
        return resident_bytes(pid)
    parts = {words[0]: int(words[1]) << 10 for words in lines if len(words) == 3}
    # File-backed memory is either in the folders, which count anyway, or belongs to the host.
    return parts.get(b"Pss_Anon:", parts.get(b"Pss:", 0)) + parts.get(b"Pss_Shmem:", 0)


def open_box() -> int:
    """Open the working directory, to collect files from it. The program must not inherit this descriptor."""
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY)


class InputWatch:
    """The state of the watched files before the program starts, and its comparison with that at the end.

    A program can restore a file's content and modification time, but it cannot set the time of the last change of
    the inode. The kernel counts that time in ticks of at most 10 ms, so it does not show a change that is made
    within one tick after the file was written; no test runner starts that fast.

    Args:
        watched: Paths of watched files.
        files: Paths of all files of the request.
    """

    def __init__(self, watched: Collection[str], files: Iterable[str]) -> None:
        outer_folders = {folder for path in watched for folder in list_folders(path)}
        self._known = set(files)
        folders = {folder for path in self._known for folder in list_folders(path)} if watched else set()
        self._known |= folders
        self.folders = sorted(
            folder
            for folder in folders
            if folder in outer_folders or list_folders(folder)[-1] in outer_folders
        )
        """The folders in which new paths are looked for."""
        self._states = {path: read_state(path) for path in (*watched, *outer_folders)}

    def find_changes(self) -> list[str]:
        """Return the watched files that have changed, and the folders above them that were replaced."""
        return [path for path, state in self._states.items() if state is None or read_state(path) != state]

    def find_new_paths(self) -> Iterator[str]:
        """Yield the new paths in `folders`, and the paths in new folders there."""
        for folder in self.folders:
            for path in list_paths(folder):
                if path not in self._known:
                    yield path
                    yield from list_paths(path)


def list_folders(path: str) -> list[str]:
    """Return the folders above a path, the outermost first; none for the outermost itself."""
    if path == ROOT:
        return []
    ends = [index for index, char in enumerate(path) if char == "/"]
    return [ROOT, *(path[:end] for end in ends)]


def read_state(path: str) -> tuple[int, ...] | None:
    """Return what differs after a change of a file, or after a folder was replaced; `None` if nothing is there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    identity = (status.st_dev, status.st_ino, status.st_mode)
    if stat.S_ISDIR(status.st_mode):  # its times change whenever a file is created in it
        return identity
    return (*identity, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def list_paths(folder: str) -> list[str]:
    """Return the paths in a folder; none if it is not a folder. A link to a folder is not followed."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        if not os.access(folder, os.R_OK | os.X_OK):
            os.chmod(folder, 0o700)
        names = os.listdir(folder)
    except OSError:
        return []
    return names if folder == ROOT else [f"{folder}/{name}" for name in names]


def build_report(
    kind: bytes,
    number: int,
    request: dict[str, Any],
    box: int,
    inputs: InputWatch,
    read_events: Callable[[], tuple[set[str], set[str]]] = lambda: (set(), set()),
) -> Iterator[bytes]:
    """Yield the report from its line `E` on. Call this when every process of the run is gone.

    Args:
        read_events: Returns the folders of `inputs` that were moved or removed in the meantime, and the paths that
            appeared in them.
    """
    yield build_ending(kind, number)
    make_box_readable(box)
    moved, appeared = read_events()
    yield from build_input_lines({*inputs.find_changes(), *moved}, {*inputs.find_new_paths(), *appeared})
    remaining_bytes = request["collect_bytes"]
    for index, path in enumerate(request["collect"]):
        content = collect_file(box, path, remaining_bytes)
        if content is not None:
            remaining_bytes -= len(content)
            yield b"F" + index.to_bytes(4, "big") + len(content).to_bytes(8, "big")
            yield content
    yield b"."


def build_input_lines(changed: set[str], created: set[str]) -> Iterator[bytes]:
    """Yield the report's lines `W` and `N`."""
    if len(created) > MAX_NEW_PATHS:
        changed, created = changed | {ROOT}, set()
    for tag, paths in ((b"W", changed), (b"N", created)):
        for path in sorted(paths):
            encoded = os.fsencode(path)
            yield tag + len(encoded).to_bytes(4, "big") + encoded


def make_box_readable(box: int) -> None:
    """Make the working directory readable again, if the program has changed its mode."""
    try:
        os.fchmod(box, 0o700)
    except OSError:  # the folder has another owner, as in a container
        return


def build_ending(kind: bytes, number: int) -> bytes:
    """Return the report's line `E`."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_ms = min(int(1000 * (usage.ru_utime + usage.ru_stime)), (1 << 32) - 1)
    return b"E" + kind + number.to_bytes(4, "big") + cpu_ms.to_bytes(4, "big")


def kill_remaining() -> None:
    """Kill whatever the program left behind, so that nothing changes files while they are collected."""
    for _ in range(400):  # with the pauses below, two seconds
        try:
            os.kill(-1, 9)
        except ProcessLookupError:
            return
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.005)


def collect_file(box: int, path: str, max_bytes: int) -> bytes | None:
    """Read one regular file below the working directory, without following any link on the way."""
    *folders, name = path.split("/")
    folder_fd = box
    try:
        for folder in folders:
            inner_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_fd)
            if folder_fd != box:
                os.close(folder_fd)
            folder_fd = inner_fd
        # Without O_NONBLOCK, opening a FIFO of this name would block forever.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(name, flags, dir_fd=folder_fd), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
                return None
            content = file.read(max_bytes + 1)
            return content if len(content) <= max_bytes else None
    except OSError:
        return None
    finally:
        if folder_fd != box:
            os.close(folder_fd)


def parse_oom_kills(events: bytes) -> int:
    """Return N of the line `oom_kill N` in `memory.events` (cgroup v2) or `memory.oom_control` (v1)."""
    words = events.split()
    return int(words[words.index(b"oom_kill") + 1]) if b"oom_kill" in words else 0


if __name__ == "__main__":
    main()
