"""Control groups of Linux: the kernel's own limit on the memory of everything behind a wall.

Where none can be had, a supervisor behind the wall looks at the memory of everything there every 50 ms
(`inside.py`); it does so in any case.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from suture.sandbox.contract import MemoryKeeper
from suture.sandbox.runs.control_group import MIB, PROC, GroupHome, MemoryGroup

CLEARINGS, CLEARING_S = 50, 0.02
"""How often, and after how many seconds each, to look whether a group is empty at last."""


class MemoryGroups:
    """Control groups for walls, where this machine lets us have any.

    Args:
        find: Finds where groups may be made, and else says why nowhere.
    """

    def __init__(self, find: Callable[[], tuple[GroupHome | None, str]] | None = None) -> None:
        self._find = find or find_group_home
        self._home: GroupHome | None = None
        self._leaving: list[MemoryGroup] = []
        self._sought = False
        self.reason = ""

    @property
    def keeper(self) -> MemoryKeeper:
        """What keeps the memory of everything behind a wall within its limit."""
        if not self._sought:
            self._sought = True
            self._home, self.reason = self._find()
            if self._home is not None:
                self._home.clear()
                self._try(self._home)
        return self._home.version if self._home else "sampler"

    def _try(self, home: GroupHome) -> None:
        try:
            group = home.make(self._leaving)
            group.limit(MIB)
            group.remove()
        except (OSError, ValueError) as fault:
            self._home, self.reason = None, f"a control group cannot be made: {fault}"

    def make(self) -> MemoryGroup | None:
        """A group for a new wall; `None` where there are none here.

        Raises:
            OSError: The kernel refuses one now.
        """
        self._clear()
        return self._home.make(self._leaving) if self.keeper != "sampler" and self._home else None

    def _clear(self) -> None:
        for group in tuple(self._leaving):
            with suppress(OSError):  # something still dies in it
                group.remove()
                self._leaving.remove(group)

    async def close(self) -> None:
        """Take away what is left; safe to call twice."""
        for _ in range(CLEARINGS):
            self._clear()
            if not self._leaving:
                break
            await asyncio.sleep(CLEARING_S)


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
) -> tuple[GroupHome | None, str]:
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
                return GroupHome(folder=folder, version="cgroup1"), ""
        if kind == "cgroup2" and "" in own:
            folder = _place(own[""], root, point)
            while folder is not None:
                if _gives_memory(folder) and delegated(folder):
                    return GroupHome(folder=folder, version="cgroup2"), ""
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
