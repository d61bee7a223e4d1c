"""Whose a container is, so that those of a process that has been killed can be cleared away."""

from __future__ import annotations

import os
from pathlib import Path

from suture.sandbox.container.engine import Engine

OWNER = "suture.owner"
"""The label on each container: machine, PID namespace, process, when that process was started."""


def own_name(pid: int | None = None) -> str:
    """A name for this process, or another one that lives, which no other one ever has.

    Raises:
        OSError: There is no such process.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - this link leads nowhere
    pid = pid or os.getpid()
    # The name of a program may hold blanks and brackets; what follows it does not.
    started = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode("ascii")
    return f"{boot}/{space}/{pid}/{started}"


def is_orphan(owner: str) -> bool:
    """Whether the process of this name is known to be gone."""
    boot, space, _, _ = own_name().split("/")
    theirs = owner.split("/")
    if len(theirs) != 4 or theirs[:2] != [boot, space] or not theirs[2].isdigit():
        return False  # of another machine or another container, whose processes cannot be seen from here
    try:
        return own_name(int(theirs[2])) != owner
    except OSError:
        return True


async def remove_orphans(engine: Engine) -> int:
    """Remove containers of ours whose process is gone; tells how many.

    Args:
        engine: The engine whose containers are looked through.

    Raises:
        SandboxBroken: The engine does not answer.
    """
    found = await engine.ask(lambda client: client.containers(all=True, filters={"label": OWNER}))
    orphans = [str(one["Id"]) for one in found if is_orphan(str((one.get("Labels") or {}).get(OWNER, "")))]
    for orphan in orphans:
        await engine.ask(lambda client, which=orphan: client.remove_container(which, v=True, force=True))  # type: ignore[misc] # the default binds
    return len(orphans)
