"""The kernel calls that Python's library does not have."""

from __future__ import annotations

import ctypes
import os

# One that keeps the interpreter's lock: a process that is cloned without it could not go on.
_libc = ctypes.PyDLL(None, use_errno=True)
_python = ctypes.pythonapi

CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the system call, by machine."""
NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
"""`CLONE_NEW{NS,UTS,IPC,USER,PID}` of `linux/sched.h`."""
SIGCHLD = 17
READ_WRITE, PRIVATE_ANONYMOUS, DONT_FORK = 3, 0x22, 10
"""`PROT_{READ,WRITE}`, `MAP_{PRIVATE,ANONYMOUS}` and `MADV_DONTFORK` of `asm-generic/mman-common.h`."""
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
"""`MS_{RDONLY,NOSUID,NODEV,NOEXEC,REMOUNT,BIND}` of `linux/mount.h`."""
SET_DUMPABLE, SET_SECCOMP, DROP_FROM_BOUNDING_SET, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVILEGES = (
    4,
    22,
    24,
    36,
    38,
)
SECCOMP_MODE_FILTER = 2
"""Of `linux/seccomp.h`; those above it of `linux/prctl.h`."""
CAPABILITY_VERSION_3 = 0x20080522
"""0x20080522, the version of the header that `capset` takes (linux/capability.h)."""
LAST_CAPABILITY = 63
"""More than there are; the kernel says where they end."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _call(name: str, *args: object) -> int:
    answer: int = getattr(_libc, name)(*args)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return answer


def clone() -> int:
    """As `os.fork`, and the child is the first process of new user, PID, mount, IPC and UTS namespaces."""
    number = CLONE[os.uname().machine]
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
    """Mount something.

    Args:
        kind: Of file system; empty for a bind.
        target: An existing folder.
        flags: Any of the constants here.
        options: Of the file system.
        source: The folder to bind.
    """
    words = ((source or kind).encode(), target.encode(), kind.encode() or None)
    _call("mount", *words, ctypes.c_ulong(flags), options.encode() or None)


def protect() -> None:
    """Let no other process look into this one."""
    _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)


def show() -> None:
    """Take `protect` back, as every program starts out."""
    _call("prctl", SET_DUMPABLE, 1, 0, 0, 0)


def adopt() -> None:
    """Become the parent of all descendants that lose theirs."""
    _call("prctl", SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up every capability for good, and the way to get any back."""
    for capability in range(LAST_CAPABILITY + 1):
        if _libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def install_filter(code: bytes) -> None:
    """Let only those system calls through that a filter allows; for this process and all it starts."""
    program = _Program(len(code) // 8, code)
    _call("prctl", SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def unshared_memory(size: int) -> memoryview:
    """New memory that children do not get; it is never given back.

    The `mmap` module would: a child that drops the object frees whatever it has at that place by then.
    """
    _libc.mmap.restype = ctypes.c_void_p
    place = _libc.mmap(None, ctypes.c_size_t(size), READ_WRITE, PRIVATE_ANONYMOUS, -1, ctypes.c_long(0))
    if place in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(size)
    _call("madvise", ctypes.c_void_p(place), ctypes.c_size_t(size), DONT_FORK)
    return memoryview((ctypes.c_ubyte * size).from_address(place)).cast("B")


def resident_pages() -> int:
    """Pages of memory that this process holds."""
    handle = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(handle, 256).split()[1])
    finally:
        os.close(handle)
