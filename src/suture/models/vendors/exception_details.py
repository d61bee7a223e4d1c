"""What a vendor's exception says beside its kind: how long to wait, and why no connection came about.

The second by the chain of exceptions: SDKs say "Connection error." to all.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Literal

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
LONGEST_S = 366 * DAY_S
"""Whoever asks for more says nothing that can be planned with."""


def retry_after_s(fault: Exception, now_s: float | None = None) -> float | None:
    """Seconds to wait, from the headers of the response that a vendor's exception carries.

    Read are `retry-after-ms`, and `retry-after` as seconds or as a date (RFC 9110, section 10.2.3).

    Args:
        fault: What the vendor's SDK raised.
        now_s: The time now, in seconds since the epoch; the machine's where not given.

    Returns:
        Seconds, from 0 to those of a year, or `None` where the provider did not say.
    """
    headers = getattr(getattr(fault, "response", None), "headers", None) or {}
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return _bounded(float(headers.get(name, "")) * unit_s)
        except ValueError:
            continue
    try:
        date_s = parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return _bounded(date_s - (time.time() if now_s is None else now_s))


def _bounded(seconds: float) -> float | None:
    return None if math.isnan(seconds) else min(LONGEST_S, max(0.0, seconds))


def describe_wait(seconds: float, now_s: float | None = None) -> str:
    """A wait for people: how long, and from an hour on also until when.

    Args:
        seconds: The length of the wait, from now.
        now_s: The time now, in seconds since the epoch; the machine's where not given.
    """
    if seconds < 2 * MINUTE_S:
        return f"{math.ceil(seconds)} s"
    if seconds < HOUR_S:
        return f"{math.ceil(seconds / MINUTE_S)} min"
    until = time.gmtime((time.time() if now_s is None else now_s) + seconds)
    days, hours = int(seconds // DAY_S), seconds % DAY_S / HOUR_S
    length = f"{hours:.1f} h" if days == 0 else f"{days} d {hours:.0f} h"
    return f"{length}, until {time.strftime('%Y-%m-%d %H:%M', until)} UTC"


Unreached = Literal["closed", "unknown_host", "tls"]

NAMES = ("ConnectError", "ConnectTimeout")
"""Of httpx, of what came after it, and of httpcore below them."""


def why_unreached(fault: BaseException) -> tuple[Unreached, str] | None:
    """Why nobody was talked to, and the system's words for it; `None` where it is another kind of fault."""
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
