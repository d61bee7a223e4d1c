"""The container engine on this machine: finding it, and asking it for things in threads."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.errors import SandboxBroken, SandboxUnavailable

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")
TIMEOUT_S = 60
START_REMEDY = (
    "start Docker (`sudo systemctl start docker`) or Podman (`systemctl --user start podman.socket`)"
)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine that answers.

    Attributes:
        client: The SDK's low-level client; only for use inside `ask`.
        address: Its socket, as a URL.
        podman: Whether it is Podman, which differs from Docker in a few words.
        version: Its name and version.
        limits_memory: Whether it can limit what a container's memory may be.
        security: What it guards containers with, such as `rootless` and a profile of system calls.
    """

    client: APIClient
    address: str
    podman: bool
    version: str
    limits_memory: bool
    security: tuple[str, ...]

    async def ask(self, work: Callable[[APIClient], T]) -> T:
        """Ask the engine for something, in a thread.

        Args:
            work: Uses the client; it is not stopped half-way.

        Raises:
            SandboxBroken: The engine refused, or did not answer.
        """
        return await asyncio.to_thread(self.ask_now, work)

    def ask_now(self, work: Callable[[APIClient], T]) -> T:
        """As `ask`, holding the thread that calls."""
        faults = importlib.import_module("docker.errors")
        requests = importlib.import_module("requests.exceptions")
        try:
            return work(self.client)
        except faults.APIError as fault:
            raise SandboxBroken(f"{self.version}: {fault.explanation or fault}") from fault
        except (faults.DockerException, requests.RequestException, OSError) as fault:
            raise SandboxBroken(f"{self.version} does not answer: {fault}") from fault


def runtime_of(client: APIClient, container: str, *, podman: bool) -> str:
    """The runtime that a container really has, by its program's name.

    Args:
        client: The engine's client.
        container: The container's id.
        podman: Whether the engine is Podman, which does not tell in Docker's words.
    """
    if podman:
        answer = client.get(f"{client.base_url}/v4.0.0/libpod/containers/{container}/json", timeout=TIMEOUT_S)
        answer.raise_for_status()
        runtime = answer.json().get("OCIRuntime")
    else:
        facts: Any = client.inspect_container(container)
        runtime = facts["HostConfig"].get("Runtime")
    return Path(str(runtime or "")).name


def find_addresses(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Sockets of engines on this machine, those that the user named first.

    Args:
        environ: The user's environment variables.
    """
    named = [environ[name] for name in ("DOCKER_HOST", "CONTAINER_HOST") if environ.get(name)]
    runtime_dir = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    usual = (
        *("/var/run/docker.sock", f"{runtime_dir}/docker.sock"),
        *(f"{runtime_dir}/podman/podman.sock", "/run/podman/podman.sock"),
    )
    found = [f"unix://{path}" for path in usual if Path(path).exists() and os.access(path, os.W_OK)]
    return tuple(dict.fromkeys((*named[:1], *found)))


def connect(address: str | None, environ: Mapping[str, str]) -> Engine:
    """The engine at an address, or the first one of this machine that answers. Takes a moment.

    Args:
        address: A URL such as `unix:///run/podman/podman.sock`.
        environ: The user's environment variables.

    Raises:
        SandboxUnavailable: None answers, or the SDK is not installed.
    """
    try:
        docker = importlib.import_module("docker")
        requests = importlib.import_module("requests.exceptions")
    except ImportError as fault:
        raise SandboxUnavailable(
            "the container sandbox needs the Docker SDK", remedy="pip install 'suture[docker]'"
        ) from fault
    complaints = []
    for place in (address,) if address else find_addresses(environ):
        if not place.startswith("unix://"):
            complaints.append(f"{place!r} is not on this machine, and its containers could not see our files")
            continue
        if not Path(place.removeprefix("unix://")).exists():
            complaints.append(f"{place}: there is no such socket")
            continue
        try:
            client = docker.APIClient(base_url=place, version="auto", timeout=TIMEOUT_S)
            return _describe(client, place)
        except (docker.errors.DockerException, requests.RequestException, OSError) as fault:
            complaints.append(f"{place}: {fault}")
    reasons = "; ".join(complaints) or "no socket of Docker's or Podman's was found"
    raise SandboxUnavailable(
        f"no container engine: {reasons}", remedy=f"{START_REMEDY}, or set sandbox.container_host"
    )


def _describe(client: APIClient, address: str) -> Engine:
    version, facts = client.version(), client.info()
    components = version.get("Components") or [{}]
    name = str(components[0].get("Name") or "Docker Engine")
    security = tuple(sorted(map(str, facts.get("SecurityOptions") or ())))
    # An engine of a user's own has no control groups of version 1; Podman says that it limits memory even so.
    rootless = bool(facts.get("Rootless")) or "name=rootless" in security
    powerless = rootless and str(facts.get("CgroupVersion")) != "2"
    return Engine(
        client=client,
        address=address,
        podman="podman" in name.lower(),
        version=f"{name} {version.get('Version', '')}".strip(),
        limits_memory=bool(facts.get("MemoryLimit")) and not powerless,
        security=security,
    )
