"""The only way out of a client's sandbox: a proxy that leads to the package index and nowhere else.

A client runs in its own network namespace, where nothing but its loopback exists. There it opens a listening
socket and passes that to the host before it begins (`client.ENTRY_CODE`). A socket stays in the namespace in
which it was created, so the host can accept connections on it and needs no process inside.
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

from suture.sandbox import tuning

HANDOVER_SOCKET = ".listener"
"""The Unix socket in the client's folder that passes the listening socket; it is removed right after."""
PORTS = {"https": 443, "http": 80}
HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]")
"""Matches a usual host name, or an IPv6 address in brackets. A host may come from a page of an index."""
FORWARDED_HEADER = re.compile(
    r"(?:accept|accept-encoding|authorization|cache-control|if-none-match|range|user-agent):[\t\x20-\x7e]*",
    re.I,
)
"""Headers of a plain request that are passed on. None of them frames a body: there is one request and nothing
after it."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """One server.

    Attributes:
        scheme: `https`, which the proxy cannot look into, or `http`.
        host: In lower case; an IPv6 address is in brackets.
    """

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return self.host if PORTS[self.scheme] == self.port else f"{self.host}:{self.port}"


def parse_origin(url: str, scheme: str = "") -> Origin | None:
    """Return the server of a URL, which is not trusted; `None` if it names none, or an unusual host.

    Args:
        scheme: The required scheme, if any.
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
    """Lets a client reach some servers.

    Args:
        origins: The servers. A redirect, a requirement or a program that leads elsewhere is refused.
        proxy_for: Returns the user's own proxy for a server, as an address; empty if there is none.
        host_aliases: Host name that the client uses -> the real host.
    """

    def __init__(
        self,
        origins: Collection[Origin],
        proxy_for: Callable[[Origin], str],
        host_aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._origins = frozenset(origins)
        self._proxy_for = proxy_for
        self._host_aliases = host_aliases or {}
        self._connections: set[asyncio.Task[None]] = set()
        self._remaining_bytes = tuning.MAX_DOWNLOADED_BYTES  # of all connections together
        self.refused: list[str] = []
        """Other servers that the client wanted to reach."""
        self.unreachable: list[str] = []
        """Allowed servers that did not answer."""

    @asynccontextmanager
    async def serve_folder(self, folder: Path) -> AsyncIterator[None]:
        """Receive the listening socket through the client's folder, and serve it in this context."""
        path, folder_fd = folder / HANDOVER_SOCKET, os.open(folder, os.O_PATH | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as handover:
            try:
                # the path of a Unix socket is limited to 107 bytes
                handover.bind(f"/proc/self/fd/{folder_fd}/{HANDOVER_SOCKET}")
                path.chmod(0o666)  # the client is another user if Suture is root
                handover.listen(1)
                handover.setblocking(False)
                serving = asyncio.create_task(self._serve(handover, path))
                try:
                    yield
                finally:
                    serving.cancel()
                    await asyncio.wait([serving])
            finally:
                os.close(folder_fd)
                path.unlink(missing_ok=True)

    async def _serve(self, handover: socket.socket, path: Path) -> None:
        listener = await _receive_listener(handover, path)
        server = await asyncio.start_server(
            self._handle_connection, sock=listener, limit=tuning.MAX_REQUEST_HEAD_BYTES
        )
        try:
            await server.serve_forever()
        finally:
            server.close()
            for task in self._connections:
                task.cancel()

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) <= tuning.MAX_CONNECTIONS:  # otherwise it is closed without an answer
                await self._forward(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the client reports a broken connection itself
        except asyncio.CancelledError:
            pass  # uv ends with open connections; asyncio in Python 3.11 prints a traceback for a cancelled one
        finally:
            self._connections.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request: a tunnel to an allowed server, or a plain request to it."""
        async with asyncio.timeout(tuning.REQUEST_HEAD_TIMEOUT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head.decode("latin-1").split("\r\n")
        headers = [header for header in headers if FORWARDED_HEADER.fullmatch(header)]
        method, _, rest = line.partition(" ")
        target = rest.rpartition(" ")[0]
        is_tunnel = method == "CONNECT"
        origin = parse_origin(f"https://{target}" if is_tunnel else target, "" if is_tunnel else "http")
        # A client that installs only reads. What is inside a tunnel is encrypted, so any method passes there.
        if origin not in self._origins or (not is_tunnel and method not in ("GET", "HEAD")):
            self._record_server(self.refused, str(origin) if origin else "what is no address")
            await _refuse(writer, b"403 Not the index")
            return
        try:
            async with asyncio.timeout(tuning.CONNECT_TIMEOUT_S):
                proxy_login, (server_reader, server_writer) = await self._connect(origin)
        except (OSError, EOFError, TimeoutError, ValueError):
            self._record_server(self.unreachable, str(origin))
            await _refuse(writer, b"502 Out of reach")
            return
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await self._copy_all((reader, server_writer), (server_reader, writer))
            else:
                server_writer.write(_plain_request(method, target, headers, proxy_login))
                await self._copy_all((server_reader, writer))
        finally:
            server_writer.close()

    async def _connect(self, origin: Origin) -> tuple[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Return `(login, (reader, writer))` of a connection to a server, which may lead through the user's proxy.

        The login is the header that authenticates to the user's proxy. It is a bare line end if the proxy needs
        none, and empty if there is no proxy, so that `_plain_request` knows whom it addresses.
        """
        origin = replace(origin, host=self._host_aliases.get(origin.host, origin.host))
        address = self._proxy_for(origin)
        if not address:
            return "", await asyncio.open_connection(origin.host.strip("[]"), origin.port)
        proxy = urlsplit(address)
        reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or PORTS["http"])
        login = _proxy_login(address)
        if origin.scheme == "https":
            request = f"CONNECT {origin.host}:{origin.port} HTTP/1.1\r\n{login}\r\n"
            writer.write(request.encode("latin-1"))
            response = await reader.readuntil(b"\r\n\r\n")
            if response.split(b" ")[1:2] != [b"200"]:
                writer.close()
                raise OSError("the proxy refuses")
        return login or "\r\n", (reader, writer)

    async def _copy_all(self, *directions: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Copy bytes until all directions have ended.

        The idle timeout is shared, because a client that downloads sends nothing.
        """
        async with asyncio.timeout(tuning.IDLE_TIMEOUT_S) as idle_timeout:
            await asyncio.gather(*(self._copy(*direction, idle_timeout) for direction in directions))

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, idle_timeout: asyncio.Timeout
    ) -> None:
        while True:
            chunk = await source.read(tuning.READ_CHUNK_BYTES)
            idle_timeout.reschedule(asyncio.get_running_loop().time() + tuning.IDLE_TIMEOUT_S)
            self._remaining_bytes -= len(chunk)
            if not chunk or self._remaining_bytes < 0:
                break
            sink.write(chunk)
            await sink.drain()
        with suppress(OSError, RuntimeError):
            sink.write_eof()

    @staticmethod
    def _record_server(servers: list[str], server: str) -> None:
        if server not in servers and len(servers) < tuning.MAX_NAMED_SERVERS:
            servers.append(server)


async def _refuse(writer: asyncio.StreamWriter, status: bytes) -> None:
    writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
    await writer.drain()


async def _receive_listener(handover: socket.socket, path: Path) -> socket.socket:
    """Receive the listening socket, and remove the handover socket so that no other process can pass another one.

    Raises:
        OSError: What was received is not a socket on the loopback.
    """
    connection, _ = await asyncio.get_running_loop().sock_accept(handover)
    await asyncio.to_thread(path.unlink, missing_ok=True)
    with connection:
        connection.settimeout(tuning.REQUEST_HEAD_TIMEOUT_S)
        _, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, connection, 1, 1)
        if not (descriptors and stat.S_ISSOCK(os.fstat(descriptors[0]).st_mode)):
            raise OSError("no socket was received")
        listener = socket.socket(fileno=descriptors[0])
        if listener.family != socket.AF_INET or listener.getsockname()[0] != "127.0.0.1":
            listener.close()
            raise OSError("the received socket is not bound to the loopback")
        listener.setblocking(False)
        connection.send(b"g")  # any byte: `client.ENTRY_CODE` waits for one before it starts the client
    return listener


def _plain_request(method: str, target: str, headers: list[str], proxy_login: str) -> bytes:
    """Return a complete request for a server, or for a proxy on the way to it.

    Args:
        proxy_login: From `_connect`: empty if the connection leads to the server itself.
    """
    parts = urlsplit(target)
    path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    netloc = parts.netloc.rpartition("@")[2]
    target_text = f"http://{netloc}{path}" if proxy_login else path
    lines = [f"{method} {target_text} HTTP/1.1", f"Host: {netloc}", *headers]
    if proxy_login.strip():
        lines.append(proxy_login.strip())
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace")


def _proxy_login(address: str) -> str:
    """Return the header that authenticates to a proxy; empty if its address contains no login."""
    parts = urlsplit(address)
    if parts.username is None:
        return ""
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return f"Proxy-Authorization: Basic {base64.b64encode(credentials).decode('ascii')}\r\n"
