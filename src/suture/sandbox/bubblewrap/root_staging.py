"""Start the sandbox as root, but without root inside it.

A program whose user is root for the host's kernel ignores the limit on processes (RLIMIT_NPROC) and may write
kernel settings, so root first becomes an unprivileged user. That user cannot reach files that only root can
read (such as an interpreter in root's home). Those are bind-mounted at a stage: a tmpfs in a mount namespace
of its own, which leaves nothing on the host.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from suture.errors import SandboxUnavailable
from suture.sandbox.contract import SANDBOX_UIDS

TOOL_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
"""Where the system's own tools are; the user's PATH is not trusted as root."""
STAGE_FOLDERS = ("/mnt", "/media", "/srv", "/opt", "/home")
"""Standard folders of every Linux. A stage covers one of them, inside its own mount namespace only."""
# Binds each source at `FOLDER/NUMBER`, prints that it is ready, and keeps the namespace until its stdin ends.
STAGE_SCRIPT = """
set -e
at=$1; shift
mount -t tmpfs -o size=1m,mode=0755 stage "$at"
number=0
for source do
    if [ -d "$source" ]; then mkdir "$at/$number"; else : > "$at/$number"; fi
    mount --bind "$source" "$at/$number"
    number=$((number + 1))
done
echo ready
read -r _ || :
"""


@dataclass(frozen=True, kw_only=True)
class RootStage:
    """What a start of bubblewrap needs to drop root privileges.

    Attributes:
        prefix: The command that comes before bubblewrap.
        paths: Source -> where bubblewrap reaches it. Other sources are reached at their own path.
        namespace: The file descriptor of the stage's mount namespace, which the process must inherit.
    """

    prefix: tuple[str, ...] = ()
    paths: dict[str, str]
    namespace: int | None = None

    def path_for(self, source: str) -> str:
        """Return the path at which bubblewrap reaches `source`."""
        return self.paths.get(source, source)


class StageCache:
    """Makes stages, and keeps each for the next start with the same sources."""

    def __init__(self) -> None:
        self._namespaces: dict[tuple[tuple[str, int, int], ...], tuple[str, int]] = {}
        self._lock = asyncio.Lock()

    async def prepare_stage(self, sources: Iterable[str]) -> RootStage:
        """Return what this process needs to start bubblewrap with `sources`; nothing for an ordinary user.

        Raises:
            SandboxUnavailable: This root cannot become another user, or cannot make the stage.
        """
        if os.geteuid() != 0:
            return RootStage(paths={})
        uid = choose_unprivileged_uid(_read_uid_map())
        if uid is None:
            return RootStage(paths={})
        identity = (f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all")
        drop_root = (_find_tool("setpriv"), *identity, "--")
        private_sources = tuple(dict.fromkeys(source for source in sources if not is_reachable(source)))
        if not private_sources:
            return RootStage(prefix=drop_root, paths={})
        async with self._lock:
            folder, namespace = await self._namespace(private_sources)
        enter = (_find_tool("nsenter"), f"--mount=/proc/self/fd/{namespace}", "--")
        paths = {source: f"{folder}/{number}" for number, source in enumerate(private_sources)}
        return RootStage(prefix=(*enter, *drop_root), paths=paths, namespace=namespace)

    async def _namespace(self, private_sources: Sequence[str]) -> tuple[str, int]:
        # The key holds device and inode numbers, so that an environment that was made again is not taken for
        # the old one. Ruff allows no `Path.stat` in a coroutine (ASYNC240).
        statuses = ((source, os.stat(source)) for source in private_sources)  # noqa: PTH116
        key = tuple((source, status.st_dev, status.st_ino) for source, status in statuses)
        if key not in self._namespaces:
            folder = _stage_folder(private_sources)
            self._namespaces[key] = (folder, await _make_namespace(folder, private_sources))
        return self._namespaces[key]

    def close(self) -> None:
        """Release every stage; the kernel removes it with its last descriptor. Safe to call twice."""
        for _, namespace in self._namespaces.values():
            os.close(namespace)
        self._namespaces.clear()


def choose_unprivileged_uid(uid_map: str) -> int | None:
    """Return a user id that this root may become and that is unlikely to be used by anybody else.

    `None` means that this root is really an ordinary user, alone in a user namespace, so there are no root privileges
    to drop.

    Args:
        uid_map: The content of `/proc/self/uid_map`: lines of inside id, outside id, count.

    Raises:
        SandboxUnavailable: This root has no other user to become.
    """
    ranges = [tuple(map(int, line.split())) for line in uid_map.splitlines()]
    for inside, _, count in ranges:
        first_uid, end_uid = max(inside, SANDBOX_UIDS.start), min(inside + count, SANDBOX_UIDS.stop)
        if first_uid < end_uid:
            return first_uid + secrets.randbelow(end_uid - first_uid)
    if any(inside == 0 and outside != 0 for inside, outside, _ in ranges):
        return None
    raise SandboxUnavailable(
        "root is the only user of this container, and untrusted code must not run as root",
        remedy="start Suture as an ordinary user",
    )


def is_reachable(path: str) -> bool:
    """Return whether every user can read a file or folder and pass through all folders above it."""
    try:
        real = Path(path).resolve(strict=True)
        mode = real.stat().st_mode
        is_path_open = all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)
    except OSError:
        return False
    needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
    return is_path_open and mode & needed == needed


def _read_uid_map() -> str:
    return Path("/proc/self/uid_map").read_text("ascii")


def _find_tool(name: str) -> str:
    path = shutil.which(name, path=TOOL_PATH)
    if path is None:
        raise SandboxUnavailable(
            f"root needs the program {name!r} to start the sandbox as another user",
            remedy="install util-linux, or start Suture as an ordinary user",
        )
    return path


def _stage_folder(private_sources: Iterable[str]) -> str:
    """Return a folder that a stage may cover, because none of the sources is in it."""
    paths = [Path(source).resolve() for source in private_sources]
    for name in STAGE_FOLDERS:
        folder = Path(name)
        is_used = any(path.is_relative_to(folder) for path in paths)
        if folder.is_dir() and not folder.is_symlink() and not is_used:
            return name
    raise SandboxUnavailable(
        f"no folder can be used as a stage for interpreters: tried {', '.join(STAGE_FOLDERS)}",
        remedy="start Suture as an ordinary user",
    )


async def _make_namespace(folder: str, private_sources: Sequence[str]) -> int:
    """Return a descriptor of a new mount namespace in which the sources are shown at a stage."""
    enter_namespace = (_find_tool("unshare"), "--mount", "--propagation", "private", "--")
    process = await asyncio.create_subprocess_exec(
        *enter_namespace,
        "/bin/sh",
        "-c",
        STAGE_SCRIPT,
        "sh",
        folder,
        *private_sources,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": TOOL_PATH},
    )
    assert process.stdout is not None
    try:
        if await process.stdout.readline() == b"ready\n":
            # The open descriptor keeps the namespace alive; no process has to.
            return os.open(f"/proc/{process.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        _, stderr = await process.communicate(b"")  # the end of its stdin lets the script end
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    raise SandboxUnavailable(
        f"root could not mount {', '.join(private_sources)} for the sandbox user: "
        f"{lines[-1] if lines else 'no reason given'}",
        remedy="start Suture as an ordinary user, or move that folder to where all users can read it",
    )
