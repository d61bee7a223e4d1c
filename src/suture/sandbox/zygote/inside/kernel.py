"""Kernel calls that Python's library lacks, and the kernel's counters of OOM kills and open sockets.

A container shows its own control group, whose limit is the engine's. If the kernel is faster than our own
check of memory, the count of OOM kills is the only trace. A TCP connection outlives the processes that held
it, and the runs of a zygote share a network namespace.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from suture.sandbox.execution.supervisor import parse_oom_kills

# PyDLL keeps the interpreter's lock during a call: a process that is cloned without the lock could not
# continue.
_libc = ctypes.PyDLL(None, use_errno=True)
_python = ctypes.pythonapi

CLONE_CALL = {"x86_64": 56, "aarch64": 220}
"""The number of the `clone` system call, by machine."""
NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
"""`CLONE_NEW{NS,UTS,IPC,USER,PID}` of `linux/sched.h`."""
SIGCHLD = 17
READ_WRITE, PRIVATE_ANONYMOUS, DONT_FORK = 3, 0x22, 10
"""`PROT_{READ,WRITE}`, `MAP_{PRIVATE,ANONYMOUS}` and `MADV_DONTFORK` of `asm-generic/mman-common.h`."""
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
"""`MS_{RDONLY,NOSUID,NODEV,NOEXEC,REMOUNT,BIND}` of `linux/mount.h`."""
SET_DUMPABLE, SET_SECCOMP, DROP_FROM_BOUNDING_SET = 4, 22, 24
SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVILEGES = 36, 38
"""Constants of `linux/prctl.h`."""
SECCOMP_MODE_FILTER = 2
"""Constant of `linux/seccomp.h`."""
CAPABILITY_VERSION_3 = 0x20080522
"""`_LINUX_CAPABILITY_VERSION_3`, the version of the header that `capset` takes (linux/capability.h)."""
LAST_CAPABILITY = 63
"""More than exist; the kernel says where they end."""
CREATED, MOVED_IN, DELETED_ITSELF, MOVED_ITSELF, LOST_EVENTS = 0x100, 0x80, 0x400, 0x800, 0x4000
ONLY_FOLDERS, FOLLOW_NO_LINK = 0x01000000, 0x02000000
"""`IN_{CREATE,MOVED_TO,DELETE_SELF,MOVE_SELF,Q_OVERFLOW,ONLYDIR,DONT_FOLLOW}` of `linux/inotify.h`."""
MAX_EVENT_BYTES = 1 << 16
"""Bytes of events that are read at once. One event has at most 272."""
EVENT_HEAD = "iIII"
"""`struct inotify_event` of `linux/inotify.h`: watch, mask, cookie, length of the name that follows."""


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of `linux/filter.h`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _call(name: str, *args: object) -> int:
    result: int = getattr(_libc, name)(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def clone() -> int:
    """Fork as `os.fork` does, with the child as PID 1 of new user, PID, mount, IPC and UTS namespaces."""
    number = CLONE_CALL[os.uname().machine]
    _python.PyOS_BeforeFork()
    pid: int = _libc.syscall(
        ctypes.c_long(number), ctypes.c_ulong(NEW_NAMESPACES | SIGCHLD), None, None, None, None
    )
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    error = ctypes.get_errno()
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, f"no new namespaces: {os.strerror(error)}")
    return pid


def mount(kind: str, target: str, flags: int, options: str = "", source: str = "") -> None:
    """Mount a file system, or bind a folder.

    Args:
        kind: The type of file system; empty for a bind mount.
        target: An existing folder.
        flags: Any of the constants of this module.
        source: The folder to bind.
    """
    names = ((source or kind).encode(), target.encode(), kind.encode() or None)
    _call("mount", *names, ctypes.c_ulong(flags), options.encode() or None)


def forbid_inspection() -> None:
    """Forbid other processes to inspect this one."""
    _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)


def allow_inspection() -> None:
    """Undo `forbid_inspection`, because every program starts dumpable."""
    _call("prctl", SET_DUMPABLE, 1, 0, 0, 0)


def become_subreaper() -> None:
    """Become the parent of all descendants that lose theirs."""
    _call("prctl", SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def drop_capabilities() -> None:
    """Drop every capability permanently, and every way to regain one."""
    for capability in range(LAST_CAPABILITY + 1):
        if _libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def install_filter(code: bytes) -> None:
    """Install a system call filter for this process and all that it starts."""
    program = _FilterProgram(len(code) // 8, code)
    _call("prctl", SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def unshared_memory(size: int) -> memoryview:
    """Return new memory that children do not inherit. It is never freed.

    The `mmap` module is unsuitable: a child that drops the object unmaps whatever is at that address by then.
    """
    _libc.mmap.restype = ctypes.c_void_p
    address = _libc.mmap(None, ctypes.c_size_t(size), READ_WRITE, PRIVATE_ANONYMOUS, -1, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(size)
    _call("madvise", ctypes.c_void_p(address), ctypes.c_size_t(size), DONT_FORK)
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")


def resident_pages() -> int:
    """Return the resident memory of this process, in pages."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read(256).split()[1])


