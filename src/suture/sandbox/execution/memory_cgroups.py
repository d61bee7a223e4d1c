"""Linux control groups: the kernel's own limit on the memory of everything in one sandbox.

Whether or not a control group can be had, the supervisor inside the sandbox also checks the memory of
everything there every 50 ms (`supervisor.py`).
"""

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

from suture.sandbox import tuning
from suture.sandbox.contract import MemoryEnforcement
from suture.sandbox.execution.supervisor import parse_oom_kills

PROC = Path("/proc")
NAME = "suture"
"""First part of the name of every control group that Suture creates; the second is its process."""
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class CgroupFiles:
    """File names of one version of control groups.

    Attributes:
        usage: Holds the bytes in use.
        limit: Holds the maximum number of bytes of the group.
        swap: Holds the maximum swap, or memory and swap together; the file may be missing.
        swap_counts_memory: Whether that maximum includes memory.
        events: Holds a line `oom_kill N`.
        tcp_buffers: Holds the maximum bytes of TCP buffers, in the version that counts those separately.
    """

    usage: str
    limit: str
    swap: str
    swap_counts_memory: bool
    events: str
    tcp_buffers: str = ""


CGROUP_FILES = {
    "cgroup2": CgroupFiles(
        usage="memory.current",
        limit="memory.max",
        swap="memory.swap.max",
        swap_counts_memory=False,
        events="memory.events",
    ),
    "cgroup1": CgroupFiles(
        usage="memory.usage_in_bytes",
        limit="memory.limit_in_bytes",
        swap="memory.memsw.limit_in_bytes",
        swap_counts_memory=True,
        events="memory.oom_control",
        tcp_buffers="memory.kmem.tcp.limit_in_bytes",
    ),
}
"""Version of control groups -> its file names."""


class MemoryCgroup:
    """A control group for one sandbox. Create it with `MemoryCgroups.create`.

    Args:
        folder: The group's folder in the kernel's file system.
        pending_removal: The list of groups that wait to be removed, which `MemoryCgroups` shares with them.
    """

    def __init__(self, folder: Path, files: CgroupFiles, pending_removal: list[MemoryCgroup]) -> None:
        self._folder = folder
        self._files = files
        self._pending_removal = pending_removal
        self._growth_limit_mb = 0

    @property
    def enter_command(self) -> tuple[str, ...]:
        """The start of a command line that first puts its process, and so all that it starts, into the group."""
        # With `exec` no extra process waits in between. The system's own shell is used, so that no code of
        # the project runs.
        script = 'echo $$ > "$0" && exec "$@"'
        return ("/bin/sh", "-c", script, str(self._folder / "cgroup.procs"))

    def limit_growth(self, total_memory_mb: int) -> None:
        """Allow everything in the sandbox to use this much more memory than it does now, in MiB.

        Raises:
            OSError: The kernel refuses.
        """
        if total_memory_mb == self._growth_limit_mb:
            return  # a zygote's next run with the same limit begins with about the same memory
        usage = int((self._folder / self._files.usage).read_text("ascii"))
        self._write_limit(total_memory_mb * tuning.MIB + tuning.CGROUP_BASE_BYTES + usage)
        self._growth_limit_mb = total_memory_mb

    def limit_total(self, total_memory_mb: int) -> None:
        """Allow everything in the sandbox to use this much memory, in MiB, until `limit_growth` is called.

        Raises:
            OSError: The kernel refuses.
        """
        self._write_limit(total_memory_mb * tuning.MIB)

    def _write_limit(self, limit_bytes: int) -> None:
        if self._files.swap_counts_memory:
            # The limit with swap may never be below the limit without it: raise it first, lower it last.
            self._write_optional(self._files.swap, "-1")
        (self._folder / self._files.limit).write_text(str(limit_bytes), "ascii")
        self._write_optional(self._files.swap, str(limit_bytes) if self._files.swap_counts_memory else "0")
        if self._files.tcp_buffers:
            self._write_optional(self._files.tcp_buffers, str(tuning.MAX_TCP_BUFFER_BYTES))

    def _write_optional(self, name: str, text: str) -> None:
        """Write to a file that is missing in kernels that do not count swap, or TCP buffers."""
        with suppress(OSError):
            (self._folder / name).write_text(text, "ascii")

    def count_oom_kills(self) -> int:
        """Return how many processes the OOM killer has killed in this group."""
        try:
            return parse_oom_kills((self._folder / self._files.events).read_bytes())
        except OSError:
            return 0

    def schedule_removal(self) -> None:
        """Have the group removed as soon as its last process is gone. Safe to call twice."""
        if self not in self._pending_removal:
            self._pending_removal.append(self)

    def remove(self) -> None:
        """Remove the group.

        Raises:
            OSError: A process in it has not been reaped yet.
        """
        self._folder.rmdir()


@dataclass(frozen=True, kw_only=True)
class CgroupParent:
    """A folder, below the kernel's mount of control groups, in which groups may be created."""

    folder: Path
    version: Literal["cgroup1", "cgroup2"]

    def create(self, pending_removal: list[MemoryCgroup]) -> MemoryCgroup:
        """Create a control group for one sandbox; see `MemoryCgroup`.

        Raises:
            OSError: The kernel refuses.
        """
        folder = self.folder / f"{NAME}-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        folder.mkdir()
        return MemoryCgroup(folder, CGROUP_FILES[self.version], pending_removal)

    def remove_stale(self, proc: Path = PROC) -> None:
        """Remove the groups of processes that are gone. The kernel never removes a group that has members."""
        for folder in self.folder.glob(f"{NAME}-*-*"):
            owner = folder.name.split("-")[1]
            if owner.isdigit() and not (proc / owner).exists():
                with suppress(OSError):
                    folder.rmdir()


