"""What an answer of a protocol looks like, so that whatever else comes is named and not taken for a reply.

A wrong address, a gateway, a captive portal, a server of another protocol: all of them may answer a question
with HTTP 200. What they say is no reply to be paid for and tried again, but something to be set right.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

Protocol = Literal["OpenAI", "Anthropic", "Ollama"]
WireFaultKind = Literal["redirect", "page", "flood", "encoded", "foreign", "lost"]
QUOTED_CHARS = 200
HOLDS: Mapping[Protocol, str] = {
    "OpenAI": "`choices` with a message in each",
    "Anthropic": "`content` with its parts",
    "Ollama": "a `message`",
}
"""What every answer has."""


class WireFault(Exception):
    """An answer that is refused.

    Args:
        kind: What is wrong with it; a row of the table of faults.
        detail: What was seen, for people.
    """

    def __init__(self, kind: WireFaultKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


async def checked(protocol: Protocol, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body of a successful answer, whose size somebody else bounds.

    Raises:
        WireFault: It is no answer of this protocol.
    """
    rest, began = bytearray(), False
    async for piece in pieces:
        rest += piece
        began = began or bool(piece.strip())
        if protocol == "Ollama" and b"\n" in piece:  # line by line: the last one may be long in coming
            whole, _, begun = bytes(rest).rpartition(b"\n")
            rest = bytearray(begun)
            for line in filter(bytes.strip, whole.split(b"\n")):
                _require(protocol, line)
            yield whole + b"\n"
    if rest.strip() or protocol != "Ollama" or not began:
        _require(protocol, bytes(rest))
    yield bytes(rest)


def _require(protocol: Protocol, text: bytes) -> None:
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        shown = ascii(text[:QUOTED_CHARS].decode("utf-8", "replace")) if text.strip() else "an empty body"
        if text.lstrip().startswith(b"{") and not text.rstrip().endswith(b"}"):
            raise WireFault("lost", f"its JSON has no end: {shown}") from None
        raise WireFault("foreign", f"it is no JSON: {shown}") from None
    complaint = _complaint(protocol, said)
    if complaint:
        raise WireFault("foreign", complaint)


def _complaint(protocol: Protocol, said: Any) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if not isinstance(said, Mapping):
        return f"a JSON {type(said).__name__} in place of an object: {_quoted(said)}"
    error = said.get("error")
    if error:
        message = error.get("message") if isinstance(error, Mapping) else error
        return f"an error in place of a reply: {_quoted(message or error)}"
    if not _is_answer(protocol, said):
        names = ", ".join(ascii(key) for key in list(said)[:8]) or "nothing"
        return f"it has not {HOLDS[protocol]}, but {names[:QUOTED_CHARS]}"
    return ""


def _is_answer(protocol: Protocol, said: Mapping[str, Any]) -> bool:
    if protocol == "Ollama":
        return isinstance(said.get("message"), Mapping)
    if protocol == "Anthropic":
        parts = said.get("content")
        return isinstance(parts, list) and all(isinstance(part, Mapping) for part in parts)
    choices = said.get("choices")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(isinstance(one, Mapping) and isinstance(one.get("message"), Mapping) for one in choices)
    )


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return ascii(text[:QUOTED_CHARS])


FRAME_BYTES = 256 * 1024
"""For what stands around a reply: ids, usage, the headers of a stream, the signature of a thought."""
BYTES_PER_TOKEN = 1024
"""Of a reply's body. A streamed line of Ollama's around one token has about 150 bytes, llama.cpp's 350, a
token with its log probabilities in OpenAI's format about 300; what a server says beyond that is no reply."""
MOST_BYTES = 64 * 1024 * 1024
"""Of any reply, however long a one was asked for."""
ERROR_BYTES = 64 * 1024
"""Of the body of an error, which is only quoted; what follows is not read."""
AUTODETECT = 32 + zlib.MAX_WBITS
"""For zlib: the gzip and the zlib format, told apart by their headers."""
BLANKS = b"\xef\xbb\xbf \t\r\n"
"""Before the first letter of a JSON text; some gateways send them to keep a slow call alive."""
PLAIN = ("", "identity")
PACKED = ("gzip", "x-gzip", "deflate")

_room: ContextVar[int] = ContextVar("_room", default=FRAME_BYTES)
_by_events: ContextVar[bool] = ContextVar("_by_events", default=False)


def reply_bytes(tokens: int, replies: int = 1) -> int:
    """The most bytes of an answer with so many replies of so many tokens."""
    return min(MOST_BYTES, FRAME_BYTES + BYTES_PER_TOKEN * tokens * replies)


