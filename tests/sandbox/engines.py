"""Real container engines for tests: Podman's service, as this machine allows it, on a socket of its own.

`podman_host()`, `crun_host()` and `gvisor_host()` answer with a URL for `ContainerSandbox(host=...)` or raise
`SandboxUnavailable`. A service is started at the first call and dies with the process that called.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from suture.errors import SandboxUnavailable

__all__ = ["gvisor_host", "podman_host"]

# crun refuses machines with both kinds of control groups, and a limited root cannot raise these numbers.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
GVISOR = ("network=none", "platform=ptrace", "ignore-cgroups")
READY_S = 30


@cache
def podman_host() -> str:
    """Podman with runc."""
    _need("runc")
    return _start("podman")


@cache
def crun_host() -> str:
    """Podman with crun, which is Debian 12's default where it is installed."""
    return _start("crun", "--runtime", _need("crun"))


@cache
def gvisor_host() -> str:
    """Podman with gVisor; its API takes no runtime from clients, so it is the service's own."""
    flags = (word for flag in GVISOR for word in ("--runtime-flag", flag))
    return _start("gvisor", "--runtime", _need("runsc"), *flags)


def _need(program: str) -> str:
    path = shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
    if path is None:
        raise SandboxUnavailable(
            f"no program {program!r} on this machine", remedy=f"apt-get install {program}"
        )
    return path


def _start(name: str, *options: str) -> str:
    podman, folder = _need("podman"), Path(tempfile.mkdtemp(prefix=f"suture-{name}-"))
    (folder / "containers.conf").write_text(CONFIGURATION)
    address = f"unix://{folder}/socket"
    log = (folder / "log").open("wb")
    service = subprocess.Popen(
        [
            *(_need("setpriv"), "--pdeathsig", "KILL", podman, *options),
            *("system", "service", "--time=0", address),
        ],
        env={**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")},
        cwd=folder,  # where a container runs out of memory, its monitor leaves a file `oom`
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    log.close()
    atexit.register(_stop, service, folder)
    end_s = time.monotonic() + READY_S
    while not (folder / "socket").exists():
        if service.poll() is not None or time.monotonic() > end_s:
            raise SandboxUnavailable(f"podman's service does not start: {(folder / 'log').read_text()}")
        time.sleep(0.02)
    return address


def _stop(service: subprocess.Popen[bytes], folder: Path) -> None:
    service.kill()
    service.wait()
    shutil.rmtree(folder, ignore_errors=True)
