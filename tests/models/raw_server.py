"""A server that writes raw bytes to a socket, as no well-behaved HTTP library would send them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

__all__ = ["RawServer", "response_head"]

Responder = Callable[[socket.socket], None]


def response_head(status: int = 200, /, **headers: str) -> bytes:
    """Return the head of a response whose body ends with the connection."""
    lines = [f"HTTP/1.1 {status} Said", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class RawServer:
    """Reads each request and lets `respond` write the response.

    Attributes:
        requests: The requests so far.
        closing: Set when the server closes, so that an endless response can end.
    """

    def __init__(self, respond: Responder) -> None:
        self.requests: list[bytes] = []
        self.closing = threading.Event()
        self._respond = respond
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve)]

    def __enter__(self) -> RawServer:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                self._threads.append(threading.Thread(target=self._answer, args=(peer,)))
                self._threads[-1].start()

    def _answer(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            peer.settimeout(30)
            request = read_request(peer)
            if request.startswith(
                b"POST /api/show "
            ):  # how a model of Ollama is opened; the tests are about the call
                peer.sendall(response_head(404))
                return
            self.requests.append(request)
            self._respond(peer)


def read_request(peer: socket.socket) -> bytes:
    """Read a whole request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += receive(peer)
    head, _, body = received.partition(b"\r\n\r\n")
    sizes = [
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    while len(body) < sum(sizes):
        body += receive(peer)
    return head + b"\r\n\r\n" + body


def receive(peer: socket.socket) -> bytes:
    """Read some bytes from a client that must still be connected."""
    chunk = peer.recv(65536)
    if not chunk:
        raise ConnectionError("the client hung up")
    return chunk