KILL_COUNTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Files of cgroup v2 and v1 that count kills; each has a line `oom_kill N`."""

SOCKET_COUNTS = ("/proc/self/net/sockstat", "/proc/self/net/sockstat6")
"""Each has a line of pairs: `TCP: inuse N orphan N tw N ...`. Orphans are counted for the whole machine, the
others for this namespace. Connections in TIME_WAIT of both IP versions are in the first file."""
MAX_COUNTER_BYTES = 4096


def find_kill_counts(paths: tuple[str, ...] = KILL_COUNTS) -> tuple[str, ...]:
    """Return the files that exist here. Call this once: a failed attempt to open them in each run is slow."""
    return tuple(path for path in paths if os.access(path, os.R_OK))


class OomKillCounter:
    """Counts OOM kills since it was created, which must be before the folder of control groups is covered.

    Args:
        paths: Files that may hold the count; the first that can be opened is used. Without any, nothing is
            counted.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._count_fd: int | None = None
        for path in paths:
            with suppress(OSError):
                self._count_fd = os.open(path, os.O_RDONLY)
                break
        self._initial_count = self._count()

    def has_grown(self) -> bool:
        """Return whether there was an OOM kill since."""
        return self._count() > self._initial_count

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        count_fd, self._count_fd = self._count_fd, None
        if count_fd is not None:
            os.close(count_fd)

    def _count(self) -> int:
        if self._count_fd is None:
            return 0
        try:
            return parse_oom_kills(os.pread(self._count_fd, MAX_COUNTER_BYTES, 0))
        except OSError:  # for example, the group is being removed
            return 0


class FolderEvents:
    """Records which paths appear in folders, also those that are removed again.

    Create it before the system call filter is installed. Nothing is recorded where inotify is refused, as in a
    container, or where the host's user has no instance left.

    Args:
        folders: Paths of folders.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._events_fd: int | None = None
        self._folders: dict[int, str] = {}
        if not folders:
            return
        events = CREATED | MOVED_IN | DELETED_ITSELF | MOVED_ITSELF | ONLY_FOLDERS | FOLLOW_NO_LINK
        with suppress(OSError):
            self._events_fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
            for folder in folders:
                watch = _call("inotify_add_watch", self._events_fd, os.fsencode(folder), events)
                self._folders[watch] = folder

    def close(self) -> None:
        """Close the file of events, which the program must not read."""
        if self._events_fd is not None:
            os.close(self._events_fd)

    def read(self) -> tuple[set[str], set[str]]:
        """Return the folders that were moved or removed, and the paths that appeared in the others.

        If the kernel has lost events, the working directory counts as moved.
        """
        moved: set[str] = set()
        appeared: set[str] = set()
        for watch, mask, name in self._read_events():
            folder = self._folders.get(watch, ".")
            if mask & (DELETED_ITSELF | MOVED_ITSELF | LOST_EVENTS):
                moved.add(folder)
            elif mask & (CREATED | MOVED_IN):
                appeared.add(name if folder == "." else f"{folder}/{name}")
        return moved, appeared

    def _read_events(self) -> Iterator[tuple[int, int, str]]:
        if self._events_fd is None:
            return
        with suppress(BlockingIOError):  # there are no more
            while True:
                events, start = os.read(self._events_fd, MAX_EVENT_BYTES), 0
                while start < len(events):
                    watch, mask, _, length = struct.unpack_from(EVENT_HEAD, events, start)
                    end = start + struct.calcsize(EVENT_HEAD) + length
                    yield watch, mask, os.fsdecode(events[end - length : end].rstrip(b"\0"))
                    start = end


class SocketCounter:
    """Counts TCP sockets. Create it before anything runs that could open one.

    Args:
        paths: Files with the counts; missing files count nothing.
    """

    def __init__(self, paths: tuple[str, ...] = SOCKET_COUNTS) -> None:
        # Kept open, because this is read after each run.
        self._count_fds: list[int] = []
        for path in paths:
            with suppress(OSError):
                self._count_fds.append(os.open(path, os.O_RDONLY))

    def count_sockets(self) -> int:
        """Return the number of TCP sockets that are open, closing, or in TIME_WAIT."""
        return sum(map(_read_socket_count, self._count_fds))


def _read_socket_count(count_fd: int) -> int:
    """Return the TCP sockets in use or in TIME_WAIT, from an open `sockstat`."""
    for line in os.pread(count_fd, MAX_COUNTER_BYTES, 0).splitlines():
        words = line.split()
        if words[:1] in ([b"TCP:"], [b"TCP6:"]):
            return sum(int(words[words.index(name) + 1]) for name in (b"inuse", b"tw") if name in words)
    return 0
