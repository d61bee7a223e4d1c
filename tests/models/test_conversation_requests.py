"""What a conversation sends again with each turn: marks for the cache, and the provider's own earlier answers."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from pydantic import SecretStr

from models import reply_bodies as bodies
from models.openai_stub import Answer, OpenAIStub
from models.raw_server import RawServer, response_head
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.models import Message, Model, Sampling, ToolDeclaration, listen_to_replies, open_model

LOOK = ToolDeclaration(name="look", description="looks around", inputs={"at": "where"})
WITH_TOOLS = Sampling(tools=(LOOK,))
PROMPT = (Message(role="system", content="be brief"), Message(role="user", content="hi"))
MARK = {"type": "ephemeral"}


def open_stub_model(name: str, address: str) -> Model:
    key = SecretStr("k")
    return open_model(
        Settings(
            model=ModelSettings(name=name, base_url=address, retries=0),
            keys=KeySettings(openai=key, anthropic=key, deepseek=key),
        )
    )


async def look_twice(model: Model, stub: OpenAIStub, first: Answer, second: Answer) -> dict[str, Any]:
    """Let a model call a tool, send the result, and return the last request."""
    stub.answer(first)
    reply = await model.complete(PROMPT, WITH_TOOLS)
    turns = (
        *PROMPT,
        Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls),
        *(Message(role="tool", content="a tree", tool_call_id=call.id) for call in reply.tool_calls),
    )
    stub.answer(second)
    await model.complete(turns, WITH_TOOLS)
    await model.close()
    return stub.requests[-1]


def count_marks(value: Any) -> int:
    """Return how many marks for Anthropic's cache a request has."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(count_marks, value.values()))
    return sum(map(count_marks, value)) if isinstance(value, list) else 0


async def test_stable_prefixes_are_marked_for_anthropics_cache(stub: OpenAIStub) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "a"}}
    request = await look_twice(
        open_stub_model("anthropic:claude-stub", stub.address),
        stub,
        bodies.anthropic(call, stop="tool_use"),
        bodies.anthropic(bodies.text_block("done")),
    )
    assert request["tools"][-1]["cache_control"] == MARK
    assert request["system"][-1]["cache_control"] == MARK
    first, _, last = request["messages"]
    assert first["content"][-1]["cache_control"] == MARK
    assert last["content"][-1]["cache_control"] == MARK
    assert count_marks(request) == 4  # the API allows no more


async def test_a_prompt_that_nothing_follows_is_not_written_to_the_cache(stub: OpenAIStub) -> None:
    stub.answer(bodies.anthropic(bodies.text_block("done")))
    model = open_stub_model("anthropic:claude-stub", stub.address)
    await model.complete(PROMPT, Sampling())
    await model.close()
    assert count_marks(stub.requests[0]["messages"]) == 0


async def test_signed_thinking_is_sent_back_with_the_result_of_a_tool(stub: OpenAIStub) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "a"}}
    request = await look_twice(
        open_stub_model("anthropic:claude-stub", stub.address),
        stub,
        bodies.anthropic(thinking, call, stop="tool_use"),
        bodies.anthropic(bodies.text_block("done")),
    )
    assert thinking in request["messages"][1]["content"]


async def test_deepseek_gets_its_reasoning_back_with_the_result_of_a_tool(stub: OpenAIStub) -> None:
    answer = bodies.openai_chat(
        {"content": "", "reasoning_content": "hm", "tool_calls": [bodies.openai_call("look", '{"at": "a"}')]}
    )
    request = await look_twice(
        open_stub_model("deepseek:deepseek-reasoner", stub.base_url),
        stub,
        answer,
        bodies.openai_chat({"content": "done"}),
    )
    assistant = request["messages"][2]
    assert (assistant["role"], assistant["reasoning_content"]) == ("assistant", "hm")
    assert assistant["tool_calls"][0]["function"]["name"] == "look"


