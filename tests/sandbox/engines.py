"""Real container engines for tests: Podman services with different runtimes, each on its own socket.

`podman_host()`, `crun_host()` and `gvisor_host()` return a URL for `ContainerSandbox(host=...)` or raise
`SandboxUnavailable`. A service starts at the first call and dies with the calling process.
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

__all__ = ["crun_host", "gvisor_host", "podman_host"]

# The runtime is runc because crun refuses machines with both versions of control groups. The limits are low
# because root without all capabilities cannot raise them.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""
GVISOR_FLAGS = ("network=none", "platform=ptrace", "ignore-cgroups")
START_TIMEOUT_S = 30


@cache
def podman_host() -> str:
    """Return the address of Podman with runc."""
    find_program("runc")
    return start_service("podman")


@cache
def crun_host() -> str:
    """Return the address of Podman with crun, which is the default of Debian 12 if it is installed."""
    return start_service("crun", "--runtime", find_program("crun"))


@cache
def gvisor_host() -> str:
    """Return the address of Podman with gVisor, which the service must select: clients cannot."""
    options = (option for flag in GVISOR_FLAGS for option in ("--runtime-flag", flag))
    return start_service("gvisor", "--runtime", find_program("runsc"), *options)


def find_program(program: str) -> str:
    """Return the path of a program that the engine needs."""
    path = shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
    if path is None:
        raise SandboxUnavailable(
            f"no program {program!r} on this machine", remedy=f"apt-get install {program}"
        )
    return path


def start_service(name: str, *options: str) -> str:
    """Start a Podman service with these options, and return its address."""
    podman, folder = find_program("podman"), Path(tempfile.mkdtemp(prefix=f"suture-{name}-"))
    (folder / "containers.conf").write_text(CONFIGURATION)
    address = f"unix://{folder}/socket"
    log = (folder / "log").open("wb")
    die_with_parent = [find_program("setpriv"), "--pdeathsig", "KILL"]
    service = subprocess.Popen(
        [*die_with_parent, podman, *options, "system", "service", "--time=0", address],
        env={**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")},
        cwd=folder,  # the monitor of a container that runs out of memory leaves a file `oom` here
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    log.close()
    atexit.register(stop_service, service, folder)
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not (folder / "socket").exists():
        if service.poll() is not None or time.monotonic() > deadline_s:
            raise SandboxUnavailable(f"podman's service does not start: {(folder / 'log').read_text()}")
        time.sleep(0.02)
    return address


def stop_service(service: subprocess.Popen[bytes], folder: Path) -> None:
    """End a Podman service and remove its folder."""
    service.kill()
    service.wait()
    shutil.rmtree(folder, ignore_errors=True)
