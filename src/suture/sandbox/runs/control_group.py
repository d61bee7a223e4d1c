"""One control group of Linux: how much memory everything behind a wall may hold."""

from __future__ import annotations

import itertools
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suture.sandbox.runs.oom import oom_kills

PROC = Path("/proc")
MIB = 1 << 20
BASE_BYTES = 64 * MIB
"""What a wall itself may take: bubblewrap, a waiting interpreter, pages of the libraries that they read."""
SOCKET_BYTES = 64 * MIB
"""For buffers of TCP, where they do not count as memory: else a program could take the whole machine's."""
NAME = "suture"
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Interface:
    """Names of a version's files.

    Attributes:
        used: Bytes that are in use.
        limit: The file that holds the most bytes that a group may have.
        swap: The most bytes of, or with, swap; it may be missing.
        swap_counts_memory: Whether that includes memory.
        events: Holds a line `oom_kill N`.
        sockets: The most bytes in buffers of TCP, where the version counts those by themselves.
    """

    used: str
    limit: str
    swap: str
    swap_counts_memory: bool
    events: str
    sockets: str | None = None


INTERFACES = {
    "cgroup2": Interface(
        used="memory.current",
        limit="memory.max",
        swap="memory.swap.max",
        swap_counts_memory=False,
        events="memory.events",
    ),
    "cgroup1": Interface(
        used="memory.usage_in_bytes",
        limit="memory.limit_in_bytes",
        swap="memory.memsw.limit_in_bytes",
        swap_counts_memory=True,
        events="memory.oom_control",
        sockets="memory.kmem.tcp.limit_in_bytes",
    ),
}


class MemoryGroup:
    """A control group for what stands behind one wall. Make it with `MemoryGroups.make`.

    Args:
        folder: Where the kernel has it.
        interface: The names of the files that its version of control groups has.
        leaving: Takes it once it is not needed any more.
    """

    def __init__(self, folder: Path, interface: Interface, leaving: list[MemoryGroup]) -> None:
        self._folder = folder
        self._interface = interface
        self._leaving = leaving
        self._limit_mb = 0
        self._events = folder / interface.events

    @property
    def entrance(self) -> tuple[str, ...]:
        """Words in front of a command that make it, and all it starts, a member before anything else."""
        # `exec`, so that nobody waits in between; a shell of the system's, so that nothing forks after us.
        script = 'echo $$ > "$0" && exec "$@"'
        return ("/bin/sh", "-c", script, str(self._folder / "cgroup.procs"))

    def limit(self, total_memory_mb: int) -> None:
        """Let everything behind the wall hold so much more than it does now, in MiB.

        Raises:
            OSError: The kernel refuses.
        """
        if total_memory_mb == self._limit_mb:
            return
        used = int((self._folder / self._interface.used).read_text("ascii"))
        self._write_limit(total_memory_mb * MIB + BASE_BYTES + used)
        self._limit_mb = total_memory_mb

    def confine(self, most_mb: int) -> None:
        """Let everything behind the wall hold so much in all, in MiB, until `limit` is called.

        Raises:
            OSError: The kernel refuses.
        """
        self._write_limit(most_mb * MIB)

    def _write_limit(self, most: int) -> None:
        if self._interface.swap_counts_memory:
            # The limit with swap may never be below the one without: open it first, close it last.
            self._write_swap("-1")
        (self._folder / self._interface.limit).write_text(str(most), "ascii")
        self._write_swap(str(most) if self._interface.swap_counts_memory else "0")
        self._write_sockets()

    def _write_swap(self, text: str) -> None:
        with suppress(OSError):  # a kernel without swap accounting has no such file
            (self._folder / self._interface.swap).write_text(text, "ascii")

    def _write_sockets(self) -> None:
        if self._interface.sockets is not None:
            with suppress(OSError):  # a kernel without it counts no such buffers
                (self._folder / self._interface.sockets).write_text(str(SOCKET_BYTES), "ascii")

    def kills(self) -> int:
        """How many processes the kernel has ended here for want of memory."""
        try:
            return oom_kills(self._events.read_bytes())
        except OSError:
            return 0

    def drop(self) -> None:
        """Have it taken away as soon as what was in it is gone; safe to call twice."""
        if self not in self._leaving:
            self._leaving.append(self)

    def remove(self) -> None:
        """Take the group away.

        Raises:
            OSError: Something still dies in it.
        """
        self._folder.rmdir()


@dataclass(frozen=True, kw_only=True)
class GroupHome:
    """A folder of the kernel's in which control groups may be made.

    Attributes:
        folder: The folder, below the kernel's mount of control groups.
        version: Which version of control groups it belongs to.
    """

    folder: Path
    version: Literal["cgroup1", "cgroup2"]

    def make(self, leaving: list[MemoryGroup]) -> MemoryGroup:
        """Make a control group for what stands behind one wall.

        Args:
            leaving: Takes it once it is not needed any more.

        Raises:
            OSError: The kernel refuses.
        """
        folder = self.folder / f"{NAME}-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        folder.mkdir()
        return MemoryGroup(folder, INTERFACES[self.version], leaving)

    def clear(self, proc: Path = PROC) -> None:
        """Remove what processes that are gone have left; a group that has members is never removed."""
        for folder in self.folder.glob(f"{NAME}-*-*"):
            owner = folder.name.split("-")[1]
            if owner.isdigit() and not (proc / owner).exists():
                with suppress(OSError):
                    folder.rmdir()
