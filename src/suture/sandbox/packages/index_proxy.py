"""The one way out of where packages are fetched: a proxy of ours that leads to the index and nowhere else.

A client runs in a network namespace of its own, in which there is nothing but its loopback. There it opens a
door, a listening socket, and hands that over before it begins (`client.START`). A socket stays in the
namespace in which it was made, so this side answers at the door and needs no process over there.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import stat
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from suture.sandbox.tuning import (
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    MAX_CONNECTIONS,
    MAX_DOWNLOADED_BYTES,
    MAX_NAMED_SERVERS,
    MAX_REQUEST_HEAD_BYTES,
    READ_CHUNK_BYTES,
    REQUEST_HEAD_TIMEOUT_S,
)

DOOR = ".door"
"""The socket in the client's folder through which it hands over the door; gone as soon as it has."""
PORTS = {"https": 443, "http": 80}
HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]")
PASSED_ON = re.compile(
    r"(?:accept|accept-encoding|authorization|cache-control|if-none-match|range|user-agent):[\t\x20-\x7e]*",
    re.I,
)
"""Headers of a plain request. None of them frames a body: there is one request, and nothing behind it."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """One server.

    Attributes:
        scheme: `https`, through which the gate does not see, or `http`.
        host: In small letters.
        port: Its port.
    """

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return self.host if PORTS[self.scheme] == self.port else f"{self.host}:{self.port}"


def origin_of(url: str, scheme: str = "") -> Origin | None:
    """The server of an address; `None` where it is no address of a server, or has other signs than such have.

    Args:
        url: Not trusted.
        scheme: What it must be, where that matters.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    if ":" in host:
        host = f"[{host}]"
    if parts.scheme not in PORTS or (scheme and parts.scheme != scheme) or not HOST.fullmatch(host):
        return None
    return Origin(scheme=parts.scheme, host=host, port=port or PORTS[parts.scheme])


