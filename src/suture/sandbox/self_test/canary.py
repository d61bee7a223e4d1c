"""Canary attacks as they run inside the sandbox: each must fail. `probe.py` is the host's side.

Runs as Python code on a bare interpreter, so it may import only the standard library. It answers with a frame
of JSON: the names of the attacks that succeeded, and what they saw.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

AF_VSOCK = 40
"""Constant of `linux/socket.h`: sockets between a virtual machine and its host."""
NEW_USER_NAMESPACE = 0x10000000
"""`CLONE_NEWUSER` of `linux/sched.h`."""
KERNEL_SETTINGS = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches")
"""Settings with which a program could act on the whole machine."""
MIB = 1 << 20
SIGKILL = 9
OUTLIVES_PROBE_S = 30
"""Seconds that a process sleeps which the sandbox or the host must end first. Chosen by judgement; not measured."""


def attack_and_wait(bait: dict[str, Any]) -> None:
    """Try to get out, report, wait while the host looks from outside, and leave a child behind at the end.

    Args:
        bait: What the host has prepared (see `probe._place_bait`).
    """
    # gVisor refuses this. On other kernels the host finds the process by its name.
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(bait["mark"])
    evidence = {name: attempt(attack, bait) for name, attack in ATTACKS.items()}
    send({name: text for name, text in evidence.items() if text})
    sys.stdin.buffer.read()
    if os.fork() == 0:
        os.setsid()
        for standard_fd in (0, 1, 2):
            os.close(standard_fd)
        time.sleep(OUTLIVES_PROBE_S)


def send(message: object) -> None:
    """Send one frame to the host."""
    frame = json.dumps(message).encode("ascii")
    sys.stdout.buffer.write(len(frame).to_bytes(4, "big") + frame)
    sys.stdout.flush()


def attempt(attack: Callable[[dict[str, Any]], str], bait: dict[str, Any]) -> str:
    """Return what an attack reached; empty if it failed."""
    try:
        return attack(bait)
    except OSError:
        return ""


def read_files(bait: dict[str, Any]) -> str:
    """Read files of the host."""
    for path in bait["files"]:
        try:
            with open(path) as file:
                if bait["secret"] in file.read():
                    return str(path)
        except OSError:
            continue
    return ""


def read_environments(bait: dict[str, Any]) -> str:
    """Read the environment of the processes that launched the sandbox."""
    if bait["secret"] in os.environ.values():
        return "its own"
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if bait["secret"].encode() in file.read():
                    return f"process {pid}"
        except OSError:
            continue
    return ""


def write_files(bait: dict[str, Any]) -> str:
    """Write into folders of the host. The host checks whether a file has appeared."""
    for folder in bait["folders"]:
        try:
            with open(f"{folder}/{bait['mark']}", "w"):
                pass
        except OSError:
            continue
    return ""


def connect(bait: dict[str, Any]) -> str:
    """Connect to a TCP listener of the host."""
    for host, port in bait["addresses"]:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            continue
        return f"{host}:{port}"
    return ""


def connect_abstract(bait: dict[str, Any]) -> str:
    """Connect to an abstract Unix socket of the host, which has neither a file nor a port."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + bait["abstract"])
    return "connected"


def open_vsock(_: dict[str, Any]) -> str:
    """Open a socket to the hypervisor. AF_VSOCK belongs to no network namespace."""
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()
    return "opened"


def open_kernel_settings(_: dict[str, Any]) -> str:
    """Open a kernel setting for writing, without writing to it."""
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


def identify_kernel() -> list[str]:
    """Return `[boot id, version]` of this kernel. Each is empty if it is hidden."""
    identity = []
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/version"):
        try:
            with open(path) as file:
                identity.append(file.read().strip())
        except OSError:
            identity.append("")
    return identity


def compare_kernel(bait: dict[str, Any]) -> str:
    """Return the kernel's version if this may be the host's own kernel; empty if it is another one."""
    (boot, version), (host_boot, host_version) = identify_kernel(), bait["kernel"]
    if boot and host_boot:
        is_other = boot != host_boot
    else:
        # A sandbox can hide both files without its own kernel, so a hidden version proves nothing.
        is_other = bool(version and host_version) and version != host_version
    return "" if is_other else version or "it shows no version"


ATTACKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "host_files": read_files,
    "host_environment": read_environments,
    "host_writes": write_files,
    "host_network": connect,
    "host_abstract_sockets": connect_abstract,
    "vsock": open_vsock,
    "kernel_settings": open_kernel_settings,
    "namespaces": make_namespace,
    "host_kernel": compare_kernel,
}


