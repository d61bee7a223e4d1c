"""What a vendor's exception means in our words, and whether asking again may help: one table.

Each SDK has a tree of its own, and none of them is imported here: what they share is an HTTP status, a
`response` with headers, telling class names, and httpx below them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from suture.errors import (
    ContextTooLong,
    MalformedReply,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
    ReplyLost,
)
from suture.models.addresses import without_credentials
from suture.models.retry_after import retry_after_s

__all__ = ["FAULTS", "Fault", "FaultKind", "as_model_error", "classify"]

FaultKind = Literal[
    "key",
    "missing",
    "context",
    "refused",
    "rate",
    "quota",
    "busy",
    "server",
    "gateway",
    "unreachable",
    "dropped",
    "timeout",
    "lost",
    "unreadable",
    "other",
]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row of the table.

    Attributes:
        error: What it becomes.
        retry: Whether the same call is made again. Never where the first one may have been paid for: a run
            must not exceed its budget.
        counts: Whether it says that the endpoint is in trouble, for the circuit breaker.
        sentence: For people; stands after the model's name.
        remedy: What the reader can do.
    """

    error: type[ModelError]
    retry: bool = False
    counts: bool = False
    sentence: str
    remedy: str = ""


FAULTS: Mapping[FaultKind, Fault] = {
    "key": Fault(error=ModelAuthError, sentence="refused the key", remedy="set the provider's key anew"),
    "missing": Fault(error=ModelError, sentence="is not there", remedy="check model.name and model.base_url"),
    "context": Fault(
        error=ContextTooLong,
        sentence="has too little context for the prompt",
        remedy="raise model.context_tokens, or give less",
    ),
    "refused": Fault(error=ModelError, sentence="refused the request"),
    "rate": Fault(
        error=ModelRateLimited,
        retry=True,
        sentence="asks to slow down",
        remedy="wait, or set model.requests_per_minute",
    ),
    "quota": Fault(
        error=ModelRateLimited, sentence="has no quota left", remedy="check the account's plan and billing"
    ),
    "busy": Fault(error=ModelError, retry=True, counts=True, sentence="is overloaded, or still starting"),
    "server": Fault(error=ModelError, retry=True, counts=True, sentence="failed"),
    "gateway": Fault(
        error=ReplyLost,
        counts=True,
        sentence="was asked, and a gateway lost what it may have answered",
    ),
    "unreachable": Fault(
        error=ModelUnreachable,
        retry=True,
        counts=True,
        sentence="cannot be reached",
        remedy="check that the server runs, and model.base_url where you set it",
    ),
    "dropped": Fault(error=ReplyLost, counts=True, sentence="hung up before it answered"),
    "timeout": Fault(
        error=ModelTimeout, counts=True, sentence="did not answer in time", remedy="raise model.timeout_s"
    ),
    "lost": Fault(error=ReplyLost, counts=True, sentence="broke off in the middle of its reply"),
    "unreadable": Fault(error=MalformedReply, sentence="answered with something unreadable"),
    "other": Fault(error=ReplyLost, sentence="failed in a way that is not known"),
}
"""From the kind of a provider's error to what it becomes, whether it is tried again, and a plain sentence."""

STATUSES: Mapping[int, FaultKind] = {
    401: "key",
    403: "key",
    404: "missing",
    408: "timeout",
    429: "rate",
    502: "gateway",
    503: "busy",
    504: "timeout",
    520: "gateway",
    522: "gateway",
    524: "timeout",
    529: "busy",
}
MAX_QUOTED_CHARS = 300
UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""What SDKs raise when the body is not what the wire format promises."""


def as_model_error(fault: Exception, name: str, *, secret: str = "") -> ModelError:
    """Turn a vendor's exception into ours.

    Args:
        fault: What the SDK raised.
        name: The model, as `provider:model`.
        secret: The key, which some servers echo; it is masked.
    """
    if isinstance(fault, ModelError):
        return fault
    row = FAULTS[classify(fault)]
    status = getattr(fault, "status_code", None)
    code = f" (HTTP {status})" if isinstance(status, int) and status > 0 else ""
    said = without_credentials(str(fault).replace(secret, "***") if secret else str(fault))
    said = " ".join(said.split())[:MAX_QUOTED_CHARS] or type(fault).__name__
    message = f"{name!r} {row.sentence}{code}: {said}"
    error = (
        ModelRateLimited(message, retry_after_s=retry_after_s(fault), remedy=row.remedy)
        if row.error is ModelRateLimited
        else row.error(message, remedy=row.remedy)
    )
    error.passing = row.retry
    return error


def classify(fault: Exception) -> FaultKind:
    """Which row of the table a vendor's exception is."""
    kinds = {cls.__name__ for link in _chain(fault) for cls in type(link).__mro__}
    if "ContextOverflowError" in kinds:
        return "context"
    status = getattr(fault, "status_code", None)
    if isinstance(status, int) and status > 0:  # Ollama's client says -1 where there was none
        return _from_status(status, str(fault).lower())
    if kinds & {"ConnectError", "ConnectTimeout", "ConnectionRefusedError"} or type(fault) is ConnectionError:
        return "unreachable"
    if any("Timeout" in kind for kind in kinds):
        return "timeout"
    if "RemoteProtocolError" in kinds and "without sending a response" in _said(fault):
        return "dropped"
    if kinds & {"OSError", "APIConnectionError", "TransportError"}:
        return "lost"
    if isinstance(fault, UNREADABLE):
        return "unreadable"
    return "other"


def _from_status(status: int, said: str) -> FaultKind:
    if status in (400, 413) and _is_about_context(said):
        return "context"
    if status == 429 and "insufficient_quota" in said:
        return "quota"
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