class MemoryCgroups:
    """Creates control groups for sandboxes, if this machine permits it.

    Args:
        find_parent: Returns where groups may be created, or `None` and the reason.
    """

    def __init__(self, find_parent: Callable[[], tuple[CgroupParent | None, str]] | None = None) -> None:
        self._find_parent = find_parent or find_cgroup_parent
        self._parent: CgroupParent | None = None
        self._pending_removal: list[MemoryCgroup] = []
        self._was_searched = False
        self.reason = ""

    @property
    def enforcement(self) -> MemoryEnforcement:
        """What enforces the limit on the total memory of a sandbox."""
        if not self._was_searched:
            self._was_searched = True
            self._parent, self.reason = self._find_parent()
            if self._parent is not None:
                self._parent.remove_stale()
                self._test_parent(self._parent)
        return self._parent.version if self._parent else "sampler"

    def _test_parent(self, parent: CgroupParent) -> None:
        try:
            cgroup = parent.create(self._pending_removal)
            cgroup.limit_growth(tuning.MIB)
            cgroup.remove()
        except (OSError, ValueError) as fault:
            self._parent, self.reason = None, f"a control group cannot be made: {fault}"

    def create(self) -> MemoryCgroup | None:
        """Create a group for a new sandbox, or return `None` if there are no control groups here.

        Raises:
            OSError: The kernel refuses now.
        """
        self._remove_pending()
        if self.enforcement == "sampler" or self._parent is None:
            return None
        return self._parent.create(self._pending_removal)

    def _remove_pending(self) -> None:
        for cgroup in tuple(self._pending_removal):
            with suppress(OSError):  # a process in it has not been reaped yet
                cgroup.remove()
                self._pending_removal.remove(cgroup)

    async def close(self) -> None:
        """Remove the remaining groups, also those that a killed process left. Safe to call twice."""
        if self._parent is not None:
            self._parent.remove_stale()
        for _ in range(tuning.CGROUP_REMOVAL_ATTEMPTS):
            self._remove_pending()
            if not self._pending_removal:
                break
            await asyncio.sleep(tuning.CGROUP_REMOVAL_INTERVAL_S)


def is_delegated(folder: Path) -> bool:
    """Return whether a cgroup v2 group was delegated to this user."""
    if os.geteuid() != 0:
        return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
    try:  # root may write everywhere, so write access proves nothing; systemd sets this attribute
        return os.getxattr(folder, "user.delegate") == b"1"
    except OSError:
        return False


def find_cgroup_parent(
    proc: Path = PROC, delegated: Callable[[Path], bool] = is_delegated
) -> tuple[CgroupParent | None, str]:
    """Return where this process may create control groups that limit memory, or `None` and the reason.

    Only processes that Suture starts are moved, and nothing is changed in a group that is not Suture's:
    another supervisor may depend on it.

    Args:
        proc: The folder `/proc`.
        delegated: Whether a cgroup v2 group was delegated to us.
    """
    try:
        own_groups = _parse_own_groups((proc / "self/cgroup").read_text("utf-8"))
        mounts = list(_parse_mounts((proc / "self/mountinfo").read_text("utf-8")))
    except OSError as fault:
        return None, f"the control groups cannot be read: {fault}"
    for kind, options, root, point in mounts:
        if kind == "cgroup" and "memory" in options and "memory" in own_groups:
            folder = _locate_group(own_groups["memory"], root, point)
            if folder is not None and os.access(folder, os.W_OK):
                return CgroupParent(folder=folder, version="cgroup1"), ""
        if kind == "cgroup2" and "" in own_groups:
            folder = _locate_group(own_groups[""], root, point)
            while folder is not None:
                if _has_memory_controller(folder) and delegated(folder):
                    return CgroupParent(folder=folder, version="cgroup2"), ""
                folder = folder.parent if folder != point else None
    return None, "this process may not create control groups that limit memory"


def _parse_own_groups(text: str) -> dict[str, str]:
    """Return controller (empty for v2) -> path of this process's group."""
    parts = [line.split(":", 2) for line in text.splitlines()]
    return {controller: path for _, controllers, path in parts for controller in controllers.split(",")}


def _parse_mounts(text: str) -> Iterator[tuple[str, list[str], str, Path]]:
    """Yield `(type, options, root within the hierarchy, mount point)` of each control group file system."""
    for line in text.splitlines():
        mount, _, source = line.partition(" - ")
        words, kinds = mount.split(), source.split()
        if kinds[:1] in (["cgroup"], ["cgroup2"]):
            point = Path(words[4].encode().decode("unicode_escape"))
            yield kinds[0], kinds[-1].split(","), words[3], point


def _locate_group(path: str, root: str, point: Path) -> Path | None:
    """Return the folder of the group `path`, if the mount at `point` of the hierarchy's `root` shows it."""
    relative_path = os.path.relpath(path, root)
    folder = point if relative_path == "." else point / relative_path
    # A container may see its own path but not the upper part of the hierarchy.
    return folder if not relative_path.startswith("..") and folder.is_dir() else None


def _has_memory_controller(folder: Path) -> bool:
    try:
        return "memory" in (folder / "cgroup.subtree_control").read_text("ascii").split()
    except OSError:
        return False