class IndexProxy:
    """Lets a client through to some servers.

    Args:
        origins: These. A redirect, a requirement or a program that leads elsewhere is refused.
        proxy_for: The user's own proxy on the way to one, as an address; empty where there is none.
        names: Name of one -> the server that is meant by it.
    """

    def __init__(
        self,
        origins: Collection[Origin],
        proxy_for: Callable[[Origin], str],
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._origins = frozenset(origins)
        self._proxy_for = proxy_for
        self._names = names or {}
        self._answering: set[asyncio.Task[None]] = set()
        self._left = MAX_DOWNLOADED_BYTES
        self.refused: list[str] = []
        """Where else it wanted to go."""
        self.unreached: list[str] = []
        """Which of them did not answer."""

    @asynccontextmanager
    async def watching(self, folder: Path) -> AsyncIterator[None]:
        """Take the door that is handed over in a folder, and answer at it until the end.

        Args:
            folder: The client's.
        """
        path, place = folder / DOOR, os.open(folder, os.O_PATH | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as meeting:
            try:
                meeting.bind(f"/proc/self/fd/{place}/{DOOR}")  # a socket's own path may have 107 bytes only
                path.chmod(0o666)  # the client has another user where this side is root
                meeting.listen(1)
                meeting.setblocking(False)
                serving = asyncio.create_task(self._serve(meeting, path))
                try:
                    yield
                finally:
                    serving.cancel()
                    await asyncio.wait([serving])
            finally:
                os.close(place)
                path.unlink(missing_ok=True)

    async def _serve(self, meeting: socket.socket, path: Path) -> None:
        door = await _handed_over(meeting, path)
        server = await asyncio.start_server(self._answer, sock=door, limit=MAX_REQUEST_HEAD_BYTES)
        try:
            await server.serve_forever()
        finally:
            server.close()
            for task in self._answering:
                task.cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            if len(self._answering) <= MAX_CONNECTIONS:
                await self._through(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # a connection that breaks is the client's to tell of
        finally:
            self._answering.discard(task)
            writer.close()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_HEAD_TIMEOUT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head.decode("latin-1").split("\r\n")
        headers = [one for one in headers if PASSED_ON.fullmatch(one)]
        method, _, rest = line.partition(" ")
        target = rest.rpartition(" ")[0]
        tunnel = method == "CONNECT"
        origin = origin_of(f"https://{target}" if tunnel else target, "" if tunnel else "http")
        if origin not in self._origins or (not tunnel and method not in ("GET", "HEAD")):
            self._note(self.refused, str(origin) if origin else "what is no address")
            writer.write(b"HTTP/1.1 403 Not the index\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                proxied, (far_reader, far_writer) = await self._dial(origin)
        except (OSError, EOFError, TimeoutError, ValueError):
            self._note(self.unreached, str(origin))
            writer.write(b"HTTP/1.1 502 Out of reach\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await self._pump((reader, far_writer), (far_reader, writer))
            else:
                far_writer.write(_plain_request(method, target, headers, proxied))
                await self._pump((far_reader, writer))
        finally:
            far_writer.close()

    async def _dial(self, origin: Origin) -> tuple[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """The user's proxy, where one stands between, and a connection that leads to a server."""
        origin = replace(origin, host=self._names.get(origin.host, origin.host))
        address = self._proxy_for(origin)
        if not address:
            return "", await asyncio.open_connection(origin.host.strip("[]"), origin.port)
        proxy = urlsplit(address)
        way = await asyncio.open_connection(proxy.hostname, proxy.port or PORTS["http"])
        login = _login(address)
        if origin.scheme == "https":
            way[1].write(f"CONNECT {origin.host}:{origin.port} HTTP/1.1\r\n{login}\r\n".encode("latin-1"))
            answer = await way[0].readuntil(b"\r\n\r\n")
            if answer.split(b" ")[1:2] != [b"200"]:
                way[1].close()
                raise OSError("the proxy refuses")
        return login or "\r\n", way

    async def _pump(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Pass on until all ways have ended, or none moves: who downloads says nothing meanwhile."""
        async with asyncio.timeout(IDLE_TIMEOUT_S) as patience:
            await asyncio.gather(*(self._pass_on(*way, patience) for way in ways))

    async def _pass_on(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, patience: asyncio.Timeout
    ) -> None:
        while True:
            chunk = await source.read(READ_CHUNK_BYTES)
            patience.reschedule(asyncio.get_running_loop().time() + IDLE_TIMEOUT_S)
            self._left -= len(chunk)
            if not chunk or self._left < 0:
                break
            sink.write(chunk)
            await sink.drain()
        with suppress(OSError, RuntimeError):
            sink.write_eof()

    @staticmethod
    def _note(places: list[str], place: str) -> None:
        if place not in places and len(places) < MAX_NAMED_SERVERS:
            places.append(place)


async def _handed_over(meeting: socket.socket, path: Path) -> socket.socket:
    """The door, once it comes; nobody else can hand over another.

    Raises:
        OSError: What comes is no door of a loopback's.
    """
    taken, _ = await asyncio.get_running_loop().sock_accept(meeting)
    await asyncio.to_thread(path.unlink, missing_ok=True)
    with taken:
        taken.settimeout(REQUEST_HEAD_TIMEOUT_S)
        _, handles, _, _ = await asyncio.to_thread(socket.recv_fds, taken, 1, 1)
        if not (handles and stat.S_ISSOCK(os.fstat(handles[0]).st_mode)):
            raise OSError("no door was handed over")
        door = socket.socket(fileno=handles[0])
        if door.family != socket.AF_INET or door.getsockname()[0] != "127.0.0.1":
            door.close()
            raise OSError("no door of a loopback's was handed over")
        door.setblocking(False)
        taken.send(b"g")
    return door


def _plain_request(method: str, target: str, headers: list[str], proxied: str) -> bytes:
    """A request for a server, or for a proxy on the way to it, and nothing behind it."""
    parts = urlsplit(target)
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    netloc = parts.netloc.rpartition("@")[2]
    asked = f"http://{netloc}{path}" if proxied else path
    login = [proxied.strip()] if proxied.strip() else []
    lines = [f"{method} {asked} HTTP/1.1", f"Host: {netloc}", *headers, *login, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _login(address: str) -> str:
    """The header that tells a proxy who asks; empty where its address names nobody."""
    parts = urlsplit(address)
    if parts.username is None:
        return ""
    named = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return f"Proxy-Authorization: Basic {base64.b64encode(named).decode('ascii')}\r\n"
