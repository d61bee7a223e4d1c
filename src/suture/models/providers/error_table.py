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
    "no_credentials",
    "forbidden",
    "not_found",
    "no_such_model",
    "content_filter",
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
    "failed_reply",
    "client_fault",
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
        doubts_address: Whether the answer may come from something else than the model's server.
    """

    error: type[ModelError]
    retry: bool = False
    counts: bool = False
    sentence: str
    remedy: str = ""
    doubts_address: bool = False


CHECK_ADDRESS = "check model.base_url: is this an {protocol}-compatible address?"
CHECK_NETWORK = "try again; if it stays so, check whether a proxy or a login page answers in its place"

ERROR_TABLE: Mapping[ProviderErrorKind, ErrorRule] = {
    "bad_key": ErrorRule(error=ModelAuthError, sentence="refused the key", remedy="set {key} to a valid key"),
    "no_credentials": ErrorRule(
        error=ModelAuthError,
        sentence="was not called: there are no credentials or no region",
        remedy="set {key} or AWS's usual variables, and AWS_REGION",
    ),
    "forbidden": ErrorRule(
        error=ModelAuthError,
        sentence="refuses access",
        remedy="check what the account of {key} may use: this model, this project, this region",
    ),
    "not_found": ErrorRule(
        error=ModelNotFound, sentence="was not found", remedy="check model.name", doubts_address=True
    ),
    "no_such_model": ErrorRule(error=ModelNotFound, sentence="was not found", remedy="check model.name"),
    "content_filter": ErrorRule(
        error=ModelRequestRejected,
        sentence="did not answer: its provider's content filter stopped the request",
        remedy="rephrase the task, or take another model",
    ),
    "redirect": ErrorRule(
        error=ModelNotFound,
        sentence="answers with a redirect, which is not followed",
        remedy="where you trust that address, set model.base_url to it",
    ),
    "web_page": ErrorRule(
        error=ModelNotFound,
        sentence="was not found: its address answers with a web page",
        doubts_address=True,
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
        doubts_address=True,
    ),
    "bad_encoding": ErrorRule(
        error=ModelProtocolError, sentence="answered in an unsupported encoding", doubts_address=True
    ),
    "not_a_reply": ErrorRule(
        error=ModelProtocolError, sentence="answered with something that is not a reply", doubts_address=True
    ),
    "connection_closed": ErrorRule(
        error=ReplyLost, counts=True, sentence="closed the connection before it answered"
    ),
    "timeout": ErrorRule(
        error=ModelTimeout, counts=True, sentence="did not answer in time", remedy="raise model.timeout_s"
    ),
    "cut_off": ErrorRule(error=ReplyLost, counts=True, sentence="broke off in the middle of its reply"),
    "unreadable": ErrorRule(
        error=ModelProtocolError, sentence="answered with something unreadable", doubts_address=True
    ),
    "failed_reply": ErrorRule(
        error=ReplyLost, counts=True, sentence="reported an error in place of its reply"
    ),
    "client_fault": ErrorRule(
        error=ModelError,
        sentence="was not called: the provider's package failed",
        remedy="report it, with the versions of Suture and of that package",
    ),
    "unknown": ErrorRule(error=ReplyLost, sentence="failed in an unknown way"),
}
"""Kind of a provider error -> what becomes of it."""
