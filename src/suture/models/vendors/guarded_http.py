"""What a model's server may do to us over HTTP: answer once, in bounded size, and send us nowhere else.

The guard sits in the event hooks of the HTTP client that a vendor's SDK is given, below every SDK: the body
of an answer is counted while it comes in, unpacked, so neither an endless one nor a bomb is ever held. Time
is bounded around the whole call (see `LangChainModel`), and headers by the HTTP library (h11: 100 KiB).
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from suture.models.vendors.answer_shapes import QUOTED_CHARS, Protocol, WireFault, checked

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
