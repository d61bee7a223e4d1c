"""A local HTTP server that returns prepared chat completions."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

__all__ = ["EVENT_STREAM", "Answer", "OpenAIStub", "chat_completion"]


EVENT_STREAM = {"content-type": "text/event-stream", "retry-after-ms": "1"}
"""Headers of a streamed reply."""


def chat_completion(text: str, *, finish: str = "stop", usage: bool = True) -> dict[str, Any]:
    """Return the body of a good answer."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
    }
    if usage:
        body["usage"] = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return body


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, or none with `silent`. `retry-after-ms: 1` makes the client's retries immediate."""

    body: dict[str, Any] | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})
    cut: bool = False
    slow: bool = False
    silent: bool = False


class OpenAIStub:
    """Answers each POST with the next of `answers`, the last one repeatedly, and records the request.

    Args:
        port: The port of the server; 0 chooses a free one.

    Attributes:
        pages: The JSON value that answers a GET, by path; and a POST to `/api/show`, where Ollama describes a
            model.
    """

    def __init__(self, port: int = 0) -> None:
        self.answers: deque[Answer] = deque([Answer(body=chat_completion("hello"))])
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.pages: dict[str, Any] = {}
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def answer(self, *answers: Answer) -> None:
        """Replace the answers."""
        self.answers = deque(answers)

    def __enter__(self) -> OpenAIStub:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/api/show":
                    self.do_GET()
                    return
                stub.requests.append(request)
                stub.keys.append(self.headers.get("authorization", ""))
                stub.paths.append(self.path)
                answer = stub.answers.popleft() if len(stub.answers) > 1 else stub.answers[0]
                if answer.slow:
                    stub._closing.wait()
                    return
                if answer.silent:
                    return  # HTTP/1.0: the connection is closed
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if "content-type" not in answer.headers:
                    self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if answer.cut else body)

            def do_GET(self) -> None:
                body = json.dumps(stub.pages.get(self.path)).encode()
                self.send_response(200 if self.path in stub.pages else 404)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Do not log requests."""

        return Handler
