"""A container that carries a zygote: its streams come through one socket of the engine's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suture.errors import SandboxBroken
from suture.sandbox.container.engine import TIMEOUT_S, Engine, runtime_of
from suture.sandbox.execution.program import SandboxNotStarted
from suture.sandbox.zygote.transport import StreamTransport

if TYPE_CHECKING:
    from docker import APIClient

HEADER_BYTES = 8
"""Of each piece of output: which stream, three zeros, a big-endian u32 of the bytes that follow."""
STDOUT, STDERR = 1, 2
KILLED = -9
"""As asyncio tells of a process that SIGKILL has ended."""
MOST_REASON_BYTES = 1 << 16


class ContainerTransport(StreamTransport):
    """A container of ours; see `zygote.carrier.ZygoteTransport`. Make it with `ContainerCarrier.start`."""

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
        self._sorting = asyncio.create_task(self._sort())

    @classmethod
    async def start(
        cls, engine: Engine, config: Mapping[str, Any], runtime: str | None = None
    ) -> ContainerTransport:
        """Create and start a container, holding on to its streams.

        Args:
            engine: The engine that is to run it.
            config: As the SDK's `create_container_from_config` takes it.
            runtime: The runtime it must have, where that matters.

        Raises:
            SandboxNotStarted: The engine refused, or took another runtime.
        """
        container = await _uninterrupted(partial(_create, engine, config), partial(_remove, engine))
        writer = None
        try:
            # Attached before it starts, so that no byte is missed.
            reader, writer = await attach(engine, container)
            await engine.ask(lambda client: client.start(container))
            if runtime is not None:
                await engine.ask(partial(_check_runtime, engine, container, Path(runtime).name))
        except BaseException as fault:
            if writer is not None:
                writer.close()
            await asyncio.shield(asyncio.to_thread(_remove, engine, container))
            if isinstance(fault, SandboxBroken | OSError | asyncio.IncompleteReadError):
                raise SandboxNotStarted(str(fault)) from fault
            raise
        return cls(engine, container, reader, writer)

    async def _sort(self) -> None:
        streams = {STDOUT: self.stdout, STDERR: self.stderr}
        try:
            while True:
                head = await self._reader.readexactly(HEADER_BYTES)
                piece = await self._reader.readexactly(int.from_bytes(head[4:], "big"))
                if head[0] in streams:
                    streams[head[0]].feed_data(piece)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for stream in streams.values():
                stream.feed_eof()

    @property
    def returncode(self) -> int | None:
        """Negative once it is gone; how it ended is of no interest."""
        return KILLED if self._ended else None

    def kill(self) -> None:
        """Remove the container with everything that runs in it; safe to call twice."""
        if self._removal is None:
            loop = asyncio.get_running_loop()
            self._removal = loop.run_in_executor(None, _remove, self._engine, self.container)
            # An engine that does not answer does not end the streams either.
            self._removal.add_done_callback(lambda _: self._stdin.transport.abort())

    async def wait(self) -> int:
        """Wait until the container is gone."""
        await asyncio.wait([self._sorting])
        self.kill()
        assert self._removal is not None
        await asyncio.wait([self._removal])
        self._ended = True
        self._stdin.close()
        return KILLED


async def _uninterrupted(begin: Callable[[], str], undo: Callable[[str], None]) -> str:
    """What an engine has begun cannot be called off; where nobody waits for it any more, it is undone."""
    making = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        with suppress(SandboxNotStarted):
            await asyncio.to_thread(undo, await making)
        raise


def _create(engine: Engine, config: Mapping[str, Any]) -> str:
    def work(client: Any) -> str:
        return str(client.create_container_from_config(dict(config))["Id"])

    try:
        return engine.ask_now(work)
    except SandboxBroken as fault:
        raise SandboxNotStarted(str(fault)) from fault


async def attach(engine: Engine, container: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A container's streams. The SDK's own way leaves the socket to a thread and a buffer.

    Args:
        engine: The engine that runs the container.
        container: The container's id.

    Raises:
        SandboxBroken: The engine refused, in its own words, or did not answer.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _ask_to_attach(engine, container)
    except TimeoutError as fault:
        raise SandboxBroken(f"{engine.version} does not attach: no answer in {TIMEOUT_S:g} s") from fault


async def _ask_to_attach(engine: Engine, container: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(engine.address.removeprefix("unix://"))
    try:
        writer.write(
            f"POST /v{engine.client.api_version}/containers/{container}/attach"
            "?stdin=1&stdout=1&stderr=1&stream=1 HTTP/1.1\r\n"
            "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split(b" ", 2)[1]
        if status not in (b"101", b"200"):
            raise SandboxBroken(f"{engine.version} does not attach: {await _reason(head, reader)}")
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _reason(head: bytes, reader: asyncio.StreamReader) -> str:
    """What an engine says of its refusal: Podman makes a container ready only now, and tells of it here."""
    line = head.splitlines()[0].decode("latin-1")
    sizes = [part.split(b":")[1] for part in head.lower().splitlines() if part.startswith(b"content-length:")]
    try:
        body = await reader.readexactly(min(int(sizes[0]), MOST_REASON_BYTES))
        message = json.loads(body)["message"]
    except (IndexError, KeyError, TypeError, ValueError, asyncio.IncompleteReadError):
        return line
    return f"{line}: {message}" if isinstance(message, str) else line


def _check_runtime(engine: Engine, container: str, wanted: str, client: APIClient) -> None:
    found = runtime_of(client, container, podman=engine.podman)
    if found != wanted:
        # Podman's service takes no runtime from its clients, and does not say so.
        raise SandboxBroken(
            f"{engine.version} took the runtime {found!r}, not {wanted!r}",
            remedy=f"start it with that one: `podman --runtime {wanted} system service`",
        )


def _remove(engine: Engine, container: str) -> None:
    with suppress(SandboxBroken):  # it removes itself once it ends, and is then not there
        engine.ask_now(lambda client: client.remove_container(container, v=True, force=True))
