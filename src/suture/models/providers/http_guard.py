"""The HTTP guard: checks every response of a model's server below the vendor's SDK.

The guard runs in the event hooks of the HTTP client. It follows no redirect, and it counts and unpacks a body
while it arrives, so that an endless body or a decompression bomb is never held in memory. A wrong address, a
gateway, a captive portal or a server of another protocol may answer with HTTP 200: a body that is not an
answer of the protocol is refused, and the call is not repeated. The call's duration is bounded in
`LangChainModel`, and the size of headers by the HTTP library (h11: 100 KiB).
"""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from suture.models.tuning import (
    BODY_BYTES_PER_TOKEN,
    MAX_ERROR_BODY_BYTES,
    MAX_RESPONSE_BYTES,
    RESPONSE_FRAME_BYTES,
)

WireProtocol = Literal["OpenAI", "Anthropic", "Ollama", "Gemini"]
ResponseFault = Literal[
    "redirect", "web_page", "too_long", "bad_encoding", "not_a_reply", "failed_reply", "cut_off"
]
QUOTED_CHARS = 200
"""Characters of a response that are quoted. Chosen by judgement; not measured."""
EXPECTED_CONTENT: Mapping[WireProtocol, str] = {
    "OpenAI": "`choices` with a message in each, or `output`",
    "Anthropic": "`content` with its parts",
    "Ollama": "a `message`",
    "Gemini": "`candidates` or `promptFeedback`",
}
"""What every answer of the protocol contains, for messages."""

COUNT_KEY = re.compile(r"(?:_tokens|[Tt]okenCount|_count)$")
"""The names of token counts in the protocols; the names of their details are longer."""