@contextlib.contextmanager
def room_for(size_bytes: int, *, by_events: bool = False) -> Iterator[None]:
    """Let the answers to what this task asks meanwhile have so many bytes, decoded.

    Args:
        size_bytes: The most.
        by_events: Whether they were asked for as a stream, with one event for each token.
    """
    room = _room.set(size_bytes)
    events = _by_events.set(by_events)
    try:
        yield
    finally:
        _room.reset(room)
        _by_events.reset(events)


def guard(protocol: Protocol) -> dict[str, Any]:
    """Arguments for an async client of httpx, or of its successor httpx2, that put the guard in place."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy  # slow to load, and nobody is asked yet

    return {
        # A redirected POST is a second paid call, and it carries prompt, code and key to where nobody sent
        # them.
        "follow_redirects": False,
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=())),
        "event_hooks": {"request": [_ask_plainly], "response": [partial(_watch, protocol)]},
    }


async def _ask_plainly(request: Any) -> None:
    request.headers["accept-encoding"] = "identity"  # a reply is small; a compressed one has no honest size


async def _watch(protocol: Protocol, response: Any) -> None:
    """Refuse what is no answer, and count the rest while it comes in.

    Raises:
        WireFault: It is a redirect, a stream that nobody asked for, or encoded in a way that is not known.
    """
    if 300 <= response.status_code < 400:
        raise WireFault("redirect", _target(response))
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in (*PLAIN, *PACKED):
        raise WireFault("encoded", f"content-encoding {encoding[:QUOTED_CHARS]!a}")
    if encoding in PACKED:
        del response.headers["content-encoding"]  # the library's decoder unpacks all of a piece at once
    unpack = zlib.decompressobj(AUTODETECT) if encoding in PACKED else None
    if response.status_code >= 400:
        pieces = _bounded(response.stream, ERROR_BYTES, unpack, cut=True)
        if protocol == "Ollama":
            pieces = _as_object(pieces)
    elif response.headers.get("content-type", "").strip().lower().startswith("text/event-stream"):
        if protocol == "Ollama" or not _by_events.get():  # Ollama streams in lines of JSON
            raise WireFault("foreign", "a stream of events, which nobody asked for")
        pieces = _bounded(response.stream, _room.get(), unpack, cut=False)
    else:
        pieces = checked(protocol, _no_page(_bounded(response.stream, _room.get(), unpack, cut=False)))
    response.stream = _as_stream(response.stream, pieces)


def _target(response: Any) -> str:
    location = response.headers.get("location", "")
    where = ascii(location[:QUOTED_CHARS]) if location else "nowhere"
    return f"HTTP {response.status_code} to {where}"


async def _bounded(stream: Any, most: int, unpack: Any, *, cut: bool) -> AsyncIterator[bytes]:
    """A body, unpacked; one longer than `most` bytes is cut there, or refused.

    Raises:
        WireFault: It is longer, or not in the encoding that it names.
    """
    packed_bytes, room = 0, most
    async for packed in stream:
        packed_bytes += len(packed)
        try:
            piece = packed if unpack is None else unpack.decompress(packed, room + 1)
        except zlib.error as fault:
            raise WireFault("encoded", f"its body is not packed as it says: {fault}") from fault
        # A packed body can be without end and hold nothing, so both sides of it are counted.
        if len(piece) > room or packed_bytes > most:
            if not cut:
                raise WireFault("flood", f"it goes on after {most:,} bytes")
            yield piece[:room]
            return
        room -= len(piece)
        yield piece


async def _no_page(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same, unless it begins as a web page does.

    Raises:
        WireFault: It is a page of HTML.
    """
    began = False
    async for piece in pieces:
        start = b"" if began else piece.lstrip(BLANKS)
        if start.startswith(b"<"):
            raise WireFault("page", ascii(start[:QUOTED_CHARS].decode("utf-8", "replace")))
        began = began or bool(start)
        yield piece


async def _as_object(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body of an error as an object of JSON: Ollama's library breaks on JSON of any other kind."""
    body = b"".join([piece async for piece in pieces])
    try:
        plain = isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        plain = False
    yield body if plain else json.dumps({"error": body.decode("utf-8", "replace")}).encode("ascii")


def _as_stream(stream: Any, pieces: AsyncIterator[bytes]) -> Any:
    """`pieces` as a stream of the library that `stream` is of: httpx and httpx2 each know only their own."""
    base = next(kind for kind in type(stream).__mro__ if kind.__name__ == "AsyncByteStream")
    kind = type(
        "GuardedStream",
        (base,),
        {"__aiter__": lambda _: pieces.__aiter__(), "aclose": lambda _: stream.aclose()},
    )
    return kind()
