"""What each kind of a vendor's fault becomes in our words, and whether asking again may help: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from suture.errors import (
    ContextTooLong,
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelProtocolError,
    ModelRateLimited,
    ModelTimeout,
    ModelUnreachable,
    ReplyLost,
    RequestRefused,
)

FaultKind = Literal[
    "key",
    "missing",
    "context",
    "unsendable",
    "refused",
    "rate",
    "quota",
    "busy",
    "server",
    "gateway",
    "unreachable",
    "unknown_host",
    "tls",
    "redirect",
    "page",
    "flood",
    "encoded",
    "foreign",
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
        error: The class of ours that it becomes.
        retry: Whether the same call is made again. Never where the first one may have been paid for: a run
            must not exceed its budget.
        counts: Whether it says that the endpoint is in trouble, for the circuit breaker.
        sentence: For people; stands after the model's name.
        remedy: What the reader can do; `{protocol}` and `{key}` stand for those of the model.
    """

    error: type[ModelError]
    retry: bool = False
    counts: bool = False
    sentence: str
    remedy: str = ""


IS_IT_ONE = "check model.base_url: is this an {protocol}-compatible address?"

FAULTS: Mapping[FaultKind, Fault] = {
    "key": Fault(error=ModelAuthError, sentence="refused the key", remedy="set {key} to a key that it takes"),
    "missing": Fault(error=ModelNotFound, sentence="is not there", remedy=f"check model.name; {IS_IT_ONE}"),
    "redirect": Fault(
        error=ModelNotFound,
        sentence="answers with a redirect, which is not followed",
        remedy="where you trust that address, set model.base_url to it",
    ),
    "page": Fault(
        error=ModelNotFound, sentence="is not there: its address answers with a web page", remedy=IS_IT_ONE
    ),
    "context": Fault(
        error=ContextTooLong,
        sentence="has too little context for the prompt",
        remedy="raise model.context_tokens, or give less",
    ),
    "unsendable": Fault(
        error=ModelAuthError,
        sentence="was not asked: the key, or another header, holds what no header may",
        remedy="set {key} to the key alone: no line break, no space, ASCII letters only",
    ),
    "refused": Fault(error=RequestRefused, sentence="refused the request"),
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
        sentence="cannot be reached: nobody takes the connection",
        remedy="check that the server runs, model.base_url where you set it, and your proxy if you have one",
    ),
    "unknown_host": Fault(
        error=ModelUnreachable,
        retry=True,
        counts=True,
        sentence="cannot be reached: its host's name is not known",
        remedy="check the host in model.base_url where you set it, and that this machine is online",
    ),
    "tls": Fault(
        error=ModelUnreachable,
        counts=True,
        sentence="cannot be reached: no secure connection (TLS) comes about",
        remedy="check that model.base_url begins with the right one of http and https, this machine's clock, "
        "and SSL_CERT_FILE where the server has a certificate of your own",
    ),
    "flood": Fault(
        error=ModelProtocolError,
        counts=True,
        sentence="sends more than a reply of that length can be",
        remedy=IS_IT_ONE,
    ),
    "encoded": Fault(
        error=ModelProtocolError,
        sentence="answered with something unreadable, in an encoding of its own",
        remedy=IS_IT_ONE,
    ),
    "foreign": Fault(
        error=ModelProtocolError, sentence="answered with something that is no reply", remedy=IS_IT_ONE
    ),
    "dropped": Fault(error=ReplyLost, counts=True, sentence="hung up before it answered"),
    "timeout": Fault(
        error=ModelTimeout, counts=True, sentence="did not answer in time", remedy="raise model.timeout_s"
    ),
    "lost": Fault(error=ReplyLost, counts=True, sentence="broke off in the middle of its reply"),
    "unreadable": Fault(
        error=ModelProtocolError, sentence="answered with something unreadable", remedy=IS_IT_ONE
    ),
    "other": Fault(error=ReplyLost, sentence="failed in a way that is not known"),
}
"""From the kind of a provider's error to what it becomes, whether it is tried again, and a plain sentence."""
