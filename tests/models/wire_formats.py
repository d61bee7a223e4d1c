"""What each provider sends according to its documentation: replies, tool calls, errors and unusual answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from models.openai_stub import Answer, chat_completion

__all__ = ["FORMATS", "WireFormat"]

Call = tuple[str, dict[str, Any]]
"""A tool's name and the arguments of its call."""


@dataclass(frozen=True, kw_only=True)
class WireFormat:
    """The protocol of one provider.

    Attributes:
        name: The model to call, as `provider:model`.
        path: The path of its calls below the stub's address.
        base_path: What follows the stub's address in `model.base_url`.
        reply: Returns the body of a reply with a text and a finish reason.
        error: Returns the body of an error with a message.
        calls: Returns the body of a reply with a text and calls of tools, each a name and its arguments.
        read_calls: Returns each call in the messages of a request, as name, arguments and the text of its result.
        empty: A body without content.
        empty_is_foreign: Whether such a body is no valid answer of this provider.
        finish_reasons: The provider's finish reasons of a complete and of a cut reply.
        read_prompt: Returns the messages and the token limit of a request.
        sends_key: Whether the key is sent as a bearer token.
    """

    name: str
    path: str
    base_path: str
    reply: Callable[[str, str], dict[str, Any] | bytes]
    error: Callable[[str], dict[str, Any]]
    calls: Callable[..., dict[str, Any] | bytes]
    read_calls: Callable[[list[dict[str, Any]]], list[tuple[str, Any, str]]]
    empty: dict[str, Any] | bytes
    empty_is_foreign: bool
    finish_reasons: tuple[str, str]
    read_prompt: Callable[[dict[str, Any]], tuple[Any, Any]]
    sends_key: bool = True

    def answer(self, text: str = "hello", *, cut_short: bool = False) -> Answer:
        """A good answer."""
        return Answer(body=self.reply(text, self.finish_reasons[cut_short]))

    def fault(self, status: int, message: str, **headers: str) -> Answer:
        """An error of this status; `retry-after-ms: 1` avoids a wait before a retry."""
        return Answer(body=self.error(message), status=status, headers={"retry-after-ms": "1", **headers})


def _openai_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "some_error", "code": None}}


def _openai_calls(text: str, *calls: Call) -> dict[str, Any]:
    body = chat_completion("", finish="tool_calls")
    body["choices"][0]["message"] |= {
        "content": text or None,
        "tool_calls": [
            {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(inputs)},
            }
            for number, (name, inputs) in enumerate(calls, 1)
        ],
    }
    return body


def _read_openai_calls(messages: list[dict[str, Any]]) -> list[tuple[str, Any, str]]:
    results = {each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"}
    calls = [call for each in messages for call in each.get("tool_calls") or ()]
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), results[call["id"]])
        for call in calls
    ]


def _anthropic_calls(text: str, *calls: Call) -> dict[str, Any]:
    blocks = [
        {"type": "tool_use", "id": f"c{number}", "name": name, "input": inputs}
        for number, (name, inputs) in enumerate(calls, 1)
    ]
    texts = [{"type": "text", "text": text}] if text else []
    return _anthropic_reply(*texts, *blocks, stop_reason="tool_use")


def _read_anthropic_calls(messages: list[dict[str, Any]]) -> list[tuple[str, Any, str]]:
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    results = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    results = {
        call_id: text if isinstance(text, str) else "".join(part["text"] for part in text)
        for call_id, text in results.items()
    }
    return [
        (block["name"], block["input"], results[block["id"]])
        for block in blocks
        if block["type"] == "tool_use"
    ]


def _read_ollama_calls(messages: list[dict[str, Any]]) -> list[tuple[str, Any, str]]:
    # Ollama has no ids: results follow their calls in the same order.
    results = [each["content"] for each in messages if each["role"] == "tool"]
    functions = [call["function"] for each in messages for call in each.get("tool_calls") or ()]
    return [
        (function["name"], function["arguments"], result)
        for function, result in zip(functions, results, strict=True)
    ]


def _ollama_calls(text: str, *calls: Call) -> bytes:
    tool_calls = [{"function": {"name": name, "arguments": inputs}} for name, inputs in calls]
    return _ollama_lines({"content": text, "tool_calls": tool_calls}, "stop")


def _anthropic_reply(*blocks: dict[str, Any], stop_reason: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _ollama_lines(message: dict[str, Any], done_reason: str | None) -> bytes:
    metadata = {"model": "stub", "created_at": "2026-01-01T00:00:00Z"}
    lines = [{**metadata, "message": {"role": "assistant", "content": "", **message}, "done": False}]
    if done_reason is not None:
        last = {
            **metadata,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": done_reason,
        }
        lines.append({**last, "prompt_eval_count": 11, "eval_count": 7})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _openai(name: str) -> WireFormat:
    return WireFormat(
        name=name,
        path="/v1/chat/completions",
        base_path="/v1",
        reply=lambda text, finish: chat_completion(text, finish=finish),
        error=_openai_error,
        calls=_openai_calls,
        read_calls=_read_openai_calls,
        empty={**chat_completion(""), "choices": []},
        empty_is_foreign=True,
        finish_reasons=("stop", "length"),
        read_prompt=lambda sent: (sent["messages"], sent["max_tokens"]),
    )


FORMATS = (
    _openai("openai:stub"),
    _openai("qwen:stub"),
    WireFormat(
        name="anthropic:stub",
        path="/v1/messages",
        base_path="",
        reply=lambda text, finish: _anthropic_reply({"type": "text", "text": text}, stop_reason=finish),
        error=lambda message: {"type": "error", "error": {"type": "some_error", "message": message}},
        calls=_anthropic_calls,
        read_calls=_read_anthropic_calls,
        empty=_anthropic_reply(stop_reason="end_turn"),
        empty_is_foreign=False,
        finish_reasons=("end_turn", "max_tokens"),
        read_prompt=lambda sent: (sent["messages"], sent["max_tokens"]),
    ),
    WireFormat(
        name="ollama:stub",
        path="/api/chat",
        base_path="",
        reply=lambda text, finish: _ollama_lines({"content": text}, finish),
        error=lambda message: {"error": message},
        calls=_ollama_calls,
        read_calls=_read_ollama_calls,
        empty=_ollama_lines({}, "stop"),
        empty_is_foreign=False,
        finish_reasons=("stop", "length"),
        read_prompt=lambda sent: (
            [{"role": m["role"], "content": m["content"]} for m in sent["messages"]],
            sent["options"]["num_predict"],
        ),
        sends_key=False,
    ),
)
"""Every provider that is reached over HTTP."""
