"""Starting the wall as root, without root behind it.

A program whose user is root for the kernel ignores the limit on processes and may write kernel settings, so
root first becomes an unprivileged user. That user cannot reach what only root can (an interpreter in root's
home), so such sources are shown to it at a stage: a tmpfs in a mount namespace of its own, which leaves
nothing on the host.
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
STAGE_FOLDERS = ("/mnt", "/media", "/srv", "/opt", "/home")
"""Standard folders of every Linux; a stage covers one, inside its own namespace only."""
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
class Stage:
    """What a launch needs to leave root behind.

    Attributes:
        prefix: Words in front of bubblewrap's command.
        paths: Source -> where bubblewrap reaches it; other sources lie where they are.
        namespace: A descriptor that the launch must inherit, where there is one.
    """

    prefix: tuple[str, ...] = ()
    paths: dict[str, str]
    namespace: int | None = None

    def reach(self, source: str) -> str:
        """Where bubblewrap reaches a source."""
        return self.paths.get(source, source)


class StageCache:
    """Makes stages, and keeps each for the next launch with the same sources."""

    def __init__(self) -> None:
        self._namespaces: dict[tuple[tuple[str, int, int], ...], tuple[str, int]] = {}
        self._lock = asyncio.Lock()

    async def stage(self, sources: Iterable[str]) -> Stage:
        """What this process needs to start bubblewrap with these sources; nothing for an ordinary user.

        Raises:
            SandboxUnavailable: This root cannot become another user, or cannot make the stage.
        """
        if os.geteuid() != 0:
            return Stage(paths={})
        uid = unprivileged_uid(_uid_map())
        if uid is None:
            return Stage(paths={})
        drop = (
            *(_tool("setpriv"), f"--reuid={uid}", f"--regid={uid}"),
            *("--clear-groups", "--inh-caps=-all", "--"),
        )
        hidden = tuple(dict.fromkeys(source for source in sources if not is_reachable(source)))
        if not hidden:
            return Stage(prefix=drop, paths={})
        async with self._lock:
            folder, namespace = await self._namespace(hidden)
        enter = (_tool("nsenter"), f"--mount=/proc/self/fd/{namespace}", "--")
        paths = {source: f"{folder}/{number}" for number, source in enumerate(hidden)}
        return Stage(prefix=(*enter, *drop), paths=paths, namespace=namespace)

    async def _namespace(self, hidden: Sequence[str]) -> tuple[str, int]:
        # With inodes in the key, an environment that was made anew is not taken for the old one.
        facts = ((source, os.stat(source)) for source in hidden)  # noqa: PTH116 - no disk is waited for
        key = tuple((source, status.st_dev, status.st_ino) for source, status in facts)
        if key not in self._namespaces:
            folder = _stage_folder(hidden)
            self._namespaces[key] = (folder, await _make_namespace(folder, hidden))
        return self._namespaces[key]

    def close(self) -> None:
        """Let every stage go; the kernel clears it away. Safe to call twice."""
        for _, namespace in self._namespaces.values():
            os.close(namespace)
        self._namespaces.clear()


def unprivileged_uid(uid_map: str) -> int | None:
    """A user id that root here may become and that nobody else is likely to use.

    Args:
        uid_map: The text of `/proc/self/uid_map`: lines of inside, outside, count.

    Returns:
        The id, or `None` where this root is an ordinary user in disguise (alone in a user namespace), so that
        there is nothing to leave behind.

    Raises:
        SandboxUnavailable: This root has no other user to become.
    """
    ranges = [tuple(map(int, line.split())) for line in uid_map.splitlines()]
    for first, _, count in ranges:
        low, high = max(first, SANDBOX_UIDS.start), min(first + count, SANDBOX_UIDS.stop)
        if low < high:
            return low + secrets.randbelow(high - low)
    if any(first == 0 and outside != 0 for first, outside, _ in ranges):
        return None
    raise SandboxUnavailable(
        "root is the only user of this container, and untrusted code must not run as root",
        remedy="start Suture as an ordinary user",
    )


def is_reachable(path: str) -> bool:
    """Whether users other than the owner can read a file or folder, and pass every folder above it."""
    try:
        real = Path(path).resolve(strict=True)
        mode = real.stat().st_mode
        above = all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)
    except OSError:
        return False
    needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
    return above and mode & needed == needed


def _uid_map() -> str:
    return Path("/proc/self/uid_map").read_text("ascii")


def _tool(name: str) -> str:
    path = shutil.which(name, path=TOOL_PATH)
    if path is None:
        raise SandboxUnavailable(
            f"root needs the program {name!r} to start the sandbox as another user",
            remedy="install util-linux, or start Suture as an ordinary user",
        )
    return path


def _stage_folder(hidden: Iterable[str]) -> str:
    real = [Path(source).resolve() for source in hidden]
    for name in STAGE_FOLDERS:
        folder = Path(name)
        if folder.is_dir() and not folder.is_symlink() and not any(p.is_relative_to(folder) for p in real):
            return name
    raise SandboxUnavailable(
        f"no folder to stage interpreters at; looked at {', '.join(STAGE_FOLDERS)}",
        remedy="start Suture as an ordinary user",
    )


async def _make_namespace(folder: str, hidden: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        *(_tool("unshare"), "--mount", "--propagation", "private", "--"),
        *("/bin/sh", "-c", STAGE_SCRIPT, "sh", folder, *hidden),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": TOOL_PATH},
    )
    assert process.stdout is not None
    try:
        if await process.stdout.readline() == b"ready\n":
            # The open descriptor keeps the namespace; no process has to.
            return os.open(f"/proc/{process.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        _, complaint = await process.communicate(b"")  # the end of its stdin lets it go
    why = complaint.decode("utf-8", "replace").strip().splitlines()
    raise SandboxUnavailable(
        f"root could not stage {', '.join(hidden)}: {why[-1] if why else 'no reason given'}",
        remedy="start Suture as an ordinary user, or move that folder to where all users can read it",
    )