def test_limits(limits: dict[str, int]) -> None:
    """Exceed every limit, report which ones held, then print more than `output_bytes`.

    The other limits, which end the program, have attacks of their own.

    Args:
        limits: The fields of `ProgramLimits` and their values.
    """
    import resource  # Here, because the host, which may be Windows, imports this module too.

    full = (errno.ENOSPC, errno.EDQUOT)
    results = {
        # Even an array of exactly `memory_mb` would be too large in addition to the interpreter. The 64 MiB are spare.
        "memory_mb": is_refused(lambda: bytearray((limits["memory_mb"] + 64) * MIB), errno.ENOMEM),
        "disk_mb": all(is_refused(lambda f=f: exceed_disk(f, limits), *full) for f in ("/box", "/tmp")),  # type: ignore[misc] # the default binds
        "inodes": all(is_refused(lambda f=f: exceed_inodes(f, limits), *full) for f in ("/box", "/tmp")),  # type: ignore[misc] # the default binds
        "file_mb": is_refused(lambda: write_zeros("/box/long", (limits["file_mb"] + 1) * MIB), errno.EFBIG),
        "open_files": is_refused(lambda: open_many(limits["open_files"] + 1), errno.EMFILE),
        "cpu_s": resource.getrlimit(resource.RLIMIT_CPU)[0] <= limits["cpu_s"],
        "processes": is_refused(lambda: start_many(limits["processes"]), errno.EAGAIN),
    }
    send([name for name, holds in results.items() if holds])
    # The frame above is on stdout, so this is on stderr. The host tolerates less than twice the limit there
    # (`probe._test_limits`), and this is clearly more.
    os.write(2, b"x" * (8 * limits["output_bytes"]))


def is_refused(action: Callable[[], object], *refusals: int) -> bool:
    """Return whether an action fails with an error of its limit; other errors do not show that the limit holds.

    Args:
        refusals: Error numbers that the limit raises. `ENOMEM` includes a `MemoryError`.
    """
    try:
        action()
    except MemoryError:
        return errno.ENOMEM in refusals
    except OSError as fault:
        return fault.errno in refusals
    return False


def exceed_disk(folder: str, limits: dict[str, int]) -> None:
    """Write more into a folder than it may hold, in files that are each small enough; then remove them."""
    paths = [f"{folder}/{number}" for number in range(limits["disk_mb"] // limits["file_mb"] + 1)]
    try:
        for path in paths:
            write_zeros(path, limits["file_mb"] * MIB)
    finally:
        remove_files(paths)


def exceed_inodes(folder: str, limits: dict[str, int]) -> None:
    """Create more files in a folder than it may hold; then remove them."""
    paths = [f"{folder}/{number}" for number in range(limits["inodes"] + 1)]
    try:
        for path in paths:
            write_zeros(path, 0)
    finally:
        remove_files(paths)


def remove_files(paths: list[str]) -> None:
    """Remove those of the files that exist."""
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)


def write_zeros(path: str, size: int) -> None:
    """Write a file of `size` zero bytes, which count against the limit on disk."""
    with open(path, "wb") as file:
        file.write(bytes(size))


def open_many(number: int) -> None:
    """Hold `number` file descriptors at the same time."""
    open_fds: list[int] = []
    try:
        while len(open_fds) < number:
            open_fds.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for open_fd in open_fds:
            os.close(open_fd)


def start_many(number: int) -> None:
    """Hold `number` processes at the same time."""
    pids: list[int] = []
    try:
        while len(pids) < number:
            pid = os.fork()
            if pid == 0:
                time.sleep(OUTLIVES_PROBE_S)
                os._exit(0)
            pids.append(pid)
    finally:
        for pid in pids:
            os.kill(pid, SIGKILL)
            os.waitpid(pid, 0)


def exceed_total_memory(total_memory_mb: int) -> None:
    """Hold more than the total memory, in processes that are each small enough."""
    for _ in range(3):  # four processes, each with half of the total
        if os.fork() == 0:
            break
    allocation = b"x" * (total_memory_mb * MIB // 2)
    time.sleep(OUTLIVES_PROBE_S)
    del allocation


def exceed_with_memory_files(total_memory_mb: int) -> None:
    """Hold more than the total memory, in memory files that no process has mapped; report a refusal."""
    try:
        for _ in range(4):  # each with the size of the total
            memory_fd = os.memfd_create("kept")
            for _ in range(total_memory_mb):
                os.write(memory_fd, bytes(MIB))
    except OSError:
        send("refused")
    else:
        time.sleep(1)
