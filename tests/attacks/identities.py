"""Commands that start the driver as root or as an ordinary user."""

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
"""The id of no account, because an account could have files and processes of its own."""
CANARY = "OPENAI_API_KEY"
"""The environment variable of the driver that attacks search for."""
TESTS = Path(__file__).parents[1]


def command_for(identity: str, *words: str) -> list[str] | str:
    """Return the command that runs a module of this suite as a user.

    Args:
        identity: One of `IDENTITIES`.
        words: The module and its arguments.

    Returns:
        The command, or the reason why there is none.
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
    in_namespace = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*in_namespace, "sh", "-ec", grant_access_script(), "sh", "setpriv", *drop, *command]


def grant_access_script() -> str:
    """Return a shell script that makes Python, Suture and this suite readable for other users.

    In a mount namespace of its own, each folder that only root can enter is covered with an empty one, in which
    the needed folders are mounted again.
    """
    needed = [os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, suture.__path__[0], TESTS)]
    closed = sorted({str(folder) for path in needed for folder in list_closed_folders(path)}, key=len)
    covers = [folder for folder in closed if not any(folder.startswith(other + "/") for other in closed)]
    lines = ["mount -t tmpfs -o mode=0755 stage /mnt"]
    hidden = [path for path in needed if any(path.startswith(cover + "/") for cover in covers)]
    for number, path in enumerate(hidden):
        lines += [f"mkdir /mnt/{number}", f"mount --bind '{path}' /mnt/{number}"]
    lines += [f"mount -t tmpfs -o mode=0755 cover '{cover}'" for cover in covers]
    for number, path in enumerate(hidden):
        lines += [f"mkdir -p '{path}'", f"mount --bind /mnt/{number} '{path}'"]
    return "\n".join([*lines, 'exec "$@"'])


def list_closed_folders(path: str) -> Iterable[Path]:
    """Return the path and the folders above it that other users cannot enter."""
    return (
        folder for folder in (Path(path), *Path(path).parents) if not folder.stat().st_mode & stat.S_IXOTH
    )


def driver_environment() -> dict[str, str]:
    """Return the environment in which the driver finds this suite and Suture, without the user's variables."""
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
