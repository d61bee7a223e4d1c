"""Prepare an E2B machine: new namespaces, an unprivileged user and the system call filter, then a zygote in
them.

Started by root as `python3 -I -S -B -c SOURCE FILTER USER DISK_BYTES BOOT`. The service only carries strings, so the
zygote's bytes travel as lines of base64 in both directions.
"""

import base64
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys

NEW_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""`CLONE_NEW{NS,UTS,IPC,PID,NET}` of `linux/sched.h`."""
NO_SETUID, NO_DEVICES, NO_PROGRAMS, RECURSIVE, PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
"""`MS_{NOSUID,NODEV,NOEXEC,REC,PRIVATE}` of `linux/mount.h`."""
SET_PDEATHSIG, SET_SECCOMP, SET_NO_NEW_PRIVILEGES, SECCOMP_MODE_FILTER = 1, 22, 38, 2
"""Constants of `linux/prctl.h` and `linux/seccomp.h`."""
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 1 | 64
"""`SIOCSIFFLAGS` of `linux/sockios.h`, `IFF_{UP,RUNNING}` of `linux/if.h`."""
CHUNK = 24 << 10
"""A multiple of three, so that base64 needs no padding; a line then has 32 KiB."""
libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of `linux/filter.h`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def check(result: int, call: str) -> None:
    """End this process if a libc call failed."""
    if result != 0:
        sys.exit(f"{call}: {os.strerror(ctypes.get_errno())}")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a file system of type `kind` at `target`. Ends this process if the kernel refuses."""
    arguments = (kind.encode(), target.encode(), kind.encode())
    check(libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")


def open_loopback() -> None:
    """Bring up the loopback interface; a new network namespace has only a loopback that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))


def enter_namespaces(seccomp_filter: bytes, user: int, disk_bytes: int) -> None:
    """Become the first process of the new namespaces, and drop all privileges."""
    check(libc.prctl(SET_PDEATHSIG, 9, 0, 0, 0), "prctl")
    mount("none", "/", RECURSIVE | PRIVATE)
    mount("proc", "/proc", NO_SETUID | NO_DEVICES | NO_PROGRAMS)
    for folder in ("/box", "/tmp", "/dev/shm"):
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - pathlib is not needed for this
        mount("tmpfs", folder, NO_SETUID | NO_DEVICES, f"size={disk_bytes},mode=1777")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    check(libc.prctl(SET_PDEATHSIG, 9, 0, 0, 0), "prctl")  # a change of user clears it
    check(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    program = _FilterProgram(len(seccomp_filter) // 8, seccomp_filter)
    check(libc.prctl(SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0), "seccomp")


def relay(zygote_stdin: int, zygote_stdout: int) -> None:
    """Relay bytes in both directions until either side has ended."""
    unparsed = b""
    while True:
        readable, _, _ = select.select([0, zygote_stdout], [], [])
        if zygote_stdout in readable:
            chunk = os.read(zygote_stdout, CHUNK)
            if not chunk:
                return
            write_all(1, base64.b64encode(chunk) + b"\n")
        if 0 in readable:
            text = os.read(0, 1 << 16)
            if not text:
                return
            *lines, unparsed = (unparsed + text).split(b"\n")
            for line in lines:
                write_all(zygote_stdin, base64.b64decode(line))


def write_all(write_fd: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(write_fd, view) :]


def main() -> None:
    """Serve one zygote."""
    seccomp_filter, user, disk_bytes = bytes.fromhex(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    check(libc.unshare(NEW_NAMESPACES), "unshare")
    open_loopback()
    stdin, stdout = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        enter_namespaces(seccomp_filter, user, disk_bytes)
        os.dup2(stdin[0], 0)
        os.dup2(stdout[1], 1)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-B", "-c", sys.argv[4]], {"LANG": "C.UTF-8"})
    os.close(stdin[0])
    os.close(stdout[1])
    try:
        relay(stdin[1], stdout[0])
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
