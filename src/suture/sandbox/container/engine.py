"""Find the container engine on this machine, and send it requests from threads."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox.tuning import ENGINE_TIMEOUT_S

if TYPE_CHECKING:
    from docker import APIClient

Response = TypeVar("Response")
START_REMEDY = (
    "start Docker (`sudo systemctl start docker`) or Podman (`systemctl --user start podman.socket`)"
)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A container engine that answers.

    Attributes:
        client: The SDK's low-level client; use it only inside `request`.
        address: Its socket, as a URL.
        podman: Whether it is Podman, whose answers differ from Docker's in a few fields.
        version: Its name and version.
        limits_memory: Whether it can limit a container's memory.
        security: Its security options, such as `rootless` or a seccomp profile.
    """

    client: APIClient
    address: str
    podman: bool
    version: str
    limits_memory: bool
    security: tuple[str, ...]

    async def request(self, action: Callable[[APIClient], Response]) -> Response:
        """Send the engine a request, in a thread. Once begun, it is not interrupted.

        Raises:
            SandboxBroken: The engine refused, or did not answer.
        """
        return await asyncio.to_thread(self.request_blocking, action)

    def request_blocking(self, action: Callable[[APIClient], Response]) -> Response:
        """Send the engine a request and block the calling thread; see `request`."""
        docker_errors = importlib.import_module("docker.errors")
        requests = importlib.import_module("requests.exceptions")
        try:
            return action(self.client)
        except docker_errors.APIError as fault:
            raise SandboxBroken(f"{self.version}: {fault.explanation or fault}") from fault
        except (docker_errors.DockerException, requests.RequestException, OSError) as fault:
            raise SandboxBroken(f"{self.version} does not answer: {fault}") from fault


def find_runtime(client: APIClient, container: str, *, podman: bool) -> str:
    """Return the name of the runtime program that a container really uses."""
    if podman:  # it reports the runtime only in its own API
        url = f"{client.base_url}/v4.0.0/libpod/containers/{container}/json"
        response = client.get(url, timeout=ENGINE_TIMEOUT_S)
        response.raise_for_status()
        runtime = response.json().get("OCIRuntime")
    else:
        details: Any = client.inspect_container(container)
        runtime = details["HostConfig"].get("Runtime")
    return Path(str(runtime or "")).name


def find_addresses(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sockets of engines on this machine, the one from the user's environment first."""
    configured = [environ[name] for name in ("DOCKER_HOST", "CONTAINER_HOST") if environ.get(name)]
    runtime_dir = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    default_paths = (
        "/var/run/docker.sock",
        f"{runtime_dir}/docker.sock",
        f"{runtime_dir}/podman/podman.sock",
        "/run/podman/podman.sock",
    )
    existing = [
        f"unix://{path}" for path in default_paths if Path(path).exists() and os.access(path, os.W_OK)
    ]
    # Of Docker's and Podman's variable only one counts, Docker's before Podman's. Why the other is not tried
    # as a second alternative is not recorded.
    return tuple(dict.fromkeys((*configured[:1], *existing)))


def connect_to_engine(address: str | None, environ: Mapping[str, str]) -> Engine:
    """Return the engine at an address, or the first one on this machine that answers. Blocks for a moment.

    Args:
        address: A URL such as `unix:///run/podman/podman.sock`.

    Raises:
        SandboxUnavailable: No engine answers, or the SDK is not installed.
    """
    try:
        docker = importlib.import_module("docker")
        requests = importlib.import_module("requests.exceptions")
    except ImportError as fault:
        raise SandboxUnavailable(
            "the container sandbox needs the Docker SDK", remedy="pip install 'suture[docker]'"
        ) from fault
    failures = []
    for candidate in (address,) if address else find_addresses(environ):
        if not candidate.startswith("unix://"):
            failures.append(
                f"{candidate!r} is not on this machine, so its containers cannot mount local files"
            )
            continue
        if not Path(candidate.removeprefix("unix://")).exists():
            failures.append(f"{candidate}: there is no such socket")
            continue
        try:
            client = docker.APIClient(base_url=candidate, version="auto", timeout=ENGINE_TIMEOUT_S)
            return _describe_engine(client, candidate)
        except (docker.errors.DockerException, requests.RequestException, OSError) as fault:
            failures.append(f"{candidate}: {fault}")
    reasons = "; ".join(failures) or "no socket of Docker or Podman was found"
    raise SandboxUnavailable(
        f"no container engine: {reasons}", remedy=f"{START_REMEDY}, or set sandbox.container_host"
    )


def _describe_engine(client: APIClient, address: str) -> Engine:
    """Ask an engine what it is and what it can limit."""
    version, details = client.version(), client.info()
    components = version.get("Components") or [{}]
    name = str(components[0].get("Name") or "Docker Engine")
    security = tuple(sorted(map(str, details.get("SecurityOptions") or ())))
    # A rootless engine has no cgroup v1 controllers; Podman claims a memory limit even so.
    is_rootless = bool(details.get("Rootless")) or "name=rootless" in security
    cannot_limit = is_rootless and str(details.get("CgroupVersion")) != "2"
    return Engine(
        client=client,
        address=address,
        podman="podman" in name.lower(),
        version=f"{name} {version.get('Version', '')}".strip(),
        limits_memory=bool(details.get("MemoryLimit")) and not cannot_limit,
        security=security,
    )
