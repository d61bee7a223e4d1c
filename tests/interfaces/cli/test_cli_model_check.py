"""`suture models check` sends three small requests, and shows what works and what Suture will use."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from interfaces.cli.conftest import Cli

COUNTING = "one two three four five"
BOX_THREE = json.dumps({"marbles": 21, "is_odd": True})


def tool_calls(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{name}",
            "type": "function",
            "function": {"name": "file_size", "arguments": json.dumps({"path": f"{name}.txt"})},
        }
        for name in "ab"[:count]
    ]


class ChatServer:
    """Speaks Chat Completions, with the abilities that a test gives it.

    Args:
        calls: Number of tools that it calls in one reply; -1 refuses tools.
        schema: Whether it keeps to a JSON schema.
        cached: Prompt tokens from the cache, from the second request on.
        streams: Whether it streams where the request asks for that.
        thinks: Tokens of thinking in each reply.
        empty: Whether its replies are empty.
    """

    def __init__(self, **abilities: Any) -> None:
        self.abilities = {
            "calls": 2,
            "schema": True,
            "cached": 1_200,
            "streams": True,
            "thinks": 0,
            "empty": False,
        }
        self.abilities |= abilities
        self.requests: list[dict[str, Any]] = []

    def reply(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return (HTTP status, body)."""
        message: dict[str, Any] = {"role": "assistant", "content": COUNTING}
        if request.get("tools") and self.abilities["calls"] < 0:
            return 400, {"error": {"message": "this server does not support tools", "code": 400}}
        if request.get("tools"):
            message = {
                "role": "assistant",
                "content": None,
                "tool_calls": tool_calls(self.abilities["calls"]),
            }
            if not message["tool_calls"]:
                message = {"role": "assistant", "content": "I have no tools."}
        elif request.get("response_format"):
            message["content"] = BOX_THREE if self.abilities["schema"] else "21 marbles"
        if self.abilities["empty"]:
            message = {"role": "assistant", "content": ""}
        cached = self.abilities["cached"] if len(self.requests) > 1 else 0
        usage = {
            "prompt_tokens": 2_500,
            "completion_tokens": 40 + self.abilities["thinks"],
            "total_tokens": 2_540 + self.abilities["thinks"],
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": self.abilities["thinks"]},
        }
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return 200, {**body, "usage": usage}


def as_events(body: dict[str, Any]) -> bytes:
    """Return a body as server-sent events, one word each."""
    (choice,) = body["choices"]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in (message.get("content") or "").split()]
    if calls := message.get("tool_calls"):
        deltas.append({"tool_calls": [{**call, "index": number} for number, call in enumerate(calls)]})
    base = {**body, "object": "chat.completion.chunk"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}
        for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunks += [{**base, "choices": [end], "usage": None}, {**base, "choices": []}]
    return (
        b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    )


@contextmanager
def serving(server: ChatServer) -> Iterator[str]:
    """Serve chat completions; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.requests.append(request)
            status, body = server.reply(request)
            streams = request.get("stream") and status == 200 and server.abilities["streams"]
            content = as_events(body) if streams else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if streams else "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def check(cli: Cli, server: ChatServer, *options: str) -> dict[str, Any]:
    with serving(server) as address:
        result = cli(
            "models", "check", "openai:served", "--json", "--set", f"model.base_url={address}", *options
        )
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def works(answer: dict[str, Any]) -> dict[str, bool | None]:
    return {name: feature["works"] for name, feature in answer["features"].items()}


def test_three_requests_show_what_a_model_can_do(cli: Cli) -> None:
    server = ChatServer(thinks=30)
    answer = check(cli, server)

    assert len(server.requests) == answer["calls"] == 3
    assert all(works(answer).values())
    (suggestion,) = answer["suggestions"]
    assert suggestion.endswith("set model.profile.reasoning = true")
    assert (answer["prompt_tokens"], answer["completion_tokens"]) == (7_500, 210)


def test_what_does_not_work_is_named_with_the_setting_to_change(cli: Cli) -> None:
    answer = check(cli, ChatServer(calls=-1, schema=False, cached=0))
    assert {name for name, value in works(answer).items() if value is False} == {
        "thinking",
        "tools",
        "parallel_tools",
        "structured_output",
    }
    assert works(answer)["prompt_cache"] is None
    assert [line.rpartition("; ")[2] for line in answer["suggestions"]] == [
        "set model.profile.tools = false",
        "set model.profile.structured_output = false",
    ]


def test_a_model_that_calls_one_tool_at_a_time_is_noticed(cli: Cli) -> None:
    answer = check(cli, ChatServer(calls=1))
    assert (works(answer)["tools"], works(answer)["parallel_tools"]) == (True, False)


def test_the_profile_names_the_origin_of_each_value(cli: Cli) -> None:
    answer = check(cli, ChatServer(), "--set", "model.profile.context_tokens=32768")
    profile = answer["profile"]
    assert profile["context_tokens"] == {"value": 32_768, "origin": "setting"}
    assert profile["tools"] == {"value": True, "origin": "provider"}
    assert answer["price"] is None


def test_people_get_two_tables(cli: Cli) -> None:
    with serving(ChatServer(calls=0)) as address:
        result = cli("models", "check", "openai:served", "--set", f"model.base_url={address}")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert any(line.split()[:2] == ["text", "works"] for line in lines)
    assert any(line.startswith("tools ") and " no " in line for line in lines)
    assert any(line.startswith("context ") and "unknown" in line for line in lines)
    assert "set model.profile.tools = false" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["openai:gpt-5"], 3, "needs a key"),
        (["openai:x", "--set", "model.base_url=http://127.0.0.1:9/v1"], 3, "cannot be reached"),
        (["nobody:x"], 2, "unknown provider"),
        (["none"], 2, "nothing to check"),
    ],
)
def test_a_model_that_cannot_be_asked_ends_with_its_exit_code(
    cli: Cli, arguments: list[str], code: int, message: str
) -> None:
    result = cli("models", "check", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_a_provider_that_fails_or_gives_no_text_ends_with_exit_code_6(cli: Cli) -> None:
    with serving(ChatServer(empty=True)) as address:
        result = cli("models", "check", "openai:served", "--set", f"model.base_url={address}")
    assert result.exit_code == 6
    assert "empty reply" in result.stderr
