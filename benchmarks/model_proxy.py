"""A proxy between a program and a chat server that counts calls and tokens, the same way for each program."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SERVER_TIMEOUT_S = 1800.0
"""Limit of one reply. A person may be the one who writes it."""
PASSED_HEADERS = ("Content-Type", "Authorization", "x-api-key", "anthropic-version")
JSON_TYPE = "application/json"
CHARS_PER_TOKEN = 4
"""Usual length of a token, for servers that report no usage, and for a prompt that is not sent yet."""
REFUSAL = (401, b'{"error": {"message": "the tokens of this task are spent", "code": "token_limit"}}')
"""The answer to a call beyond the limit. Clients retry a 429, and some a 400 or 403, but no 401."""

REJECTIONS = (400, 413, 422)
"""Statuses by which a server says that it does not accept a request. Others are a fault of the server or its set-up."""

__all__ = ["Counts", "counting_proxy"]


@dataclass(kw_only=True)
class Counts:
    """The calls that went through a proxy.

    Attributes:
        prompt_tokens: Tokens of all prompts, cached ones included.
        cached_tokens: Prompt tokens that the server took from its cache.
        reply_tokens: Tokens of all replies, thinking included.
        estimated: How many calls had no usage from the server; theirs is estimated from the characters.
        max_tokens: Tokens of prompts and replies after which calls are refused; `None` is no limit.
        max_reply_tokens: Longest reply of a call; `None` is no limit but `max_tokens`.
        refused: How many calls were refused.
        rejected: How many calls the server did not accept, such as a prompt longer than its context.
        failed: How many calls had no answer, or an error that says nothing about the request.
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reply_tokens: int = 0
    estimated: int = 0
    max_tokens: int | None = None
    max_reply_tokens: int | None = None
    refused: int = 0
    rejected: int = 0
    failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def tokens(self) -> int:
        """Return the tokens of all prompts and replies."""
        return self.prompt_tokens + self.reply_tokens

    def limit(self, request: bytes) -> bytes | None:
        """Return a chat request whose reply fits into the tokens that are left, or `None` if none are.

        The length of its prompt is estimated from the characters, so the last call may pass the limit a little.
        """
        if self.max_tokens is None:
            return request
        with self._lock:
            left = self.max_tokens - self.tokens - len(request) // CHARS_PER_TOKEN
            if left <= 0:
                self.refused += 1
                return None
        body = json.loads(request)
        limits = [left, self.max_reply_tokens]
        limits += [body.pop(name, None) for name in ("max_tokens", "max_completion_tokens")]
        return json.dumps({**body, "max_tokens": min(filter(None, limits))}).encode()

    def add(self, request: bytes, response: bytes) -> None:
        """Count one call by the usage in its response, else by its characters."""
        usage = _find_usage(response)
        prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
        reply = usage.get("completion_tokens", usage.get("output_tokens"))
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
        with self._lock:
            self.calls += 1
            if prompt is None or reply is None:
                self.estimated += 1
                prompt, reply = len(request) // CHARS_PER_TOKEN, len(response) // CHARS_PER_TOKEN
            self.prompt_tokens += int(prompt)
            self.reply_tokens += int(reply)
            self.cached_tokens += details.get("cached_tokens") or usage.get("cache_read_input_tokens") or 0


@contextmanager
def counting_proxy(
    server: str, before_call: Callable[[], None] | None = None
) -> Iterator[tuple[str, Counts]]:
    """Yield `(base URL, counts)` of a proxy on the loopback interface.

    Args:
        server: The server's base URL, such as `http://127.0.0.1:8377/v1`.
        before_call: Called before each request to a model is passed on.
    """
    counts, target = Counts(), urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Write no log."""

        def do_GET(self) -> None:
            self._send(*self._fetch(b""))

        def do_POST(self) -> None:
            request = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if before_call is not None:
                before_call()
            limited = counts.limit(request)
            if limited is None:
                self._send(*REFUSAL)
                return
            status, response, kind = self._fetch(limited)
            # The caller may read the counts as soon as it has the response.
            if status == 200:
                counts.add(request, response)
            elif status in REJECTIONS:
                counts.rejected += 1
            else:
                counts.failed += 1
            self._send(status, response, kind)

        def _fetch(self, request: bytes) -> tuple[int, bytes, str]:
            """Pass a request on; return status, body and media type of the response; the status is 502 without one."""
            connect = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
            connection = connect(target.hostname or "", target.port, timeout=SERVER_TIMEOUT_S)
            headers = {name: self.headers[name] for name in PASSED_HEADERS if name in self.headers}
            try:
                connection.request(self.command, self.path, request or None, headers)
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException) as fault:
                message = f"the server does not answer: {fault}"
                return 502, json.dumps({"error": {"message": message}}).encode(), JSON_TYPE
            finally:
                connection.close()
            return response.status, body, response.getheader("Content-Type") or JSON_TYPE

        def _send(self, status: int, body: bytes, kind: str = JSON_TYPE) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}{target.path}", counts
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


def _find_usage(response: bytes) -> dict[str, Any]:
    """Return the usage in a response, complete or streamed; empty if there is none."""
    text = response.decode("utf-8", "replace")
    documents = [text] if text.lstrip().startswith("{") else []
    documents += [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    found: dict[str, Any] = {}
    for document in documents:
        try:
            value = json.loads(document)
        except ValueError:
            continue
        usage = value.get("usage") or (value.get("response") or {}).get("usage") or {}
        found |= {key: count for key, count in usage.items() if count is not None}
    return found
