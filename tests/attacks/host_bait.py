"""Bait for attacks: files, sockets and processes on the host, and checks whether an attack reached them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from suture.sandbox import get_own_interpreter
from suture.sandbox.seccomp.rules import AARCH64, X86_64

__all__ = ["SECRETS", "HostBait"]

SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".config/suture/config.toml", ".kube/config", ".netrc")
KERNEL_SETTING = Path("/proc/sys/kernel/core_pattern")


class HostBait:
    """Files, sockets and a process on the host that an attack may try to reach.

    Every user of the host can access all of them, so that only the sandbox protects them.

    Args:
        token: The text of every secret; it is also in the environment of this process.
    """

    def __init__(self, token: str) -> None:
        self._exit_stack = ExitStack()
        self.token = token
        self.folder = Path(tempfile.mkdtemp(prefix="suture-bait-"))
        self._exit_stack.callback(shutil.rmtree, self.folder)
        self.folder.chmod(0o777)
        for name in ("canary", *(f"home/{name}" for name in SECRETS)):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o777)
            path.write_text(self.token)
            path.chmod(0o666)
        self._tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("", 0))
        self._udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("", 0))
        self._abstract = self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.token}")
        self._unix = self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "socket"))
        (self.folder / "socket").chmod(0o777)
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        self._exit_stack.callback(self._end_victim)
        self._snapshot = self._take_snapshot()

    def _listen(self, family: int, kind: int, address: Any) -> socket.socket:
        listener = self._exit_stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(64)
        listener.setblocking(False)
        return listener

    def _end_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def facts(self) -> dict[str, Any]:
        """Return what an attack knows, so that it fails because of the sandbox and not for lack of knowledge."""
        addresses = {"127.0.0.1"}
        with suppress(OSError):
            addresses |= {
                str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
            }
        return {
            "token": self.token,
            "folder": str(self.folder),
            "secrets": [str(path) for path in sorted(self.folder.rglob("*")) if path.is_file()],
            "addresses": sorted(addresses),
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "victim": self.victim.pid,
            "prefix": get_own_interpreter().prefix,
            "calls": X86_64 if os.uname().machine == "x86_64" else AARCH64,
        }

    @property
    def home(self) -> str:
        """A home folder with secrets in it."""
        return str(self.folder / "home")

    def find_changes(self) -> list[str]:
        """Return what an attack has reached since the previous call."""
        before, self._snapshot = self._snapshot, self._take_snapshot()
        changed = [name for name in before | self._snapshot if before.get(name) != self._snapshot.get(name)]
        changes = [f"{name} is now {self._snapshot.get(name)!r}" for name in changed]
        for server in (self._tcp, self._abstract, self._unix):
            with suppress(BlockingIOError):
                server.accept()[0].close()
                changes.append(f"a connection to {server.getsockname()!r}")
        with suppress(BlockingIOError):
            changes.append(f"a datagram {self._udp.recv(100)!r}")
        return changes

    def _take_snapshot(self) -> dict[str, object]:
        files = {
            f"the file {path.relative_to(self.folder)}": (path.read_bytes(), path.stat().st_mode)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
        return {
            **files,
            "the folder": sorted(str(path) for path in self.folder.rglob("*")),
            "core_pattern": KERNEL_SETTING.read_text(),
            "the host's name": socket.gethostname(),
            "the victim's end": self.victim.poll(),
            "the victim's priority": os.getpriority(os.PRIO_PROCESS, self.victim.pid)
            if self.victim.poll() is None
            else None,
            "the clock is right": abs(time.time() - _expected_time()) < 3600,
        }

    def close(self) -> None:
        """Remove the bait."""
        self._exit_stack.close()


def _expected_time() -> float:
    """Return the time of day according to the monotonic clock, which nobody can set."""
    return _STARTED_AT + time.monotonic()


_STARTED_AT = time.time() - time.monotonic()
