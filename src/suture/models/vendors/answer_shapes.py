"""What an answer of a protocol looks like, so that whatever else comes is named and not taken for a reply.

A wrong address, a gateway, a captive portal, a server of another protocol: all of them may answer a question
with HTTP 200. What they say is no reply to be paid for and tried again, but something to be set right.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
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
