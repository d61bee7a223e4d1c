"""One control group of Linux: how much memory everything behind a wall may hold."""
# FIXME doc of sandbox/execution/memory: """Control groups of Linux: the kernel's own limit on the memory of everything behind a wall.
#
# Where none can be had, a supervisor behind the wall looks at the memory of everything there every 50 ms
# (`inside.py`); it does so in any case.
# """

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suture.sandbox.contract import MemoryEnforcement
from suture.sandbox.execution.supervisor import oom_kills
from suture.sandbox.tuning import (
    CGROUP_BASE_BYTES,
    CGROUP_REMOVAL_ATTEMPTS,
    CGROUP_REMOVAL_INTERVAL_S,
    MAX_TCP_BUFFER_BYTES,
    MIB,
)

PROC = Path("/proc")
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


class MemoryCgroup:
    """A control group for what stands behind one wall. Make it with `MemoryGroups.make`.

    Args:
        folder: Where the kernel has it.
        interface: The names of the files that its version of control groups has.
        leaving: Takes it once it is not needed any more.
    """

    def __init__(self, folder: Path, interface: Interface, leaving: list[MemoryCgroup]) -> None:
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
        self._write_limit(total_memory_mb * MIB + CGROUP_BASE_BYTES + used)
        self._limit_mb = total_memory_mb

    def limit_total(self, most_mb: int) -> None:
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
                (self._folder / self._interface.sockets).write_text(str(MAX_TCP_BUFFER_BYTES), "ascii")

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
class CgroupParent:
    """A folder of the kernel's in which control groups may be made.

    Attributes:
        folder: The folder, below the kernel's mount of control groups.
        version: Which version of control groups it belongs to.
    """

    folder: Path
    version: Literal["cgroup1", "cgroup2"]

    def make(self, leaving: list[MemoryCgroup]) -> MemoryCgroup:
        """Make a control group for what stands behind one wall.

        Args:
            leaving: Takes it once it is not needed any more.

        Raises:
            OSError: The kernel refuses.
        """
        folder = self.folder / f"{NAME}-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        folder.mkdir()
        return MemoryCgroup(folder, INTERFACES[self.version], leaving)

    def clear(self, proc: Path = PROC) -> None:
        """Remove what processes that are gone have left; a group that has members is never removed."""
        for folder in self.folder.glob(f"{NAME}-*-*"):
            owner = folder.name.split("-")[1]
            if owner.isdigit() and not (proc / owner).exists():
                with suppress(OSError):
                    folder.rmdir()


class MemoryCgroups:
    """Control groups for walls, where this machine lets us have any.

    Args:
        find: Finds where groups may be made, and else says why nowhere.
    """

    def __init__(self, find: Callable[[], tuple[CgroupParent | None, str]] | None = None) -> None:
        self._find = find or find_group_home
        self._home: CgroupParent | None = None
        self._leaving: list[MemoryCgroup] = []
        self._sought = False
        self.reason = ""

    @property
    def enforcement(self) -> MemoryEnforcement:
        """What keeps the memory of everything behind a wall within its limit."""
        if not self._sought:
            self._sought = True
            self._home, self.reason = self._find()
            if self._home is not None:
                self._home.clear()
                self._try(self._home)
        return self._home.version if self._home else "sampler"

    def _try(self, home: CgroupParent) -> None:
        try:
            cgroup = home.make(self._leaving)
            cgroup.limit(MIB)
            cgroup.remove()
        except (OSError, ValueError) as fault:
            self._home, self.reason = None, f"a control group cannot be made: {fault}"

    def make(self) -> MemoryCgroup | None:
        """A group for a new wall; `None` where there are none here.

        Raises:
            OSError: The kernel refuses one now.
        """
        self._clear()
        return self._home.make(self._leaving) if self.enforcement != "sampler" and self._home else None

    def _clear(self) -> None:
        for cgroup in tuple(self._leaving):
            with suppress(OSError):  # something still dies in it
                cgroup.remove()
                self._leaving.remove(cgroup)

    async def close(self) -> None:
        """Take away what is left; safe to call twice."""
        for _ in range(CGROUP_REMOVAL_ATTEMPTS):
            self._clear()
            if not self._leaving:
                break
            await asyncio.sleep(CGROUP_REMOVAL_INTERVAL_S)


def is_delegated(folder: Path) -> bool:
    """Whether a group was handed to us to make groups in; that root may write there means nothing."""
    if os.geteuid() != 0:
        return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
    try:
        return os.getxattr(folder, "user.delegate") == b"1"
    except OSError:
        return False


def find_group_home(
    proc: Path = PROC, delegated: Callable[[Path], bool] = is_delegated
) -> tuple[CgroupParent | None, str]:
    """Where this process may make control groups that limit memory, and else why nowhere.

    Processes are never moved but those that we start, and nothing is changed in a group that is not ours: a
    supervisor may count on it.

    Args:
        proc: Where the kernel tells about this process.
        delegated: Whether a group of version 2 was handed to us.
    """
    try:
        own = _own_groups((proc / "self/cgroup").read_text("utf-8"))
        mounts = list(_mounts((proc / "self/mountinfo").read_text("utf-8")))
    except OSError as fault:
        return None, f"control groups are not told of: {fault}"
    for kind, controllers, root, point in mounts:
        if kind == "cgroup" and "memory" in controllers and "memory" in own:
            folder = _place(own["memory"], root, point)
            if folder is not None and os.access(folder, os.W_OK):
                return CgroupParent(folder=folder, version="cgroup1"), ""
        if kind == "cgroup2" and "" in own:
            folder = _place(own[""], root, point)
            while folder is not None:
                if _gives_memory(folder) and delegated(folder):
                    return CgroupParent(folder=folder, version="cgroup2"), ""
                folder = folder.parent if folder != point else None
    return None, "no control group that limits memory is ours to divide"


def _own_groups(text: str) -> dict[str, str]:
    """Controller, or nothing for version 2 -> path of this process's group."""
    parts = [line.split(":", 2) for line in text.splitlines()]
    return {controller: path for _, controllers, path in parts for controller in controllers.split(",")}


def _mounts(text: str) -> Iterator[tuple[str, list[str], str, Path]]:
    """Kind, options, root within the hierarchy and mount point of every control group file system."""
    for line in text.splitlines():
        mount, _, source = line.partition(" - ")
        words, kinds = mount.split(), source.split()
        if kinds[:1] in (["cgroup"], ["cgroup2"]):
            point = Path(words[4].encode().decode("unicode_escape"))
            yield kinds[0], kinds[-1].split(","), words[3], point


def _place(path: str, root: str, point: Path) -> Path | None:
    inside = os.path.relpath(path, root)
    folder = point if inside == "." else point / inside
    # A container may see its own path but not the hierarchy's upper part.
    return folder if not inside.startswith("..") and folder.is_dir() else None


def _gives_memory(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
