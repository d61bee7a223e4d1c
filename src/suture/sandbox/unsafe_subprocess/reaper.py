"""Replaces `supervisor.main` without a sandbox: it serves the same request, and ends every descendant.

It runs on a bare interpreter after `supervisor.py`, in the same process; `supervisor` is that module.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from suture.sandbox.execution import supervisor

SET_CHILD_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of linux/prctl.h; Python's library has no `prctl`."""
SIGKILL = 9
TICK_S = 0.02
"""Seconds between two checks of a program's time and memory."""


def main() -> None:
    """Serve the one request, in the folder that this process was started in."""
    # A process that loses its parent becomes our child, so that it can be found.
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor.serve(int(sys.argv[1]), int(sys.argv[2]), wait_for_program, kill_descendants)


def wait_for_program(pid: int, deadline: float, max_bytes: int, lifeline: int) -> tuple[bytes, int]:
    """Wait for the program; see `supervisor.wait_for_program`."""
    os.set_blocking(lifeline, False)
    while time.monotonic() < deadline:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        if ended_pid and os.WIFSIGNALED(status):
            return b"s", os.WTERMSIG(status)
        if ended_pid:
            return b"e", os.WEXITSTATUS(status)
        if host_is_gone(lifeline):
            kill_descendants()
            os._exit(1)
        if sum(supervisor.resident_bytes(str(pid)) for pid in find_descendants()) > max_bytes:
            return b"m", 0
        time.sleep(TICK_S)
    return b"t", 0


def host_is_gone(lifeline: int) -> bool:
    """Return whether the request's pipe has ended; the host keeps it open as long as it lives."""
    try:
        return os.read(lifeline, 1) == b""
    except BlockingIOError:
        return False


def find_descendants() -> list[int]:
    """Return every living process that this one has started, directly or indirectly."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    words = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if words[0] not in b"ZX":  # a zombie or a dead process
                parents[int(name)] = int(words[1])
    family = {os.getpid()}
    while children := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= children
    return sorted(family - {os.getpid()})


def kill_descendants() -> None:
    """Kill the program and everything that it has started, until nothing is left."""
    for _ in range(400):  # with the pauses below, two seconds
        for pid in find_descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)
