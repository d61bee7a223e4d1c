"""Canary attacks, as they run behind a wall: each must fail. See `probe.py` for the host's side.

Runs as Python code on a bare interpreter, so it may import the standard library only. It answers with a
frame of JSON: the names of what was possible, and what was seen.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

AF_VSOCK = 40
"""Of `linux/socket.h`: sockets between a virtual machine and its host."""
NEW_USER_NAMESPACE = 0x10000000
"""`CLONE_NEWUSER` of `linux/sched.h`."""
KERNEL_SETTINGS = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches")
MIB = 1 << 20
SIGKILL = 9


def lurk(words: dict[str, Any]) -> None:
    """Try to get out, report, and wait to be looked at from outside; leave a child behind at the end.

    Args:
        words: What the host has laid out: `mark`, `secret`, `files`, `folders`, `addresses`, `abstract`,
            `kernel`.
    """
    # gVisor refuses; the host finds others by it.
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(words["mark"])
    send({name: seen for name, attack in ATTACKS.items() if (seen := attempt(attack, words))})
    sys.stdin.buffer.read()
    if os.fork() == 0:
        os.setsid()
        for handle in (0, 1, 2):
            os.close(handle)
        time.sleep(30)


def send(answer: object) -> None:
    """Send one frame to the host."""
    frame = json.dumps(answer).encode("ascii")
    sys.stdout.buffer.write(len(frame).to_bytes(4, "big") + frame)
    sys.stdout.flush()


def attempt(attack: Callable[[dict[str, Any]], str], words: dict[str, Any]) -> str:
    """What an attack has seen; nothing where it failed."""
    try:
        return attack(words)
    except OSError:
        return ""


def read_files(words: dict[str, Any]) -> str:
    """Read files of the host's."""
    for path in words["files"]:
        try:
            with open(path) as file:
                if words["secret"] in file.read():
                    return str(path)
        except OSError:
            continue
    return ""


def read_environments(words: dict[str, Any]) -> str:
    """Read what our launchers were given."""
    if words["secret"] in os.environ.values():
        return "our own"
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if words["secret"].encode() in file.read():
                    return f"process {pid}"
        except OSError:
            continue
    return ""


def write_files(words: dict[str, Any]) -> str:
    """Write into folders of the host's; the host looks whether something has come."""
    for folder in words["folders"]:
        try:
            with open(f"{folder}/{words['mark']}", "w"):
                pass
        except OSError:
            continue
    return ""


def connect(words: dict[str, Any]) -> str:
    """Reach a listener of the host's."""
    for host, port in words["addresses"]:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            continue
        return f"{host}:{port}"
    return ""


def connect_abstract(words: dict[str, Any]) -> str:
    """Reach a listener of the host's that has no file and no port."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("\0" + words["abstract"])
    return "connected"


def open_vsock(_: dict[str, Any]) -> str:
    """Open a socket to whatever runs this machine."""
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()
    return "opened"


def open_kernel_settings(_: dict[str, Any]) -> str:
    """Open a setting of the kernel's, without writing to it."""
    for path in KERNEL_SETTINGS:
        try:
            os.close(os.open(path, os.O_WRONLY))
        except OSError:
            continue
        return path
    return ""


def make_namespace(_: dict[str, Any]) -> str:
    """Become root of new namespaces, where more of the kernel can be reached."""
    pid = os.fork()
    if pid == 0:
        os._exit(ctypes.CDLL(None).unshare(NEW_USER_NAMESPACE) != 0)
    return "made" if os.waitpid(pid, 0)[1] == 0 else ""


def kernel() -> list[str]:
    """What tells this start of a kernel from others: its boot id, where it shows one, and its version."""
    signs = []
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/version"):
        try:
            with open(path) as file:
                signs.append(file.read().strip())
        except OSError:
            signs.append("")
    return signs


