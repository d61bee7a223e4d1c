"""Classification of vendors' exceptions: which kind of the error table each one is.

Each SDK has its own exception tree, and none of them is imported here. They are recognised by what they share: an
HTTP status, class names, the messages of the vendors' errors, and the httpx exceptions that they wrap.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping

from suture.models.providers.error_table import ProviderErrorKind, describe_error
from suture.models.providers.http_guard import ResponseRefused

STATUSES: Mapping[int, ProviderErrorKind] = {
    401: "bad_key",
    402: "quota",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    408: "timeout",
    409: "server_error",
    413: "context",
    424: "server_error",
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
"""HTTP status -> kind of error.

409 asks to try again, 424 is Bedrock's for a model that failed, and 501 means that no such function exists. 52x
are Cloudflare's, 529 is Anthropic's.
"""
CLIENT_FAULTS = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""Exceptions of SDKs on a body that does not follow the wire format, or on arguments that they do not know."""
NO_QUOTA_PHRASES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "current quota",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "arrearage",
)
"""Phrases with which OpenAI, Anthropic, Gemini, DeepSeek, OpenRouter and Model Studio say that an account is used
up."""
CONTENT_FILTER_PHRASES = (
    "content_filter",
    "content management policy",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "invalid_prompt",
    "violating our usage policy",
    "data_inspection_failed",
    "input was flagged",
    "requires moderation",
    "prohibited content",
)
"""Phrases with which Azure, OpenAI, Model Studio and OpenRouter refuse a prompt because of its content."""
BAD_KEY_PHRASES = (
    "api key",
    "api_key",
    "apikey",
    "x-api-key",
    "credentials",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "security token",
    "signature",
)
"""Phrases in an error about the key itself; Gemini says 400 for a wrong one, others 403."""
NO_CREDENTIALS_NAMES = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "NoRegionError",
    "TokenRetrievalError",
)
"""Exceptions of botocore before it sends anything."""


def classify_provider_error(fault: Exception, *, was_answered: bool = True) -> ProviderErrorKind:
    """Return the kind of a vendor's exception in the error table.

    Args:
        was_answered: Whether the server had answered, so that an SDK may have stumbled over the answer.
    """
    refusal = find_guard_refusal(fault)
    if refusal is not None:
        return _classify_status(refusal.status, refusal) if refusal.status else refusal.kind
    class_names = {cls.__name__ for cause in walk_causes(fault) for cls in type(cause).__mro__}
    if "ContextOverflowError" in class_names:
        return "context"
    if (status := find_status(fault)) > 0:
        return _classify_status(status, fault)
    if (connection_failure := find_connection_failure(fault)) is not None:
        return connection_failure[0]
    if (named_kind := _classify_names(fault, class_names)) is not None:
        return named_kind
    if isinstance(fault, CLIENT_FAULTS):
        return "unreadable" if was_answered else "client_fault"
    return "unknown"


def _classify_names(fault: Exception, class_names: set[str]) -> ProviderErrorKind | None:
    """Return the kind of an exception without a status, from the names of its and its causes' classes."""
    if class_names & set(NO_CREDENTIALS_NAMES):
        return "no_credentials"
    if any("Timeout" in name for name in class_names):
        return "timeout"
    if "LocalProtocolError" in class_names or "UnicodeEncodeError" in class_names:
        return "bad_header"
    if "RemoteProtocolError" in class_names:
        messages = " ".join(str(cause) for cause in walk_causes(fault)).lower()
        if "without sending a response" in messages:
            return "connection_closed"
        if "closed" not in messages:
            return "not_a_reply"  # the response is not HTTP
    # A failure here occurs after the connection was made: the server broke off.
    if class_names & {"OSError", "APIConnectionError", "TransportError"}:
        return "cut_off"
    if "APIError" in class_names:  # an event of a stream
        return "context" if _names_too_long_prompt(describe_error(fault)[0].lower()) else "failed_reply"
    return None


def find_guard_refusal(fault: BaseException) -> ResponseRefused | None:
    """Return the refusal of the HTTP guard among an exception and its causes, or `None`."""
    return next((cause for cause in walk_causes(fault) if isinstance(cause, ResponseRefused)), None)


def find_status(fault: BaseException) -> int:
    """Return the HTTP status in a vendor's exception or its causes; 0 without one."""
    return next((status for cause in walk_causes(fault) if (status := _own_status(cause)) > 0), 0)


def _own_status(fault: BaseException) -> int:
    response = getattr(fault, "response", None)
    if isinstance(response, Mapping):  # of botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        # Google's SDK has `code`. Ollama's reports -1 without a response.
        status = getattr(fault, "status_code", None) or getattr(fault, "code", None)
    return status if isinstance(status, int) else 0


def _classify_status(status: int, fault: Exception) -> ProviderErrorKind:
    """Return the kind of an error with an HTTP status, by the status and the message."""
    # In OpenAI's SDK, `str(fault)` has only the message; code and type are attributes.
    text = f"{fault} {getattr(fault, 'code', '')} {getattr(fault, 'type', '')}".lower()
    text_with_body = f"{text} {describe_error(fault)[0]}".lower()
    if status < 400:  # an error event in a stream that had begun
        return "failed_reply"
    if status in (400, 403, 429) and any(phrase in text_with_body for phrase in NO_QUOTA_PHRASES):
        # Gemini says "current quota" also of the limit of a minute, and then how long to wait.
        is_short = "retrydelay" in text_with_body and "perday" not in text_with_body
        return "rate_limit" if is_short else "quota"
    if status in (400, 413, 422) and _names_too_long_prompt(text):
        return "context"
    if status in (400, 403) and any(phrase in text_with_body for phrase in CONTENT_FILTER_PHRASES):
        return "content_filter"
    if status == 403 and any(phrase in text_with_body for phrase in BAD_KEY_PHRASES):
        return "bad_key"
    if status == 400 and re.search(
        r"api.?key.?(?:not valid|invalid)|(?:invalid|incorrect) api.?key", text_with_body
    ):
        return "bad_key"
    if status == 400 and "location is not supported" in text_with_body:
        return "forbidden"
    if status == 404 and re.search(r"\bmodel\b|\bmodels/|no endpoints found", text):
        return "no_such_model"
    return STATUSES.get(status, "server_error" if status >= 500 else "request_refused")


def _names_too_long_prompt(text: str) -> bool:
    names_prompt = "context" in text or "prompt" in text or "input" in text
    return names_prompt and any(word in text for word in ("exceed", "length", "window", "size", "too long"))


def walk_causes(fault: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its explicit causes, as SDKs wrap httpx."""
    cause: BaseException | None = fault
    while cause is not None:
        yield cause
        cause = cause.__cause__


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
