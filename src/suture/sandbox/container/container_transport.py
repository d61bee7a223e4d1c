"""The transport to a zygote in a container: its streams arrive through one socket of the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import SandboxBroken
from suture.sandbox.container.engine import Engine, find_runtime
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
