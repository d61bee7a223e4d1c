"""Bodies of replies and errors as each provider's documentation shows them, for the table of replies."""

from __future__ import annotations

import json
from typing import Any

from models.openai_stub import EVENT_STREAM, Answer


def openai_chat(message: dict[str, Any], *, finish: str | None = "stop", **fields: Any) -> Answer:
    """Return an answer of Chat Completions."""
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return Answer(body={"id": "1", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice],
                        "usage": usage, **fields})  # fmt: skip


def openai_call(name: str, arguments: str, call_id: str | None = "c1") -> dict[str, Any]:
    """Return a call of a tool in Chat Completions."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def openai_stream(*deltas: dict[str, Any], finish: str = "stop", usage: bool = True) -> Answer:
    """Return a streamed answer of Chat Completions."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "stub"}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        counts = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        chunks.append({**head, "choices": [], "usage": counts})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Answer(body="".join((*lines, "data: [DONE]\n\n")).encode(), headers=EVENT_STREAM)


def call_delta(
    index: int, arguments: str, name: str | None = None, call_id: str | None = None
) -> dict[str, Any]:
    """Return a part of a streamed call of a tool."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    call: dict[str, Any] = {"index": index, "function": function}
    return {"tool_calls": [call | ({"id": call_id, "type": "function"} if call_id else {})]}


def openai_error(status: int, message: str, **fields: Any) -> Answer:
    """Return an error of OpenAI's protocol."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}
    return Answer(status=status, body={"error": error})


RESPONSES_ONLY = openai_error(
    404, "This model is only supported in v1/responses and not in v1/chat/completions.", param="model"
)


def openai_response(*items: dict[str, Any], **fields: Any) -> Answer:
    """Return an answer of the Responses API."""
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 18,
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "stub",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": list(items),
        "usage": usage,
    }
    return Answer(body={**body, **fields})


def output_text(text: str) -> dict[str, Any]:
    """Return a message item of the Responses API."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def function_call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    """Return a call of a tool of the Responses API."""
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name,
            "arguments": arguments, "status": "completed"}  # fmt: skip


REASONING_ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "abc",
}


def anthropic(*blocks: dict[str, Any], stop: str = "end_turn", **usage: Any) -> Answer:
    """Return an answer of Anthropic."""
    return Answer(body={"id": "msg_1", "type": "message", "role": "assistant", "model": "stub",
                        "content": list(blocks), "stop_reason": stop, "stop_sequence": None,
                        "usage": {"input_tokens": 11, "output_tokens": 7, **usage}})  # fmt: skip


def event_stream(*events: dict[str, Any]) -> Answer:
    """Return a stream of events with their own types, as Anthropic, Gemini and the Responses API send it."""
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return Answer(body="".join(lines).encode(), headers=EVENT_STREAM)


def anthropic_stream(*deltas: tuple[dict[str, Any], dict[str, Any]], stop: str = "end_turn") -> Answer:
    """Return a streamed answer of Anthropic, each of whose blocks begins and goes on with one delta."""
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub"}
    message |= {"content": [], "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(deltas):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": stop, "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": ending, "usage": {"input_tokens": 11, "output_tokens": 7}}
    )
    return event_stream(*events, {"type": "message_stop"})


def text_block(text: str) -> dict[str, Any]:
    """Return a text block of Anthropic."""
    return {"type": "text", "text": text}


def anthropic_error(status: int, kind: str, message: str) -> Answer:
    """Return an error of Anthropic."""
    return Answer(status=status, body={"type": "error", "error": {"type": kind, "message": message}})


def gemini(*parts: dict[str, Any], finish: str = "STOP", **fields: Any) -> Answer:
    """Return an answer of Gemini."""
    usage = {
        "promptTokenCount": 11,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 18,
    }
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return Answer(
        body={"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro", **fields}
    )


def gemini_error(status: int, code: str, message: str, *details: dict[str, Any]) -> Answer:
    """Return an error of Gemini."""
    error = {"code": status, "message": message, "status": code, "details": list(details)}
    return Answer(status=status, body={"error": error}, headers={})


def bedrock(*blocks: dict[str, Any], stop: str = "end_turn") -> Answer:
    """Return an answer of Bedrock's Converse API."""
    return Answer(body={"output": {"message": {"role": "assistant", "content": list(blocks)}}, "stopReason": stop,
                        "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
                        "metrics": {"latencyMs": 1}})  # fmt: skip


def bedrock_error(status: int, kind: str, message: str) -> Answer:
    """Return an error of Bedrock."""
    return Answer(status=status, body={"message": message}, headers={"x-amzn-errortype": kind})


def ollama(message: dict[str, Any], *, done: str = "stop") -> Answer:
    """Return an answer of Ollama, in its lines of JSON."""
    head = {"model": "stub", "created_at": "2026-01-01T00:00:00Z"}
    lines = [
        {**head, "message": {"role": "assistant", "content": "", **message}, "done": False},
        {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": done,
         "prompt_eval_count": 11, "eval_count": 7},
    ]  # fmt: skip
    return Answer(body=b"".join(json.dumps(line).encode() + b"\n" for line in lines))
