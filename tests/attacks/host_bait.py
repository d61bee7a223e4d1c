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

__all__ = ["SECRETS", "Ground"]

SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".config/suture/config.toml", ".kube/config", ".netrc")
KERNEL_SETTING = Path("/proc/sys/kernel/core_pattern")


class Ground:
    """A piece of the host with everything on it that an attack may be after; close it when done.

    Every file is open to every user of the host, every socket too: only the sandbox stands before them.

    Args:
        token: The canary; it is also in the environment that this process was started with.
    """

    def __init__(self, token: str) -> None:
        self._held = ExitStack()
        self.token = token
        self.folder = Path(tempfile.mkdtemp(prefix="suture-ground-"))
        self._held.callback(shutil.rmtree, self.folder)
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
        self._held.callback(self._end_victim)
        self._seen = self._look()

    def _listen(self, family: int, kind: int, address: Any) -> socket.socket:
        listener = self._held.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(64)
        listener.setblocking(False)
        return listener

    def _end_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def facts(self) -> dict[str, Any]:
        """What an attack is told, so that it fails because of the sandbox and not for want of knowledge."""
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

    def harm(self) -> list[str]:
        """What an attack has reached since the last look."""
        before, self._seen = self._seen, self._look()
        changed = [name for name in before | self._seen if before.get(name) != self._seen.get(name)]
        told = [f"{name} is now {self._seen.get(name)!r}" for name in changed]
        for listener in (self._tcp, self._abstract, self._unix):
            with suppress(BlockingIOError):
                listener.accept()[0].close()
                told.append(f"a connection to {listener.getsockname()!r}")
        with suppress(BlockingIOError):
            told.append(f"a datagram {self._udp.recv(100)!r}")
        return told

    def _look(self) -> dict[str, object]:
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
            "the clock is right": abs(time.time() - _boot_time()) < 3600,
        }

    def close(self) -> None:
        """Clear everything away."""
        self._held.close()


def _boot_time() -> float:
    """The sandbox clock as it must be by the clock that nobody can set."""
    return _STARTED_AT + time.monotonic()


_STARTED_AT = time.time() - time.monotonic()
