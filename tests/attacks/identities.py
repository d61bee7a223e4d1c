"""Start the driver as this user, and as an ordinary user if this one is root."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import suture

__all__ = ["CANARY", "IDENTITIES", "command_for", "driver_environment"]

IDENTITIES = ("root", "ordinary")
ORDINARY_UID = 61_717
"""Nobody's: an account would bring files and processes of its own."""
CANARY = "OPENAI_API_KEY"
"""The variable of the driver that attacks look for."""
TESTS = Path(__file__).parents[1]


def command_for(identity: str, *words: str) -> list[str] | str:
    """The command that runs a module of this suite as some user.

    Args:
        identity: One of `IDENTITIES`.
        words: The module and its arguments.

    Returns:
        The command, or why there is none.
    """
    command = [sys.executable, "-m", *words]
    root = os.geteuid() == 0
    if identity == "root":
        return command if root else "the suite does not run as root"
    if not root:
        return command
    for tool in ("unshare", "setpriv", "mount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    drop = [f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups", "--inh-caps=-all", "--"]
    return [
        *("unshare", "--mount", "--propagation", "private", "--", "sh", "-ec", way_script()),
        *("sh", "setpriv", *drop, *command),
    ]


def way_script() -> str:
    """A shell script that lets other users reach what we run from, in a mount namespace of its own.

    A folder that only root may pass is covered by an empty one, in which what is needed shows again.
    """
    needed = [os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, suture.__path__[0], TESTS)]
    closed = sorted({str(folder) for path in needed for folder in closed_folders(path)}, key=len)
    covers = [folder for folder in closed if not any(folder.startswith(other + "/") for other in closed)]
    lines = ["mount -t tmpfs -o mode=0755 stage /mnt"]
    hidden = [path for path in needed if any(path.startswith(cover + "/") for cover in covers)]
    for number, path in enumerate(hidden):
        lines += [f"mkdir /mnt/{number}", f"mount --bind '{path}' /mnt/{number}"]
    lines += [f"mount -t tmpfs -o mode=0755 cover '{cover}'" for cover in covers]
    for number, path in enumerate(hidden):
        lines += [f"mkdir -p '{path}'", f"mount --bind /mnt/{number} '{path}'"]
    return "\n".join([*lines, 'exec "$@"'])


def closed_folders(path: str) -> Iterable[Path]:
    """The folders above a path, itself included, that other users cannot pass."""
    return (
        folder for folder in (Path(path), *Path(path).parents) if not folder.stat().st_mode & stat.S_IXOTH
    )


def driver_environment() -> dict[str, str]:
    """What the driver needs to find this suite and the product, and nothing of the user's."""
    paths = [
        str(TESTS),
        str(Path(suture.__path__[0]).parent),
        *(path for path in sys.path if path.endswith("-packages")),
    ]
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        CANARY: f"canary-{secrets.token_hex(12)}",
    }
