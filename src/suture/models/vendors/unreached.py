"""Why no connection came about, by the chain of exceptions: SDKs say "Connection error." to all."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Literal

__all__ = ["Unreached", "why_unreached"]

Unreached = Literal["closed", "unknown_host", "tls"]

NAMES = ("ConnectError", "ConnectTimeout")
"""Of httpx, of what came after it, and of httpcore below them."""


def why_unreached(fault: BaseException) -> tuple[Unreached, str] | None:
    """Why nobody was talked to, and the system's words for it; `None` where it is another kind of fault.

    Args:
        fault: What an SDK raised.
    """
    links = list(_links(fault))
    if not any(type(link).__name__ in NAMES or _is_refusal(link) for link in links):
        return None
    for link in reversed(links):  # the innermost knows best
        if isinstance(link, ssl.SSLError):
            return "tls", link.strerror or str(link)
        if isinstance(link, socket.gaierror):
            return "unknown_host", link.strerror or str(link)
    if any(type(link).__name__ == "ConnectTimeout" for link in links):
        return "closed", "the connection was not taken in time"
    system = next((link for link in reversed(links) if isinstance(link, OSError) and link.strerror), None)
    return "closed", (system.strerror if system else None) or str(links[-1]) or type(links[-1]).__name__


def _is_refusal(link: BaseException) -> bool:
    # Ollama's client raises a bare ConnectionError where its HTTP library could not connect.
    return isinstance(link, ConnectionRefusedError) or type(link) is ConnectionError


def _links(fault: BaseException) -> Iterator[BaseException]:
    """A fault and what led to it; of several tries to connect, all."""
    link: BaseException | None = fault
    while link is not None:
        yield link
        if isinstance(link, BaseExceptionGroup):
            for part in link.exceptions:
                yield from _links(part)
        link = link.__cause__ or link.__context__
