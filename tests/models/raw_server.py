"""A server that writes raw bytes to a socket, as no well-behaved HTTP library would send them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType

__all__ = ["RawServer", "head"]

Talk = Callable[[socket.socket], None]


def head(status: int = 200, /, **headers: str) -> bytes:
    """The head of a response that ends with the connection."""
    lines = [f"HTTP/1.1 {status} Said", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class RawServer:
    """Reads each request, then lets `talk` write; records the requests. `closing` ends an endless talk."""

    def __init__(self, talk: Talk) -> None:
        self.requests: list[bytes] = []
        self.closing = threading.Event()
        self._talk = talk
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
            self.requests.append(_request(peer))
            self._talk(peer)


def _request(peer: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(peer)
    top, _, body = got.partition(b"\r\n\r\n")
    sizes = [
        int(line.split(b":")[1]) for line in top.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    while len(body) < sum(sizes):
        body += _more(peer)
    return top + b"\r\n\r\n" + body


def _more(peer: socket.socket) -> bytes:
    piece = peer.recv(65536)
    if not piece:
        raise ConnectionError("the client hung up")
    return piece