async def test_a_turn_that_was_changed_is_sent_as_it_is_now(stub: OpenAIStub) -> None:
    answer = bodies.openai_chat(
        {"content": "long", "reasoning_content": "hm", "tool_calls": [bodies.openai_call("look", "{}")]}
    )
    stub.answer(answer)
    model = open_stub_model("deepseek:deepseek-reasoner", stub.base_url)
    reply = await model.complete(PROMPT, WITH_TOOLS)
    shortened = Message(role="assistant", content="(shortened)", tool_calls=reply.tool_calls)
    result = Message(role="tool", content="a tree", tool_call_id=reply.tool_calls[0].id)
    await model.complete((*PROMPT, shortened, result), WITH_TOOLS)
    await model.close()
    assert stub.requests[1]["messages"][2]["content"] == "(shortened)"
    assert "reasoning_content" not in stub.requests[1]["messages"][2]


async def test_the_responses_api_stores_nothing_and_gets_its_reasoning_back(stub: OpenAIStub) -> None:
    stub.answer(bodies.RESPONSES_ONLY, bodies.openai_response(bodies.output_text("a")))
    model = open_stub_model("openai:stub", stub.base_url)
    await model.complete(PROMPT, Sampling())
    call = bodies.function_call("look", '{"at": "a"}')
    request = await look_twice(
        model,
        stub,
        bodies.openai_response(bodies.REASONING_ITEM, call),
        bodies.openai_response(bodies.output_text("done")),
    )
    assert request["store"] is False
    kinds = [item.get("type", item.get("role")) for item in request["input"]]
    assert kinds[-3:] == ["reasoning", "function_call", "function_call_output"]
    assert request["input"][-3]["encrypted_content"] == "abc"


async def test_stable_prefixes_are_marked_for_bedrocks_cache(
    stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_aws")
    for name, value in {"REGION": "us-east-1", "ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "key"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    call = {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "a"}}}
    request = await look_twice(
        open_stub_model("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0", stub.address),
        stub,
        bodies.bedrock(call, stop="tool_use"),
        bodies.bedrock({"text": "done"}),
    )
    mark = {"cachePoint": {"type": "default"}}
    assert request["system"][-1] == request["messages"][-1]["content"][-1] == mark
    assert request["toolConfig"]["tools"][-1] == mark


async def test_a_slow_stream_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's own limit between two chunks, 120 s by default, does not apply."""
    monkeypatch.setenv("LANGCHAIN_OPENAI_STREAM_CHUNK_TIMEOUT_S", "0.2")
    stream = bodies.openai_stream({"content": "<think>hm</think>a"}, {"content": "b"}).body
    assert isinstance(stream, bytes)
    first, *others = stream.split(b"\n\n")

    def respond(peer: socket.socket) -> None:
        peer.sendall(response_head(content_type="text/event-stream") + first + b"\n\n")
        time.sleep(0.8)
        peer.sendall(b"\n\n".join(others))

    texts: list[str | None] = []
    with RawServer(respond) as server:
        model = open_stub_model("openai:stub", f"{server.address}/v1")
        with listen_to_replies(lambda _, text: texts.append(text)):
            reply = await model.complete(PROMPT, Sampling())
        await model.close()
    assert (reply.text, reply.thinking, reply.completion_tokens) == ("ab", "hm", 7)
    assert texts == ["a", "ab", None]


async def test_tools_of_hosted_models_are_streamed_too(stub: OpenAIStub) -> None:
    stream = bodies.openai_stream(
        {"content": "I "}, {"content": "look."}, bodies.call_delta(0, "{}", "look", "c1")
    )
    stub.answer(stream)
    texts: list[str | None] = []
    model = open_stub_model("openai:stub", stub.base_url)
    with listen_to_replies(lambda _, text: texts.append(text)):
        reply = await model.complete(PROMPT, WITH_TOOLS)
    await model.close()
    assert [call.name for call in reply.tool_calls] == ["look"]
    assert texts == ["I ", "I look.", None]
    assert stub.requests[0]["stream_options"] == {"include_usage": True}
