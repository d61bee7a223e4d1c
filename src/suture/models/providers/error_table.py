"""The error table: for each kind of provider error, our exception, whether to retry, and the message.

Parameters that a server refuses, learned from its errors: each is dropped, and the call is sent again.

No table of models can be complete: servers differ, and the same server changes with each model. A refused request
costs nothing. What was learned is remembered for the model in this process.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
from suture.models.chat_model import RequestParameter
from suture.models.tuning import MAX_SCANNED_CHARS, MIN_REPLY_LIMIT_TOKENS

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
        sentence: Text for people; it follows the model's name.
        remedy: What the user can do; `{protocol}` and `{key}` are filled in for the model.
        doubts_address: Whether the answer may come from something other than the model's server.
    """

    error: type[ModelError]
    retry: bool = False
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
    "overloaded": ErrorRule(error=ModelError, retry=True, sentence="is overloaded, or still starting"),
    "server_error": ErrorRule(error=ModelError, retry=True, sentence="failed"),
    "gateway": ErrorRule(error=ReplyLost, sentence="may have answered, but a gateway lost the reply"),
    "unreachable": ErrorRule(
        error=ModelUnreachable,
        retry=True,
        sentence="cannot be reached: no connection is accepted",
        remedy="check that the server runs, model.base_url if you set it, and your proxy if you have one",
    ),
    "unknown_host": ErrorRule(
        error=ModelUnreachable,
        retry=True,
        sentence="cannot be reached: its host name is unknown",
        remedy="check the host in model.base_url if you set it, and that this machine is online",
    ),
    "tls": ErrorRule(
        error=ModelUnreachable,
        sentence="cannot be reached: no secure connection (TLS) can be established",
        remedy="check that model.base_url begins with the right one of http and https, this machine's clock, "
        "and SSL_CERT_FILE if the server uses your own certificate authority",
    ),
    "too_long": ErrorRule(
        error=ModelProtocolError,
        sentence="sends more than a reply of the requested length can be",
        doubts_address=True,
    ),
    "bad_encoding": ErrorRule(
        error=ModelProtocolError, sentence="answered in an unsupported encoding", doubts_address=True
    ),
    "not_a_reply": ErrorRule(
        error=ModelProtocolError, sentence="answered with something that is not a reply", doubts_address=True
    ),
    "connection_closed": ErrorRule(error=ReplyLost, sentence="closed the connection before it answered"),
    "timeout": ErrorRule(
        error=ModelTimeout, sentence="did not answer in time", remedy="raise model.timeout_s"
    ),
    "cut_off": ErrorRule(error=ReplyLost, sentence="broke off in the middle of its reply"),
    "unreadable": ErrorRule(
        error=ModelProtocolError, sentence="answered with something unreadable", doubts_address=True
    ),
    "failed_reply": ErrorRule(error=ReplyLost, sentence="reported an error in place of its reply"),
    "client_fault": ErrorRule(
        error=ModelError,
        sentence="was not called: the provider's package failed",
        remedy="report it, with the versions of Suture and of that package",
    ),
    "unknown": ErrorRule(error=ReplyLost, sentence="failed in an unknown way"),
}
"""Kind of a provider error -> how it is handled."""


