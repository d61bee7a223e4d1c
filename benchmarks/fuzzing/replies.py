"""Replies of a hostile or broken model server, against the interface to models.

Two servers listen on the loopback interface. The first is the model's; it answers each call with a generated
reply. Whatever it says, nothing may reach the second server, memory and time stay bounded, usage is never below
our own count, and the result is a reply or a `ModelError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import resource
import tempfile
import zlib
from pathlib import Path
from typing import Any

from suture.core.settings import load_settings
from suture.errors import ModelError
from suture.models import Message, Model, Sampling, open_model

__all__ = ["ReplyTarget"]

ASKED = "write add(a, b)" * 20
LONGEST_S = 30.0
MOST_GROWN_KB = 200 * 1024
NUMBERS: tuple[Any, ...] = (-1, 0, 7, 2**63, 10**400, 1.5, "12", None, True, [], {}, "NaN")
STATUSES = (
    200,
    200,
    200,
    200,
    201,
    204,
    301,
    302,
    303,
    307,
    308,
    400,
    401,
    403,
    404,
    418,
    429,
    500,
    502,
    503,
    504,
    999,
)
TYPES = (
    "application/json",
    "application/json",
    "text/html",
    "text/event-stream",
    "",
    "application/json; charset=utf-7",
)
CODE = "```python\ndef add(a, b):\n    return a + b\n```"


class ReplyTarget:
    """A model behind HTTP, and the server that answers it."""

    def __init__(self) -> None:
        self._draw = random.Random(0)
        self._strangers = 0
        self._asked = 0
        self._open: contextlib.AsyncExitStack | None = None
        self._cases = 0
        self._folder = self._near = self._far = ""
        self._bomb = _zipped_blanks(300)  # made here, because memory is measured during the calls

    async def try_case(self, draw: random.Random) -> str:
        """See `Target`."""
        model = await self._connected()
        self._draw, self._strangers, self._asked = draw, 0, 0
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        said = "nothing"
        try:
            async with asyncio.timeout(LONGEST_S):
                reply = await model.complete([Message(role="user", content=ASKED)], Sampling(max_tokens=64))
            said = "a reply"
            if reply.prompt_tokens < 1 or not 0 <= reply.completion_tokens < 10**7:
                return f"usage defeats the budget: {reply.prompt_tokens}, {reply.completion_tokens}"
            if reply.text and reply.completion_tokens < 1:
                return f"{len(reply.text)} characters came for no token"
        except ModelError as fault:
            said = str(fault)
            if len(said) > 2000:  # escapes are removed when the text is printed
                return f"an error of {len(said)} characters: {said[:300]!r}"
        except TimeoutError:
            return f"no end in {LONGEST_S} s"
        finally:
            await model.close()
        if self._strangers:
            return f"another origin was asked ({said})"
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown_kb > MOST_GROWN_KB:
            return f"memory grew by more than {MOST_GROWN_KB} KiB ({said})"
        return f"one call became {self._asked} ({said})" if self._asked > 1 else ""

    async def _connected(self) -> Model:
        """Return a new model for each case: after a few faults, an address is not called for some time."""
        if self._open is None:
            self._open = contextlib.AsyncExitStack()
            self._folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="fuzz-replies-"))
            far = await self._open.enter_async_context(
                await asyncio.start_server(self._stranger, "127.0.0.1", 0)
            )
            near = await self._open.enter_async_context(
                await asyncio.start_server(self._serve, "127.0.0.1", 0)
            )
            self._far, self._near = (f"http://127.0.0.1:{s.sockets[0].getsockname()[1]}" for s in (far, near))
        self._cases += 1
        flags = {"model.name": "openai:fuzz", "model.base_url": f"{self._near}/{self._cases}/v1"}
        limits = {"model.timeout_s": 2, "model.retries": 0}
        environ = {"HOME": self._folder, "PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-fuzz"}
        return open_model(load_settings(Path(self._folder), {**flags, **limits}, environ).settings)

    async def _stranger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._strangers += 1
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = (ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError)
        with contextlib.suppress(*ends):  # cancelled: the fuzzer itself ends
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            await reader.readexactly(length)
            self._asked += 1
            async with asyncio.timeout(LONGEST_S):
                await self._answer(writer)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        """Send a generated reply, complete or broken."""
        draw = self._draw
        body = self._body()
        extra = [
            f"Location: {self._far}/v1/chat/completions",
            f"Retry-After: {draw.choice(('86400', '-1', 'x', 'nan'))}",
        ]
        kind = draw.choice(
            ("whole", "whole", "short", "long", "chunks", "endless", "drip", "zipped", "headers")
        )
        if kind == "zipped":
            body = draw.choice((gzip.compress(b" " + body), self._bomb))
            extra.append("Content-Encoding: gzip")
        length = len(body) + {"short": 100, "long": -len(body) // 2}.get(kind, 0)
        framing = (
            "Transfer-Encoding: chunked"
            if kind in ("chunks", "endless", "drip")
            else f"Content-Length: {length}"
        )
        start = f"HTTP/1.1 {draw.choice(STATUSES)} \x1b[31mred"
        head = "\r\n".join((start, f"Content-Type: {draw.choice(TYPES)}", framing, *extra))
        writer.write(head.encode("latin-1") + b"\r\n")
        if kind == "headers":
            writer.write(b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(2000)))
        writer.write(b"\r\n")
        await self._send(writer, kind, body)

    async def _send(self, writer: asyncio.StreamWriter, kind: str, body: bytes) -> None:
        if kind in ("chunks", "endless", "drip"):
            while kind == "endless":
                writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                await writer.drain()
            while kind == "drip":
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(0.2)
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            writer.write(body)
        await writer.drain()

    def _body(self) -> bytes:
        """Return a chat completion with values in wrong places."""
        draw = self._draw
        usage = {
            name: draw.choice(NUMBERS) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        content: Any = draw.choice(
            (CODE, CODE, "", None, 5, [], {"a": 1}, "x" * 10**6, "\ud800", "\x1b]0;title\x07")
        )
        message: Any = {"role": draw.choice(("assistant", "user", 3)), "content": content}
        choice: Any = {
            "index": 0,
            "message": message,
            "finish_reason": draw.choice(("stop", "length", None, 4, "?")),
        }
        said: Any = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "other",
            "choices": [choice],
            "usage": usage,
        }
        said["choices"] = draw.choice(([choice], [choice], [choice], [], None, choice, [None], [choice] * 50))
        said = draw.choice(
            (said, said, said, said, {"error": {"message": "no\x1b[2J", "code": 5}}, [], None, 3, "text")
        )
        text = json.dumps(said).encode()
        return draw.choice(
            (text, text, text, text, text[: len(text) // 2], b"[" * 10**5, b"\xff\xfe" + text, b"", b"<html>")
        )

    async def close(self) -> None:
        """See `Target`."""
        if self._open is not None:
            await self._open.aclose()


def _zipped_blanks(size_mb: int) -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return b"".join(packer.compress(b" " * 2**20) for _ in range(size_mb)) + packer.flush()
