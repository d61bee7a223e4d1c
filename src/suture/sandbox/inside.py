"""The one trusted program behind the wall: it lays the files, runs the program, brings files back.

It is started as `python -I -S -B -c SOURCE REQUEST_FD REPORT_FD` and imports only what starts in no time:
`json`, `signal` or `typing` would double its start-up. The request is a marshalled mapping: both ends are the
same interpreter, and the host wrote it. The report goes the other way, parsed by hand (see `report.py`):

    X message                     the files could not be laid
    S                             the program starts now
    E kind number                 how it ended: `e` exit code, `s` signal, `t` time-out; big-endian u32
    F index size content          a collected file: big-endian u32 and u64
    .                             the end
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` itself pulls in `enum`: half of the start-up
import errno
import marshal
import os
import resource
import select
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIB = 1 << 20
MOST_FDS = 1 << 20


def main() -> None:
    """Serve the one request."""
    request_fd, report_fd = int(sys.argv[1]), int(sys.argv[2])
    kept = sorted((request_fd, report_fd))
    for low, high in ((3, kept[0]), (kept[0] + 1, kept[1]), (kept[1] + 1, MOST_FDS)):
        os.closerange(low, high)  # such as the namespace that our launcher came through
    with open(request_fd, "rb") as file:
        request = marshal.load(file)
    try:
        for path, content in request["files"].items():
            lay(path, content)
    except OSError as fault:
        os.write(report_fd, b"X" + os.strerror(fault.errno or 0).encode())
        return
    os.write(report_fd, b"S")
    deadline = time.monotonic() + request["wall_s"]
    pid = os.fork()
    if pid == 0:
        become(request)
    kind, number = watch(pid, deadline)
    kill_the_rest()
    with open(report_fd, "wb") as report:
        report.write(b"E" + kind + number.to_bytes(4, "big"))
        room = request["collect_bytes"]
        for index, path in enumerate(request["collect"]):
            content = collect(path, room)
            if content is not None:
                room -= len(content)
                report.write(b"F" + index.to_bytes(4, "big") + len(content).to_bytes(8, "big") + content)
        report.write(b".")


def lay(path: str, content: bytes) -> None:
    """Write one file of the request below the working directory."""
    folder = path.rpartition("/")[0]
    if folder:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - pathlib would cost us its import
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    # What starts with `#!` was made to be run; a request holds contents and no modes.
    handle = os.open(path, flags, 0o755 if content[:2] == b"#!" else 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def become(request: dict[str, Any]) -> None:
    """Turn this process into the program; does not return."""
    argv = request["argv"]
    try:
        os.closerange(3, MOST_FDS)
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # Python ignores it, and programs would inherit that
        limit(request["limits"])
        os.execvpe(argv[0], argv, request["env"])
    except OSError as fault:
        os.write(2, f"cannot start {argv[0]!r}: {os.strerror(fault.errno or 0)}\n".encode())
        os._exit(127 if fault.errno == errno.ENOENT else 126)
    finally:
        os._exit(126)


def limit(limits: dict[str, int]) -> None:
    """Lower this process's limits for good."""
    for kind, amount in (
        (resource.RLIMIT_AS, limits["memory_mb"] * MIB),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_mb"] * MIB),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        amount = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (amount, amount))
    # The soft limit comes first and is a signal that says what happened; the hard one kills.
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_s"], limits["cpu_s"] + 1))


def watch(pid: int, deadline: float) -> tuple[bytes, int]:
    """Wait for the program, at most until the deadline."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:  # an older gVisor has none
        ended, status = 0, 0
        while not ended and time.monotonic() < deadline:
            time.sleep(0.005)
            ended, status = os.waitpid(pid, os.WNOHANG)
    else:
        ended = bool(select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0])
        status = os.waitpid(pid, 0)[1] if ended else 0
    if not ended:
        return b"t", 0
    if os.WIFSIGNALED(status):
        return b"s", os.WTERMSIG(status)
    return b"e", os.WEXITSTATUS(status)


def kill_the_rest() -> None:
    """End whatever the program left behind, so that nothing changes files while they are collected."""
    for _ in range(400):
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


def collect(path: str, most_bytes: int) -> bytes | None:
    """Read one regular file below the working directory; no link is followed on the way."""
    *folders, name = path.split("/")
    at = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        # Without O_NONBLOCK a FIFO of this name would hold us for ever.
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at), "rb") as file:  # noqa: PTH123
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes:
                return None
            content = file.read(most_bytes + 1)
            return content if len(content) <= most_bytes else None
    except OSError:
        return None
    finally:
        os.close(at)


if __name__ == "__main__":
    main()
