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

from suture.errors import ModelError, ModelNotFound, ModelRateLimited
from suture.models.providers.connections import mask_credentials
from suture.models.providers.error_table import ERROR_TABLE, ProviderErrorKind
from suture.models.providers.http_guard import ResponseRefused
from suture.models.tuning import MAX_RETRY_AFTER_S

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


def read_retry_after_s(fault: Exception, now_s: float | None = None) -> float | None:
    """Return the seconds to wait, from the response headers of a vendor's exception, or `None` without them.

    The headers are `retry-after-ms`, and `retry-after` in seconds or as a date (RFC 9110, section 10.2.3).
    `now_s` is the current time in seconds since the epoch; the system's by default.
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
    """Return a wait within the bounds, or `None` for a number that is none."""
    return None if math.isnan(seconds) else min(MAX_RETRY_AFTER_S, max(0.0, seconds))


def format_wait(seconds: float, now_s: float | None = None) -> str:
    """Return a wait for people: its length, and from an hour on also the date and time of its end."""
    if seconds < 2 * MINUTE_S:  # up to here, rounding to minutes would be too coarse
        return f"{math.ceil(seconds)} s"
    if seconds < HOUR_S:
        return f"{math.ceil(seconds / MINUTE_S)} min"
    end = time.gmtime((time.time() if now_s is None else now_s) + seconds)
    days, hours = int(seconds // DAY_S), seconds % DAY_S / HOUR_S
    length = f"{hours:.1f} h" if days == 0 else f"{days} d {hours:.0f} h"
    return f"{length}, until {time.strftime('%Y-%m-%d %H:%M', end)} UTC"


CONNECT_ERROR_NAMES = ("ConnectError", "ConnectTimeout")
"""Class names of httpx, of its successor, and of httpcore below them."""


def find_connection_failure(fault: BaseException) -> tuple[ProviderErrorKind, str] | None:
    """Return why no connection was made, as `(kind, message)`; `None` for another kind of fault.

    All causes of the exception are inspected, because SDKs say "Connection error." for all of them.
    """
    causes = list(_walk_all_causes(fault))
    if not any(type(cause).__name__ in CONNECT_ERROR_NAMES or _is_refusal(cause) for cause in causes):
        return None
    for cause in reversed(causes):  # the innermost exception is the most precise
        if isinstance(cause, ssl.SSLError):
            return "tls", cause.strerror or str(cause)
        if isinstance(cause, socket.gaierror):
            return "unknown_host", cause.strerror or str(cause)
    if any(type(cause).__name__ == "ConnectTimeout" for cause in causes):
        return "unreachable", "the connection was not accepted in time"
    system_texts = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    innermost = causes[-1]
    return "unreachable", (system_texts[-1] if system_texts else str(innermost)) or type(innermost).__name__


def _is_refusal(fault: BaseException) -> bool:
    # Ollama's client raises a bare ConnectionError where its HTTP library could not connect.
    return isinstance(fault, ConnectionRefusedError) or type(fault) is ConnectionError


def _walk_all_causes(fault: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes and contexts, and the members of exception groups among them.

    A group holds one exception for each address of a host that was tried.
    """
    cause: BaseException | None = fault
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            for member in cause.exceptions:
                yield from _walk_all_causes(member)
        cause = cause.__cause__ or cause.__context__


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
"""HTTP status -> kind of error. 501 means that no such function exists; 52x are Cloudflare's, 529 is Anthropic's."""
MAX_QUOTED_CHARS = 300
"""Length of a vendor's message that is shown. Chosen by judgement; not measured."""
MAX_SCANNED_CHARS = 4000
"""Beginning of an error's body in which phrases are looked for. Chosen by judgement; not measured."""
MAX_SHOWN_KEY_CHARS = 8
"""A prefix of this length shows only the kind of a key (`sk-proj-`); longer prefixes are masked."""
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Exceptions of SDKs on a body that does not follow the wire format."""
PROTOCOLS = {"anthropic": "Anthropic", "ollama": "Ollama"}
"""Provider -> protocol; all other providers speak OpenAI's."""
NO_QUOTA_PHRASES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "current quota",
    "credit balance is too low",
    "insufficient balance",
    "arrearage",
)
"""How OpenAI, Anthropic, DeepSeek and Model Studio say that an account is used up."""


