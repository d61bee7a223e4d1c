"""Mapping of vendors' exceptions to ours.

Each SDK has its own exception tree, and none of them is imported here. They are recognised by what they
share: an HTTP status, a `response` with headers, class names, and the httpx exceptions that they wrap.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

from suture.errors import (
    ModelError,
    ModelNotFound,
    ModelRateLimited,
)
from suture.models.providers.error_table import ERROR_TABLE, ProviderErrorKind
from suture.models.providers.http_guard import ResponseRefused
from suture.models.providers.urls import mask_credentials
from suture.models.tuning import MAX_RETRY_AFTER_S

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


def read_retry_after_s(fault: Exception, now_s: float | None = None) -> float | None:
    """Return the seconds to wait, from the response headers that a vendor's exception carries.

    The headers are `retry-after-ms`, and `retry-after` in seconds or as a date (RFC 9110, section 10.2.3).

    Args:
        fault: The exception of the vendor's SDK.
        now_s: The current time in seconds since the epoch; the system's by default.

    Returns:
        Seconds, from 0 to a year, or `None` if the provider does not say.
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
    return None if math.isnan(seconds) else min(MAX_RETRY_AFTER_S, max(0.0, seconds))


def format_wait(seconds: float, now_s: float | None = None) -> str:
    """Return a wait for people: how long, and from an hour on also until when.

    Args:
        seconds: Length of the wait from now.
        now_s: The current time in seconds since the epoch; the system's by default.
    """
    if seconds < 2 * MINUTE_S:
        return f"{math.ceil(seconds)} s"
    if seconds < HOUR_S:
        return f"{math.ceil(seconds / MINUTE_S)} min"
    until = time.gmtime((time.time() if now_s is None else now_s) + seconds)
    days, hours = int(seconds // DAY_S), seconds % DAY_S / HOUR_S
    length = f"{hours:.1f} h" if days == 0 else f"{days} d {hours:.0f} h"
    return f"{length}, until {time.strftime('%Y-%m-%d %H:%M', until)} UTC"


ConnectionFailure = Literal["closed", "unknown_host", "tls"]

CONNECT_ERROR_NAMES = ("ConnectError", "ConnectTimeout")
"""Class names of httpx, of its successor, and of httpcore below them."""


def find_connection_failure(fault: BaseException) -> tuple[ConnectionFailure, str] | None:
    """Return why no connection was made, with the system's message; `None` for another kind of fault.

    The whole chain of exceptions is inspected, because SDKs say "Connection error." for all of them.
    """
    links = list(_links(fault))
    if not any(type(link).__name__ in CONNECT_ERROR_NAMES or _is_refusal(link) for link in links):
        return None
    for link in reversed(links):  # the innermost exception is the most precise
        if isinstance(link, ssl.SSLError):
            return "tls", link.strerror or str(link)
        if isinstance(link, socket.gaierror):
            return "unknown_host", link.strerror or str(link)
    if any(type(link).__name__ == "ConnectTimeout" for link in links):
        return "closed", "the connection was not accepted in time"
    system = next((link for link in reversed(links) if isinstance(link, OSError) and link.strerror), None)
    return "closed", (system.strerror if system else None) or str(links[-1]) or type(links[-1]).__name__


def _is_refusal(link: BaseException) -> bool:
    # Ollama's client raises a bare ConnectionError where its HTTP library could not connect.
    return isinstance(link, ConnectionRefusedError) or type(link) is ConnectionError


def _links(fault: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes; of several attempts to connect, all."""
    link: BaseException | None = fault
    while link is not None:
        yield link
        if isinstance(link, BaseExceptionGroup):
            for part in link.exceptions:
                yield from _links(part)
        link = link.__cause__ or link.__context__


STATUSES: Mapping[int, ProviderErrorKind] = {
    401: "bad_key",
    402: "quota",
    403: "bad_key",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    429: "rate_limit",
    501: "not_found",
    502: "gateway",
    503: "overloaded",
    504: "timeout",
    520: "gateway",
    522: "gateway",
    524: "timeout",
    529: "overloaded",
}
MAX_QUOTED_CHARS = 300
MAX_SCANNED_CHARS = 4000
SHOWN_KEY_CHARS = 8
"""A prefix of this length shows only the kind of a key (`sk-proj-`); longer prefixes are masked."""
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Exceptions of SDKs on a body that does not follow the wire format."""
PROTOCOLS = {"anthropic": "Anthropic", "ollama": "Ollama"}
"""Provider -> protocol; all other providers speak OpenAI's."""
NO_QUOTA = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "current quota",
    "credit balance is too low",
    "insufficient balance",
    "arrearage",
)
"""How OpenAI, Anthropic, DeepSeek and Model Studio say that an account is used up."""
UNREACHED: Mapping[ConnectionFailure, ProviderErrorKind] = {
    "closed": "unreachable",
    "unknown_host": "unknown_host",
    "tls": "tls",
}


@dataclass(frozen=True, kw_only=True)
class ModelTarget:
    """The model that was called, for messages about a fault.

    Attributes:
        name: `provider:model`.
        address: The server's address; empty if unknown.
        secret: The key, which some servers echo; it is masked.
        key_variable: Where users set the key.
    """

    name: str
    address: str = ""
    secret: str = ""
    key_variable: str = ""

    def remedy(self, text: str) -> str:
        """Return a remedy with its placeholders filled in."""
        protocol = PROTOCOLS.get(self.name.partition(":")[0], "OpenAI")
        key = self.key_variable or "the provider's key"
        return text.replace("{protocol}", protocol).replace("{key}", key)

    def masked(self, text: str) -> str:
        """Return a text without the key and without credentials in URLs."""
        for form in (self.secret, ascii(self.secret)[1:-1]) if self.secret else ():
            text = text.replace(form, "***")
        # A quoted answer may have been cut in the middle of the key.
        for length in range(len(self.secret) - 1, SHOWN_KEY_CHARS, -1):
            text = text.replace(self.secret[:length], "***")
        return mask_credentials(text)


def map_provider_error(fault: Exception, target: ModelTarget) -> ModelError:
    """Return our exception for a vendor's."""
    if isinstance(fault, ModelError):
        return fault
    kind = classify_provider_error(fault)
    row = ERROR_TABLE[kind]
    status = getattr(fault, "status_code", None)
    code = f" (HTTP {status})" if isinstance(status, int) and status > 0 else ""
    text = " ".join(target.masked(_detail(fault, target)).split())[:MAX_QUOTED_CHARS] or type(fault).__name__
    if issubclass(row.error, ModelNotFound) and target.address:
        text = f"{target.address}: {text}"
    wait_s = read_retry_after_s(fault)
    wait = ""
    if wait_s and kind in ("rate_limit", "quota", "overloaded"):
        wait = f"; it asks to wait {format_wait(wait_s)}"
    message = f"{target.name!r} {row.sentence}{code}: {text}{wait}"
    remedy = target.remedy(row.remedy)
    error = (
        ModelRateLimited(message, retry_after_s=wait_s, remedy=remedy)
        if row.error is ModelRateLimited
        else row.error(message, remedy=remedy)
    )
    error.is_transient = row.retry
    return error


def _detail(fault: Exception, target: ModelTarget) -> str:
    """Return the most precise message: the SDK's own is often just "Connection error."."""
    refused = _refused(fault)
    if refused is not None:
        return str(refused)
    if classify_provider_error(fault) == "bad_header":
        return "it is not shown here"  # the library's message contains the key itself
    if _has_no_status(fault) and (reached := find_connection_failure(fault)) is not None:
        return f"{target.address}: {reached[1]}" if target.address else reached[1]
    if any(kind.__name__ == "APIConnectionError" for kind in type(fault).__mro__):
        return [text for link in _chain(fault) if (text := str(link))][-1]
    return str(fault)


def classify_provider_error(fault: Exception) -> ProviderErrorKind:
    """Return the kind of a vendor's exception in the error table."""
    refused = _refused(fault)
    if refused is not None:
        return refused.kind
    kinds = {cls.__name__ for link in _chain(fault) for cls in type(link).__mro__}
    if "ContextOverflowError" in kinds:
        return "context"
    if not _has_no_status(fault):
        return _from_status(int(getattr(fault, "status_code", 0)), fault)
    if (reached := find_connection_failure(fault)) is not None:
        return UNREACHED[reached[0]]
    if any("Timeout" in kind for kind in kinds):
        return "timeout"
    if "LocalProtocolError" in kinds or "UnicodeEncodeError" in kinds:
        return "bad_header"
    if "RemoteProtocolError" in kinds and "without sending a response" in _said(fault):
        return "connection_closed"
    if "RemoteProtocolError" in kinds and "closed" not in _said(fault):
        return "not_a_reply"  # the response is not HTTP
    if kinds & {"OSError", "APIConnectionError", "TransportError"}:
        return "cut_off"
    if isinstance(fault, UNREADABLE):
        return "unreadable"
    return "unknown"


def _refused(fault: BaseException) -> ResponseRefused | None:
    return next((link for link in _chain(fault) if isinstance(link, ResponseRefused)), None)


def _has_no_status(fault: Exception) -> bool:
    status = getattr(fault, "status_code", None)
    return not isinstance(status, int) or status <= 0  # Ollama's client reports -1 without a response


def _from_status(status: int, fault: Exception) -> ProviderErrorKind:
    # OpenAI's SDK puts only the message into the text; code and type are attributes.
    kind = f"{fault} {getattr(fault, 'code', '')} {getattr(fault, 'type', '')}".lower()
    answer = f"{kind} {str(getattr(fault, 'body', ''))[:MAX_SCANNED_CHARS]}".lower()
    if status in (400, 403, 429) and any(words in answer for words in NO_QUOTA):
        return "quota"
    if status in (400, 413) and _is_about_context(kind):
        return "context"
    return STATUSES.get(status, "server_error" if status >= 500 else "request_refused")


def _is_about_context(text: str) -> bool:
    about = "context" in text or "prompt" in text
    return about and any(word in text for word in ("exceed", "length", "window", "size", "too long"))


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its explicit causes, as SDKs wrap httpx."""
    link: BaseException | None = fault
    while link is not None:
        yield link
        link = link.__cause__


def _said(fault: BaseException) -> str:
    return " ".join(str(link) for link in _chain(fault)).lower()
