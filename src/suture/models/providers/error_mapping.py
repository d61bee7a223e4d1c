"""What a vendor's exception says beside its kind: how long to wait, and why no connection came about.

The second by the chain of exceptions: SDKs say "Connection error." to all.
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
from suture.models.providers.error_table import FAULTS, FaultKind
from suture.models.providers.http_guard import WireFault
from suture.models.providers.urls import without_credentials

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


STATUSES: Mapping[int, FaultKind] = {
    401: "key",
    402: "quota",
    403: "key",
    404: "missing",
    405: "missing",
    408: "timeout",
    429: "rate",
    501: "missing",
    502: "gateway",
    503: "busy",
    504: "timeout",
    520: "gateway",
    522: "gateway",
    524: "timeout",
    529: "busy",
}
MAX_QUOTED_CHARS = 300
MAX_READ_CHARS = 4000
TOLD_KEY_CHARS = 8
"""Of the beginning of a key; so much says whose and of what kind it is (`sk-proj-`), and no more."""
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What SDKs raise when the body is not what the wire format promises."""
PROTOCOLS = {"anthropic": "Anthropic", "ollama": "Ollama"}
"""Those of other providers are OpenAI's."""
NO_QUOTA = (
    *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "current quota"),
    *("credit balance is too low", "insufficient balance", "arrearage"),
)
"""How OpenAI, Anthropic, DeepSeek and Model Studio say that an account is used up."""
UNREACHED: Mapping[Unreached, FaultKind] = {
    "closed": "unreachable",
    "unknown_host": "unknown_host",
    "tls": "tls",
}


@dataclass(frozen=True, kw_only=True)
class AskedModel:
    """Who was asked, for the words about a fault.

    Attributes:
        name: The model, as `provider:model`.
        address: Where it is; empty where that is not known.
        secret: The key, which some servers echo; it is masked.
        key_variable: Where its users set the key.
    """

    name: str
    address: str = ""
    secret: str = ""
    key_variable: str = ""

    def remedy(self, text: str) -> str:
        """A remedy with what it leaves open filled in."""
        protocol = PROTOCOLS.get(self.name.partition(":")[0], "OpenAI")
        key = self.key_variable or "the provider's key"
        return text.replace("{protocol}", protocol).replace("{key}", key)

    def masked(self, text: str) -> str:
        """A text without the key, and without credentials in addresses."""
        for form in (self.secret, ascii(self.secret)[1:-1]) if self.secret else ():
            text = text.replace(form, "***")
        # What is quoted of an answer was cut, maybe in the middle of the key.
        for length in range(len(self.secret) - 1, TOLD_KEY_CHARS, -1):
            text = text.replace(self.secret[:length], "***")
        return without_credentials(text)


def as_model_error(fault: Exception, asked: AskedModel) -> ModelError:
    """Turn a vendor's exception into ours."""
    if isinstance(fault, ModelError):
        return fault
    kind = classify(fault)
    row = FAULTS[kind]
    status = getattr(fault, "status_code", None)
    code = f" (HTTP {status})" if isinstance(status, int) and status > 0 else ""
    said = " ".join(asked.masked(_detail(fault, asked)).split())[:MAX_QUOTED_CHARS] or type(fault).__name__
    if issubclass(row.error, ModelNotFound) and asked.address:
        said = f"{asked.address}: {said}"
    wait_s = retry_after_s(fault)
    wait = (
        f"; it asks to wait {describe_wait(wait_s)}" if wait_s and kind in ("rate", "quota", "busy") else ""
    )
    message = f"{asked.name!r} {row.sentence}{code}: {said}{wait}"
    remedy = asked.remedy(row.remedy)
    error = (
        ModelRateLimited(message, retry_after_s=wait_s, remedy=remedy)
        if row.error is ModelRateLimited
        else row.error(message, remedy=remedy)
    )
    error.passing = row.retry
    return error


def _detail(fault: Exception, asked: AskedModel) -> str:
    """What was seen, in the words of who saw it first: an SDK's own are often "Connection error."."""
    refused = _refused(fault)
    if refused is not None:
        return str(refused)
    if classify(fault) == "unsendable":
        return "it is not shown here"  # the key itself would stand in the words of who refuses it
    if _has_no_status(fault) and (reached := why_unreached(fault)) is not None:
        return f"{asked.address}: {reached[1]}" if asked.address else reached[1]
    if any(kind.__name__ == "APIConnectionError" for kind in type(fault).__mro__):
        return [said for link in _chain(fault) if (said := str(link))][-1]
    return str(fault)


def classify(fault: Exception) -> FaultKind:
    """Which row of the table a vendor's exception is."""
    refused = _refused(fault)
    if refused is not None:
        return refused.kind
    kinds = {cls.__name__ for link in _chain(fault) for cls in type(link).__mro__}
    if "ContextOverflowError" in kinds:
        return "context"
    if not _has_no_status(fault):
        return _from_status(int(getattr(fault, "status_code", 0)), fault)
    if (reached := why_unreached(fault)) is not None:
        return UNREACHED[reached[0]]
    if any("Timeout" in kind for kind in kinds):
        return "timeout"
    if "LocalProtocolError" in kinds or "UnicodeEncodeError" in kinds:
        return "unsendable"
    if "RemoteProtocolError" in kinds and "without sending a response" in _said(fault):
        return "dropped"
    if "RemoteProtocolError" in kinds and "closed" not in _said(fault):
        return "foreign"  # what came is no HTTP
    if kinds & {"OSError", "APIConnectionError", "TransportError"}:
        return "lost"
    if isinstance(fault, UNREADABLE):
        return "unreadable"
    return "other"


def _refused(fault: BaseException) -> WireFault | None:
    return next((link for link in _chain(fault) if isinstance(link, WireFault)), None)


def _has_no_status(fault: Exception) -> bool:
    status = getattr(fault, "status_code", None)
    return not isinstance(status, int) or status <= 0  # Ollama's client says -1 where there was none


def _from_status(status: int, fault: Exception) -> FaultKind:
    # OpenAI's SDK shows only the message; what kind of error it is stands beside it.
    kind = f"{fault} {getattr(fault, 'code', '')} {getattr(fault, 'type', '')}".lower()
    answer = f"{kind} {str(getattr(fault, 'body', ''))[:MAX_READ_CHARS]}".lower()
    if status in (400, 403, 429) and any(words in answer for words in NO_QUOTA):
        return "quota"
    if status in (400, 413) and _is_about_context(kind):
        return "context"
    return STATUSES.get(status, "server" if status >= 500 else "refused")


def _is_about_context(said: str) -> bool:
    about = "context" in said or "prompt" in said
    return about and any(word in said for word in ("exceed", "length", "window", "size", "too long"))


def _chain(fault: BaseException) -> Iterator[BaseException]:
    """A fault and what it was raised from, as SDKs wrap httpx."""
    link: BaseException | None = fault
    while link is not None:
        yield link
        link = link.__cause__


def _said(fault: BaseException) -> str:
    return " ".join(str(link) for link in _chain(fault)).lower()