@dataclass(frozen=True, kw_only=True)
class ModelTarget:
    """The model that was called, for messages about a fault.

    Attributes:
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
        # A message may quote a key with other than ASCII characters as Python writes it, without the quotes.
        for spelling in (self.secret, ascii(self.secret)[1:-1]) if self.secret else ():
            text = text.replace(spelling, "***")
        # A quoted answer may have been cut in the middle of the key.
        for length in range(len(self.secret) - 1, MAX_SHOWN_KEY_CHARS, -1):
            text = text.replace(self.secret[:length], "***")
        return mask_credentials(text)


def map_provider_error(fault: Exception, target: ModelTarget) -> ModelError:
    """Return our exception for a vendor's."""
    if isinstance(fault, ModelError):
        return fault
    kind = classify_provider_error(fault)
    rule = ERROR_TABLE[kind]
    status = getattr(fault, "status_code", None)
    status_text = f" (HTTP {status})" if isinstance(status, int) and status > 0 else ""
    detail = " ".join(target.masked(_describe_fault(fault, target)).split())[:MAX_QUOTED_CHARS]
    detail = detail or type(fault).__name__
    if issubclass(rule.error, ModelNotFound) and target.address:
        detail = f"{target.address}: {detail}"
    wait_s = read_retry_after_s(fault)
    if wait_s and kind in ("rate_limit", "quota", "overloaded"):
        detail += f"; it asks to wait {format_wait(wait_s)}"
    message = f"{target.name!r} {rule.sentence}{status_text}: {detail}"
    remedy = target.remedy(rule.remedy)
    if rule.error is ModelRateLimited:
        error: ModelError = ModelRateLimited(message, retry_after_s=wait_s, remedy=remedy)
    else:
        error = rule.error(message, remedy=remedy)
    error.is_transient = rule.retry
    return error


def _describe_fault(fault: Exception, target: ModelTarget) -> str:
    """Return the most precise message: the SDK's own is often just "Connection error."."""
    refusal = _find_guard_refusal(fault)
    if refusal is not None:
        return str(refusal)
    if classify_provider_error(fault) == "bad_header":
        return "it is not shown here"  # the library's message contains the key itself
    if _has_no_status(fault) and (connection_failure := find_connection_failure(fault)) is not None:
        _, message = connection_failure
        return f"{target.address}: {message}" if target.address else message
    # OpenAI's and Anthropic's SDKs say "Connection error." here; the innermost cause says what happened.
    if any(cls.__name__ == "APIConnectionError" for cls in type(fault).__mro__):
        return [text for cause in _walk_causes(fault) if (text := str(cause))][-1]
    return str(fault)


def classify_provider_error(fault: Exception) -> ProviderErrorKind:
    """Return the kind of a vendor's exception in the error table."""
    refusal = _find_guard_refusal(fault)
    if refusal is not None:
        return refusal.kind
    class_names = {cls.__name__ for cause in _walk_causes(fault) for cls in type(cause).__mro__}
    if "ContextOverflowError" in class_names:
        return "context"
    if not _has_no_status(fault):
        return _classify_status(int(getattr(fault, "status_code", 0)), fault)
    if (connection_failure := find_connection_failure(fault)) is not None:
        return connection_failure[0]
    if any("Timeout" in name for name in class_names):
        return "timeout"
    if "LocalProtocolError" in class_names or "UnicodeEncodeError" in class_names:
        return "bad_header"
    if "RemoteProtocolError" in class_names:
        messages = " ".join(str(cause) for cause in _walk_causes(fault)).lower()
        if "without sending a response" in messages:
            return "connection_closed"
        if "closed" not in messages:
            return "not_a_reply"  # the response is not HTTP
    # What fails now failed after the connection was made: the server broke off.
    if class_names & {"OSError", "APIConnectionError", "TransportError"}:
        return "cut_off"
    if isinstance(fault, UNREADABLE):
        return "unreadable"
    return "unknown"


def _find_guard_refusal(fault: BaseException) -> ResponseRefused | None:
    return next((cause for cause in _walk_causes(fault) if isinstance(cause, ResponseRefused)), None)


def _has_no_status(fault: Exception) -> bool:
    status = getattr(fault, "status_code", None)
    return not isinstance(status, int) or status <= 0  # Ollama's client reports -1 without a response


def _classify_status(status: int, fault: Exception) -> ProviderErrorKind:
    """Return the kind of an error with an HTTP status, by the status and what the text says."""
    # OpenAI's SDK puts only the message into the text; code and type are attributes.
    text = f"{fault} {getattr(fault, 'code', '')} {getattr(fault, 'type', '')}".lower()
    text_with_body = f"{text} {str(getattr(fault, 'body', ''))[:MAX_SCANNED_CHARS]}".lower()
    if status in (400, 403, 429) and any(phrase in text_with_body for phrase in NO_QUOTA_PHRASES):
        return "quota"
    names_prompt = "context" in text or "prompt" in text
    names_size = any(word in text for word in ("exceed", "length", "window", "size", "too long"))
    if status in (400, 413) and names_prompt and names_size:
        return "context"
    return STATUSES.get(status, "server_error" if status >= 500 else "request_refused")


def _walk_causes(fault: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its explicit causes, as SDKs wrap httpx."""
    cause: BaseException | None = fault
    while cause is not None:
        yield cause
        cause = cause.__cause__
