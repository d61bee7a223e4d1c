"""The transport to a zygote in a container: its streams arrive through one socket of the engine."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from suture.core.installation import format_install_command
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.tuning import ENGINE_TIMEOUT_S, MAX_REFUSAL_BYTES
from suture.sandbox.zygote.zygote_transport import StreamStdin

if TYPE_CHECKING:
    from docker import APIClient


HEADER_BYTES = 8
"""The header of each piece of output: one byte for the stream, three zero bytes, and the number of bytes that
follow as a big-endian u32."""
STDOUT, STDERR = 1, 2
"""The numbers of the streams in a header."""
KILLED = -9
"""The return code by which asyncio reports a process that SIGKILL ended."""


class ContainerTransport(StreamStdin):
    """The connection to a container of our own; see `ZygoteTransport`. Create it with `start`."""

    def __init__(
        self, engine: Engine, container: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(writer)
        self.container = container
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self._engine = engine
        self._reader = reader
        self._ended = False
        self._removal: asyncio.Future[None] | None = None
        self._splitting = asyncio.create_task(self._split_streams())

    @classmethod
    async def start(
        cls, engine: Engine, config: Mapping[str, Any], runtime: str | None = None
    ) -> ContainerTransport:
        """Create and start a container, attached to its streams.

        Args:
            config: As the SDK's `create_container_from_config` takes it.
            runtime: The runtime that it must use, if that matters.

        Raises:
            SandboxNotStarted: The engine refused, or used another runtime.
        """
        container = await _run_uninterrupted(partial(_create, engine, config), partial(_remove, engine))
        writer = None
        try:
            # Attached before it starts, so that no byte is missed.
            reader, writer = await attach(engine, container)
            await engine.request(lambda client: client.start(container))
            if runtime is not None:
                await engine.request(partial(_check_runtime, engine, container, Path(runtime).name))
        except BaseException as fault:
            if writer is not None:
                writer.close()
            await asyncio.shield(asyncio.to_thread(_remove, engine, container))
            if isinstance(fault, SandboxBroken | OSError | asyncio.IncompleteReadError):
                raise SandboxNotStarted(str(fault)) from fault
            raise
        return cls(engine, container, reader, writer)

    async def _split_streams(self) -> None:
        """Read the engine's socket, and pass each piece of output on to its stream."""
        streams = {STDOUT: self.stdout, STDERR: self.stderr}
        try:
            while True:
                header = await self._reader.readexactly(HEADER_BYTES)
                content = await self._reader.readexactly(int.from_bytes(header[4:], "big"))
                if header[0] in streams:
                    streams[header[0]].feed_data(content)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for stream in streams.values():
                stream.feed_eof()

    @property
    def returncode(self) -> int | None:
        """Negative once the container is gone; its own exit code is not used."""
        return KILLED if self._ended else None

    def kill(self) -> None:
        """Remove the container with everything that runs in it. Safe to call twice."""
        if self._removal is None:
            loop = asyncio.get_running_loop()
            self._removal = loop.run_in_executor(None, _remove, self._engine, self.container)
            # An engine that does not answer does not end the streams either.
            self._removal.add_done_callback(lambda _: self._stdin.transport.abort())

    async def wait(self) -> int:
        """Wait until the container is gone."""
        await asyncio.wait([self._splitting])
        self.kill()
        assert self._removal is not None
        await asyncio.wait([self._removal])
        self._ended = True
        self._stdin.close()
        return KILLED


async def _run_uninterrupted(create: Callable[[], str], remove: Callable[[str], None]) -> str:
    """Run `create` to its end, because an engine's work cannot be withdrawn.

    If the caller is cancelled meanwhile, `remove` is called with what was created.
    """
    creation = asyncio.ensure_future(asyncio.to_thread(create))
    try:
        return await asyncio.shield(creation)
    except asyncio.CancelledError:
        with suppress(SandboxNotStarted):
            await asyncio.to_thread(remove, await creation)
        raise


def _create(engine: Engine, config: Mapping[str, Any]) -> str:
    def create(client: Any) -> str:
        return str(client.create_container_from_config(dict(config))["Id"])

    try:
        return engine.request_blocking(create)
    except SandboxBroken as fault:
        raise SandboxNotStarted(str(fault)) from fault


async def attach(engine: Engine, container: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a container's streams. The SDK's own function would tie the socket to a thread and a buffer.

    Raises:
        SandboxBroken: The engine refused (the message is its own), or did not answer.
    """
    try:
        async with asyncio.timeout(ENGINE_TIMEOUT_S):
            return await _request_attach(engine, container)
    except TimeoutError as fault:
        raise SandboxBroken(
            f"{engine.version} does not attach: no answer in {ENGINE_TIMEOUT_S:g} s"
        ) from fault


async def _request_attach(
    engine: Engine, container: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(engine.address.removeprefix("unix://"))
    try:
        writer.write(
            f"POST /v{engine.client.api_version}/containers/{container}/attach"
            "?stdin=1&stdout=1&stderr=1&stream=1 HTTP/1.1\r\n"
            "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
        )
        header = await reader.readuntil(b"\r\n\r\n")
        status = header.split(b" ", 2)[1]
        if status not in (b"101", b"200"):
            raise SandboxBroken(f"{engine.version} does not attach: {await _read_refusal(header, reader)}")
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _read_refusal(header: bytes, reader: asyncio.StreamReader) -> str:
    """Return why an engine refused. Podman reports here what fails when it prepares the container."""
    status_line = header.splitlines()[0].decode("latin-1")
    lengths = [
        line.split(b":")[1] for line in header.lower().splitlines() if line.startswith(b"content-length:")
    ]
    try:
        body = await reader.readexactly(min(int(lengths[0]), MAX_REFUSAL_BYTES))
        message = json.loads(body)["message"]
    except (IndexError, KeyError, TypeError, ValueError, asyncio.IncompleteReadError):
        return status_line
    return f"{status_line}: {message}" if isinstance(message, str) else status_line


def _check_runtime(engine: Engine, container: str, requested: str, client: APIClient) -> None:
    runtime = find_runtime(client, container, podman=engine.podman)
    if runtime != requested:
        # Podman's service ignores the runtime that a client asks for, and does not report that.
        raise SandboxBroken(
            f"{engine.version} used the runtime {runtime!r}, not {requested!r}",
            remedy=f"start it with that one: `podman --runtime {requested} system service`",
        )


def _remove(engine: Engine, container: str) -> None:
    with suppress(SandboxBroken):  # the container removes itself when it ends, and may be gone already
        engine.request_blocking(lambda client: client.remove_container(container, v=True, force=True))


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
    # Only one of Docker's and Podman's variables counts, Docker's first. By judgement.
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
            "the container sandbox needs the Docker SDK", remedy=format_install_command("docker")
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