REFUSING_STATUSES = (400, 404, 405, 422, 500, 501)
"""Statuses of a refused parameter. OpenRouter says 404 if no endpoint has a feature, llama.cpp's server 500 if a
chat template refuses a role."""
NAMES: Mapping[RequestParameter, re.Pattern[str]] = {
    "temperature": re.compile(r"\btemperature\b|\btop_p\b"),
    "seed": re.compile(r"\bseed\b"),
    "stop": re.compile(r"\bstop(?:_sequences?|Sequences)?\b(?!\s*reason)"),
    "logprobs": re.compile(r"\b(?:top_)?logprobs\b"),
    "response_format": re.compile(
        r"response_format|json_schema|output_format|responseSchema|response_schema|response_mime_type|grammar"
        r"|structured outputs?|tool_choice forces"
    ),
    "tools": re.compile(
        r"\btools?\b(?!_choice forces)|enable-auto-tool-choice|function calling|function declarations?"
    ),
    "system_role": re.compile(
        r"system (?:role|message|instruction|prompt)|role:? ?['\"`]?system|['\"`]system['\"`]|developer instruction"
        r"|roles must alternate",
        re.IGNORECASE,
    ),
    "stream_options": re.compile(r"stream_options|include_usage"),
    "max_tokens": re.compile(r"\bmax_(?:completion_)?tokens\b"),
    "reasoning_effort": re.compile(r"reasoning[._]effort|\beffort\b|thinking_level|thinking_budget"),
    "chat_completions": re.compile(
        r"v1/responses|responses api|not a chat model|not supported in the v1/chat/completions", re.IGNORECASE
    ),
}
"""Matches the names of refused parameters in errors."""
REFUSALS = re.compile(
    r"unsupported|not support|n[o']t (?:be )?(?:accept|allow|permit|available|enabled|implement|valid)|unavailable"
    r"|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields?|_forbidden)|extra_forbidden|forbidden|deprecated"
    r"|no longer|invalid|incompatible|no endpoints? found|requires? |must |only |can(?:no|')t|use 'max|not a chat"
    r"|should be|out of range|less than|does not",
    re.IGNORECASE,
)
"""Matches what an error says about something that it refuses."""
TOKEN_LIMIT = re.compile(r"\bmax_?(?:completion_|output_)?tokens\b|max_output_tokens|maxOutputTokens")
INTEGER = re.compile(r"(?<![\w.])\d[\d,]*(?![\w.]*\d)")


@dataclass
class LearnedRefusals:
    """What one model's server is known to refuse.

    Attributes:
        parameters: What it refuses; for `max_tokens` that name of the limit, for `chat_completions` that protocol.
        max_reply_tokens: The longest reply that may be requested, in tokens; `None` if no limit was met.
    """

    parameters: set[RequestParameter] = field(default_factory=set)
    max_reply_tokens: int | None = None


_learned: dict[tuple[str, str], LearnedRefusals] = {}
_lock = threading.Lock()


def learned_refusals(address: str, model: str) -> LearnedRefusals:
    """Return what is known in this process about a model at an address; callers add to it."""
    with _lock:
        return _learned.setdefault((address, model), LearnedRefusals())


def forget_refusals() -> None:
    """Forget everything, as in a new process."""
    with _lock:
        _learned.clear()


def find_refused_parameter(
    status: int, text: str, named: str, sent: Collection[RequestParameter]
) -> RequestParameter | None:
    """Return the parameter of a request that an error refuses, or `None`.

    Args:
        text: The error's message and body.
        named: The parameter that the body names in its own field, as OpenAI's `param` does; else empty.
        sent: The parameters that the request had.
    """
    if status not in REFUSING_STATUSES:
        return None
    for where in filter(None, (named, text)):
        for parameter, pattern in NAMES.items():
            if parameter in sent and pattern.search(where) and REFUSALS.search(text):
                return parameter
    return None


def find_reply_limit(status: int, text: str, max_tokens: int) -> int | None:
    """Return the longest reply in tokens that an error allows, if it says that `max_tokens` is too many."""
    if status not in (400, 422) or not TOKEN_LIMIT.search(text):
        return None
    numbers = [int(number.replace(",", "")) for number in INTEGER.findall(text)]
    limits = [
        number for number in numbers if MIN_REPLY_LIMIT_TOKENS <= number < max_tokens and number != status
    ]
    # The number that was sent is usually quoted, too; the largest below it is the limit.
    limit = max(limits, default=None)
    return limit - 1 if limit and "exclusive" in text else limit


def describe_error(fault: BaseException) -> tuple[str, str]:
    """Return `(text, named parameter)` of a vendor's exception and its causes."""
    texts, named = [], ""
    cause: BaseException | None = fault
    while cause is not None:
        body: Any = getattr(cause, "body", None) or getattr(cause, "details", None)
        texts.append(f"{cause} {body or ''}")
        inner = body.get("error", body) if isinstance(body, Mapping) else {}
        named = named or str((inner.get("param") if isinstance(inner, Mapping) else "") or "")
        cause = cause.__cause__
    return " ".join(texts)[:MAX_SCANNED_CHARS], named
