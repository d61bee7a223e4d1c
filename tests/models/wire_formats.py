"""What each provider sends according to its documentation: replies, tool calls, errors and unusual answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from models.openai_stub import Answer, chat_completion

__all__ = ["FORMATS", "WireFormat"]


@dataclass(frozen=True, kw_only=True)
class WireFormat:
    """The protocol of one provider.

    Attributes:
        name: The model to call, as `provider:model`.
        path: The path of its calls below the stub's address.
        base_path: What follows the stub's address in `model.base_url`.
        reply: Returns the body of a reply with a text and a finish reason.
        error: Returns the body of an error with a message.
        tool_call: A body that calls a tool without arguments.
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
    tool_call: dict[str, Any] | bytes
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


def _openai_call() -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = chat_completion("", finish="tool_calls")
    body["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
    return body


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
        tool_call=_openai_call(),
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
        tool_call=_anthropic_reply(
            {"type": "tool_use", "id": "c", "name": "look", "input": {}}, stop_reason="tool_use"
        ),
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
        tool_call=_ollama_lines({"tool_calls": [{"function": {"name": "look", "arguments": {}}}]}, "stop"),
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