def meet_kernel(words: dict[str, Any]) -> str:
    """Meet the host's own kernel."""
    (boot, version), (host_boot, host_version) = kernel(), words["kernel"]
    same = boot == host_boot if boot and host_boot else version == host_version
    return version or "it tells nothing of itself" if same else ""


ATTACKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "files of the host": read_files,
    "environment of the host": read_environments,
    "writing on the host": write_files,
    "network of the host": connect,
    "abstract sockets of the host": connect_abstract,
    "vsock": open_vsock,
    "settings of the kernel": open_kernel_settings,
    "namespaces": make_namespace,
    "kernel of the host": meet_kernel,
}


def hold(limits: dict[str, int]) -> None:
    """Run against every limit, report which ones hold, then print too much.

    Args:
        limits: The names and values of `ProgramLimits`.
    """
    held = {
        "memory_mb": refused(lambda: bytearray((limits["memory_mb"] + 64) * MIB)),
        "disk_mb": all(refused(lambda f=f: fill(f, limits)) for f in ("/box", "/tmp")),  # type: ignore[misc] # the default binds
        "inodes": all(refused(lambda f=f: litter(f, limits)) for f in ("/box", "/tmp")),  # type: ignore[misc] # the default binds
        "file_mb": refused(lambda: write("/box/long", (limits["file_mb"] + 1) * MIB)),
        "open_files": refused(lambda: open_many(limits["open_files"] + 1)),
        "cpu_s": resource.getrlimit(resource.RLIMIT_CPU)[0] <= limits["cpu_s"],
        "processes": refused(lambda: start_many(limits["processes"])),
    }
    send([name for name, holds in held.items() if holds])
    os.write(2, b"x" * (8 * limits["output_bytes"]))


def refused(act: Callable[[], object]) -> bool:
    """Whether something cannot be done."""
    try:
        act()
    except (OSError, MemoryError, RuntimeError):
        return True
    return False


def fill(folder: str, limits: dict[str, int]) -> None:
    """Write more into a folder than it may hold, in files that each are short enough; then clear it."""
    paths = [f"{folder}/{number}" for number in range(limits["disk_mb"] // limits["file_mb"] + 1)]
    try:
        for path in paths:
            write(path, limits["file_mb"] * MIB)
    finally:
        clear(paths)


def litter(folder: str, limits: dict[str, int]) -> None:
    """Make more files in a folder than it may hold; then clear it."""
    paths = [f"{folder}/{number}" for number in range(limits["inodes"] + 1)]
    try:
        for path in paths:
            write(path, 0)
    finally:
        clear(paths)


def clear(paths: list[str]) -> None:
    """Remove what there is of some files."""
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)


def write(path: str, size: int) -> None:
    """Write a file of so many zero bytes, to meet the limit on disk."""
    with open(path, "wb") as file:
        file.write(bytes(size))


def open_many(number: int) -> None:
    """Hold so many descriptors at once."""
    handles: list[int] = []
    try:
        while len(handles) < number:
            handles.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for handle in handles:
            os.close(handle)


def start_many(number: int) -> None:
    """Hold so many processes at once."""
    pids: list[int] = []
    try:
        while len(pids) < number:
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            pids.append(pid)
    finally:
        for pid in pids:
            os.kill(pid, SIGKILL)
            os.waitpid(pid, 0)


def swell(total_memory_mb: int) -> None:
    """Hold more memory than allowed in all, in processes that each are small enough."""
    for _ in range(3):
        if os.fork() == 0:
            break
    kept = b"x" * (total_memory_mb * MIB // 2)
    time.sleep(30)
    del kept


def hoard(total_memory_mb: int) -> None:
    """Hold more memory than allowed in all, in files that no process has mapped; report a refusal."""
    kept = []
    try:
        for _ in range(4):
            kept.append(os.memfd_create("kept"))
            for _ in range(total_memory_mb):
                os.write(kept[-1], bytes(MIB))
    except OSError:
        send("refused")
    else:
        time.sleep(1)
