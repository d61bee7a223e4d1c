"""The error table: for each kind of provider error, our exception, whether to retry, and the text."""

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
    ModelRequestRejected,
    ModelTimeout,
    ModelUnreachable,
    ReplyLost,
)

ProviderErrorKind = Literal[
    "bad_key",
    "not_found",
    "context",
    "bad_header",
    "request_refused",
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "gateway",
    "unreachable",
    "unknown_host",
    "tls",
    "redirect",
    "web_page",
    "too_long",
    "bad_encoding",
    "not_a_reply",
    "connection_closed",
    "timeout",
    "cut_off",
    "unreadable",
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class ErrorRule:
    """One row of the table.

    Attributes:
        retry: Whether the call is repeated. Never if the first call may have been charged: a run must not
            exceed its budget.
        counts: Whether the error counts towards the circuit breaker of the endpoint.
        sentence: Text for people; it follows the model's name.
        remedy: What the user can do; `{protocol}` and `{key}` are filled in for the model.
    """

    error: type[ModelError]
    retry: bool = False
    counts: bool = False
    sentence: str
    remedy: str = ""


CHECK_ADDRESS = "check model.base_url: is this an {protocol}-compatible address?"

ERROR_TABLE: Mapping[ProviderErrorKind, ErrorRule] = {
    "bad_key": ErrorRule(error=ModelAuthError, sentence="refused the key", remedy="set {key} to a valid key"),
    "not_found": ErrorRule(
        error=ModelNotFound, sentence="was not found", remedy=f"check model.name; {CHECK_ADDRESS}"
    ),
    "redirect": ErrorRule(
        error=ModelNotFound,
        sentence="answers with a redirect, which is not followed",
        remedy="where you trust that address, set model.base_url to it",
    ),
    "web_page": ErrorRule(
        error=ModelNotFound,
        sentence="was not found: its address answers with a web page",
        remedy=CHECK_ADDRESS,
    ),
    "context": ErrorRule(
        error=ContextTooLong,
        sentence="has too little context for the prompt",
        remedy="raise model.context_tokens, or give less",
    ),
    "bad_header": ErrorRule(
        error=ModelAuthError,
        sentence="was not called: the key, or another header, has characters that no header may have",
        remedy="set {key} to the key alone: ASCII, without spaces and line breaks",
    ),
    "request_refused": ErrorRule(error=ModelRequestRejected, sentence="refused the request"),
    "rate_limit": ErrorRule(
        error=ModelRateLimited,
        retry=True,
        sentence="asks to slow down",
        remedy="wait, or set model.requests_per_minute",
    ),
    "quota": ErrorRule(
        error=ModelRateLimited, sentence="has no quota left", remedy="check the account's plan and billing"
    ),
    "overloaded": ErrorRule(
        error=ModelError, retry=True, counts=True, sentence="is overloaded, or still starting"
    ),
    "server_error": ErrorRule(error=ModelError, retry=True, counts=True, sentence="failed"),
    "gateway": ErrorRule(
        error=ReplyLost, counts=True, sentence="may have answered, but a gateway lost the reply"
    ),
    "unreachable": ErrorRule(
        error=ModelUnreachable,
        retry=True,
        counts=True,
        sentence="cannot be reached: no connection is accepted",
        remedy="check that the server runs, model.base_url if you set it, and your proxy if you have one",
    ),
    "unknown_host": ErrorRule(
        error=ModelUnreachable,
        retry=True,
        counts=True,
        sentence="cannot be reached: its host name is unknown",
        remedy="check the host in model.base_url if you set it, and that this machine is online",
    ),
    "tls": ErrorRule(
        error=ModelUnreachable,
        counts=True,
        sentence="cannot be reached: no secure connection (TLS) can be established",
        remedy="check that model.base_url begins with the right one of http and https, this machine's clock, "
        "and SSL_CERT_FILE if the server uses your own certificate authority",
    ),
    "too_long": ErrorRule(
        error=ModelProtocolError,
        counts=True,
        sentence="sends more than a reply of the requested length can be",
        remedy=CHECK_ADDRESS,
    ),
    "bad_encoding": ErrorRule(
        error=ModelProtocolError, sentence="answered in an unsupported encoding", remedy=CHECK_ADDRESS
    ),
    "not_a_reply": ErrorRule(
        error=ModelProtocolError, sentence="answered with something that is not a reply", remedy=CHECK_ADDRESS
    ),
    "connection_closed": ErrorRule(
        error=ReplyLost, counts=True, sentence="closed the connection before it answered"
    ),
    "timeout": ErrorRule(
        error=ModelTimeout, counts=True, sentence="did not answer in time", remedy="raise model.timeout_s"
    ),
    "cut_off": ErrorRule(error=ReplyLost, counts=True, sentence="broke off in the middle of its reply"),
    "unreadable": ErrorRule(
        error=ModelProtocolError, sentence="answered with something unreadable", remedy=CHECK_ADDRESS
    ),
    "unknown": ErrorRule(error=ReplyLost, sentence="failed in an unknown way"),
}
"""Kind of a provider error -> what becomes of it."""