class ResponseRefused(Exception):
    """A response that the guard refuses; `kind` is a key of the error table, `detail` what was received.

    `status` is the HTTP status that the error in the body should have had; 0 without one.
    """

    def __init__(self, kind: ResponseFault, detail: str, *, status: int = 0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status


async def check_body(protocol: WireProtocol, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the body of a successful answer, or refuse it. The caller bounds its size."""
    unchecked, has_content, has_begun = bytearray(), False, False
    async for piece in pieces:
        unchecked += piece
        has_content = has_content or bool(piece.strip())
        if protocol == "Ollama" and b"\n" in piece:  # pass on complete lines: the last one may take long
            lines, _, last_line = bytes(unchecked).rpartition(b"\n")
            unchecked = bytearray(last_line)
            for line in filter(bytes.strip, lines.split(b"\n")):
                yield _require_answer(protocol, line, has_begun=has_begun) + b"\n"
                has_begun = True
    # After Ollama's last line nothing may be left; the other protocols answer with one object.
    if unchecked.strip() or protocol != "Ollama" or not has_content:
        yield _require_answer(protocol, bytes(unchecked), has_begun=has_begun)
    else:
        yield bytes(unchecked)


def _require_answer(protocol: WireProtocol, text: bytes, *, has_begun: bool) -> bytes:
    """Return a body with usable token counts, or refuse it if it is not an answer of the protocol.

    `has_begun` says whether it continues an answer.
    """
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        quoted = ascii(text[:QUOTED_CHARS].decode("utf-8", "replace")) if text.strip() else "an empty body"
        if text.lstrip().startswith(b"{") and not text.rstrip().endswith(b"}"):
            raise ResponseRefused("cut_off", f"its JSON has no end: {quoted}") from None
        raise ResponseRefused("not_a_reply", f"it is not JSON: {quoted}") from None
    if not isinstance(answer, Mapping):
        raise ResponseRefused(
            "not_a_reply", f"a JSON {type(answer).__name__} in place of an object: {_quoted(answer)}"
        )
    error = answer.get("error")
    if error:
        message = error.get("message") if isinstance(error, Mapping) else error
        # OpenRouter answers with 200 and the provider's status in the body. LM Studio answers with an error that is a
        # bare string at an address that it does not know. In the middle of an answer, Ollama reports as a bare string
        # what would have had the status 500 before it.
        code = error.get("code") if isinstance(error, Mapping) else 500 if has_begun else None
        raise ResponseRefused(
            "failed_reply" if isinstance(error, Mapping) else "not_a_reply",
            f"an error in place of a reply: {_quoted(message or error)}",
            status=code if isinstance(code, int) and 400 <= code < 600 else 0,
        )
    if not _is_answer(protocol, answer):
        names = ", ".join(ascii(key) for key in list(answer)[:8]) or "nothing"
        raise ResponseRefused(
            "not_a_reply", f"it lacks {EXPECTED_CONTENT[protocol]} and has {names[:QUOTED_CHARS]}"
        )
    usable = repair_counts(answer)
    return text if usable == answer else json.dumps(usable).encode("ascii")


def repair_counts(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer, or a chunk of it, with 0 for each token count that is not an integer.

    SDKs fail on such a count, and a paid reply would be lost. No caller mistakes 0 for a real number of tokens.
    """
    usages = {
        key: _repair_usage(answer[key]) for key in ("usage", "usageMetadata") if answer.get(key) is not None
    }
    counts = {key: value for key, value in answer.items() if key in ("prompt_eval_count", "eval_count")}
    return {**answer, **usages, **_repair_usage(counts)}


def _repair_usage(usage: Any) -> dict[str, Any]:
    repaired: dict[str, Any] = {}
    for key, value in usage.items() if isinstance(usage, Mapping) else ():
        if COUNT_KEY.search(key):
            repaired[key] = value if type(value) is int or value is None else 0
        else:
            repaired[key] = _repair_usage(value) if isinstance(value, Mapping) else value
    return repaired


def _is_answer(protocol: WireProtocol, answer: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has what every answer of the protocol has (`EXPECTED_CONTENT`)."""
    if protocol == "Ollama":
        return isinstance(answer.get("message"), Mapping)
    if protocol == "Anthropic":
        parts = answer.get("content")
        return isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts)
    if protocol == "Gemini":
        return isinstance(answer.get("candidates"), list) or isinstance(answer.get("promptFeedback"), Mapping)
    if isinstance(answer.get("output"), list):  # the Responses API
        return True
    choices = answer.get("choices")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(choice, Mapping) for choice in choices)
        and all(isinstance(choice.get("message"), Mapping) for choice in choices)
    )


def _quoted(value: Any) -> str:
    """Return the beginning of a JSON value for a message, in ASCII."""
    text = value if isinstance(value, str) else json.dumps(value)
    return ascii(text[:QUOTED_CHARS])


ZLIB_DETECT_FORMAT = 32 + zlib.MAX_WBITS
"""Tells zlib to detect the gzip and zlib formats by their headers."""
BLANKS = b"\xef\xbb\xbf \t\r\n"
"""Allowed before a JSON document; some gateways send blanks to keep a slow call alive."""
PLAIN_ENCODINGS = ("", "identity")
COMPRESSED_ENCODINGS = ("gzip", "x-gzip", "deflate")


@dataclass
class ExpectedResponse:
    """What may come back for a request, and whether something did.

    Attributes:
        max_bytes: Limit of the decoded body.
        is_stream: Whether the reply is streamed, with one event per token.
        was_received: Whether the head of a response has arrived.
    """

    max_bytes: int = RESPONSE_FRAME_BYTES
    is_stream: bool = False
    was_received: bool = False


_expected: ContextVar[ExpectedResponse | None] = ContextVar("_expected", default=None)


def max_response_bytes(tokens: int, replies: int = 1) -> int:
    """Return the size limit, in bytes, of a response with `replies` replies of `tokens` tokens each."""
    return min(MAX_RESPONSE_BYTES, RESPONSE_FRAME_BYTES + BODY_BYTES_PER_TOKEN * tokens * replies)


@contextlib.contextmanager
def limit_response_bytes(size_bytes: int, *, expects_events: bool = False) -> Iterator[ExpectedResponse]:
    """Limit the decoded size of the responses to requests that this task makes inside the context.

    `expects_events` says whether the replies are streamed, with one event per token.
    """
    expected = ExpectedResponse(max_bytes=size_bytes, is_stream=expects_events)
    token = _expected.set(expected)
    try:
        yield expected
    finally:
        _expected.reset(token)


def guarded_client_options(protocol: WireProtocol) -> dict[str, Any]:
    """Return arguments for an async client of httpx, or of its successor httpx2, that install the guard."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy  # slow to import

    return {
        # A redirected POST is a second paid call, and it would send prompt, code and key to another server.
        "follow_redirects": False,
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no server may set a cookie
        "event_hooks": {"request": [_request_plain_body], "response": [partial(_check_response, protocol)]},
    }


async def _request_plain_body(request: Any) -> None:
    request.headers["accept-encoding"] = "identity"  # the size of a compressed reply says nothing


async def _check_response(protocol: WireProtocol, response: Any) -> None:
    """Refuse a redirect, an unexpected stream and an unknown encoding, and bound the body of any other response."""
    expected = _expected.get() or ExpectedResponse()
    expected.was_received = True
    if 300 <= response.status_code < 400:
        location = response.headers.get("location", "")
        destination = ascii(location[:QUOTED_CHARS]) if location else "nowhere"
        raise ResponseRefused("redirect", f"HTTP {response.status_code} to {destination}")
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in (*PLAIN_ENCODINGS, *COMPRESSED_ENCODINGS):
        raise ResponseRefused("bad_encoding", f"content-encoding {encoding[:QUOTED_CHARS]!a}")
    decompressor = None
    if encoding in COMPRESSED_ENCODINGS:
        del response.headers["content-encoding"]  # the library's decoder would unpack a chunk without limit
        decompressor = zlib.decompressobj(ZLIB_DETECT_FORMAT)
    if response.status_code >= 400:
        pieces = _limit_body(response.stream, MAX_ERROR_BODY_BYTES, decompressor, truncate=True)
        if protocol == "Ollama":
            pieces = _wrap_error_body(pieces)
    else:
        pieces = _limit_body(response.stream, expected.max_bytes, decompressor, truncate=False)
        if response.headers.get("content-type", "").strip().lower().startswith("text/event-stream"):
            if protocol == "Ollama" or not expected.is_stream:  # Ollama streams in lines of JSON
                raise ResponseRefused("not_a_reply", "a stream of events, which was not requested")
        else:
            pieces = check_body(protocol, _refuse_web_page(pieces))
    response.stream = _as_library_stream(response.stream, pieces)


async def _limit_body(
    stream: Any, max_bytes: int, decompressor: Any, *, truncate: bool
) -> AsyncIterator[bytes]:
    """Yield a body, decompressed; one longer than `max_bytes` is truncated or refused."""
    received_bytes, remaining_bytes = 0, max_bytes
    async for chunk in stream:
        received_bytes += len(chunk)
        try:
            piece = chunk if decompressor is None else decompressor.decompress(chunk, remaining_bytes + 1)
        except zlib.error as fault:
            raise ResponseRefused(
                "bad_encoding", f"its body is not in its content-encoding: {fault}"
            ) from fault
        # A compressed body can be endless and unpack to nothing, so both sizes are counted.
        if len(piece) > remaining_bytes or received_bytes > max_bytes:
            if not truncate:
                raise ResponseRefused("too_long", f"the body continues after {max_bytes:,} bytes")
            yield piece[:remaining_bytes]
            return
        remaining_bytes -= len(piece)
        yield piece


async def _refuse_web_page(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the same pieces, but refuse a body that starts like HTML."""
    has_content = False
    async for piece in pieces:
        start = b"" if has_content else piece.lstrip(BLANKS)
        if start.startswith(b"<"):
            raise ResponseRefused("web_page", ascii(start[:QUOTED_CHARS].decode("utf-8", "replace")))
        has_content = has_content or bool(start)
        yield piece


async def _wrap_error_body(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield an error body as a JSON object: Ollama's library crashes on any other JSON."""
    body = b"".join([piece async for piece in pieces])
    try:
        is_object = isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        is_object = False
    yield body if is_object else json.dumps({"error": body.decode("utf-8", "replace")}).encode("ascii")


def _as_library_stream(stream: Any, pieces: AsyncIterator[bytes]) -> Any:
    """Return `pieces` as a stream of the library of `stream`; httpx and httpx2 accept only their own."""
    base = next(cls for cls in type(stream).__mro__ if cls.__name__ == "AsyncByteStream")
    methods = {"__aiter__": lambda _: pieces.__aiter__(), "aclose": lambda _: stream.aclose()}
    return type("GuardedStream", (base,), methods)()
