"""How each protocol sends a schema, and that no part of the reply is lost."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, SecretStr

from models.openai_stub import Answer, OpenAIStub, chat_completion
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.models import Message, Sampling, open_model
from suture.models.structured_output import ask_structured
from suture.models.structured_output.reply_schemas import strict_schema

PROMPT = (Message(role="user", content="How ripe is it?"),)


class Ripeness(BaseModel):
    """The type of a structured reply."""

    stage: Literal["green", "ripe"]
    days: int


GOOD = {"stage": "ripe", "days": 2}


def make_settings(name: str, base_url: str) -> Settings:
    """Return settings of a model with keys of all providers."""
    return Settings(
        model=ModelSettings(name=name, base_url=base_url),
        keys=KeySettings(openai=SecretStr("k"), anthropic=SecretStr("k")),
    )


async def ask_for_ripeness(base_url: str, chat: Any = None) -> Any:
    """Return the structured answer of the stub to one question."""
    model = open_model(make_settings("openai:stub", base_url), chat)
    try:
        return await ask_structured(model.complete, PROMPT, Ripeness, Sampling(max_tokens=32), tries=1)
    finally:
        await model.close()


async def test_openai_gets_a_response_format(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=chat_completion(json.dumps(GOOD))))
    answer = await ask_for_ripeness(stub.base_url)
    assert answer == Ripeness(stage="ripe", days=2)

    (request,) = stub.requests

    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Ripeness", "strict": True, "schema": strict_schema(Ripeness)},
    }
    assert request["max_tokens"] == 32
    assert request["response_format"]["json_schema"]["schema"]["additionalProperties"] is False


async def test_ollama_gets_a_format(stub: OpenAIStub) -> None:
    ollama = pytest.importorskip("langchain_ollama", reason="the extra `ollama` is not installed")
    message = {"role": "assistant", "content": json.dumps(GOOD)}
    body = {"model": "m", "message": message, "done": True, "done_reason": "stop", "created_at": "x"}
    stub.answer(Answer(body=body))
    chat = ollama.ChatOllama(model="m", base_url=stub.base_url.removesuffix("/v1"))

    answer = await ask_for_ripeness(stub.base_url, chat)

    assert answer.stage == "ripe"
    assert stub.requests[0]["format"] == strict_schema(Ripeness)


async def test_anthropic_gets_a_required_tool(stub: OpenAIStub) -> None:
    anthropic = pytest.importorskip("langchain_anthropic", reason="the extra `anthropic` is not installed")
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "t", "name": "Ripeness", "input": GOOD}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    stub.answer(Answer(body=body))
    chat = anthropic.ChatAnthropic(model="m", api_key="k", base_url=stub.base_url.removesuffix("/v1"))
    answer = await ask_for_ripeness(stub.base_url, chat)

    assert answer.days == 2

    request = stub.requests[0]
    assert request["tools"][0]["input_schema"] == strict_schema(Ripeness)
    assert request["tool_choice"]["name"] == "Ripeness"


async def test_no_response_format_is_sent_without_a_schema(stub: OpenAIStub) -> None:
    model = open_model(make_settings("openai:stub", stub.base_url))
    await model.complete(PROMPT, Sampling())
    await model.close()
    assert "response_format" not in stub.requests[0]


async def test_a_cut_reply_keeps_its_text_and_usage(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=chat_completion('{"stage": "ri', finish="length")))
    model = open_model(make_settings("openai:stub", stub.base_url))
    reply = await model.complete(PROMPT, Sampling(schema=strict_schema(Ripeness)))
    await model.close()
    assert (reply.text, reply.finish, reply.completion_tokens) == ('{"stage": "ri', "length", 7)


async def test_a_server_without_schema_support_is_called_again_without_one(stub: OpenAIStub) -> None:
    refusal = {"error": {"message": "response_format type json_schema is not supported", "code": 400}}
    stub.answer(Answer(body=refusal, status=400), Answer(body=chat_completion(json.dumps(GOOD))))
    model = open_model(make_settings("openai:stub", stub.base_url))
    answer = await ask_structured(model.complete, PROMPT, Ripeness, Sampling(), tries=2)

    await model.close()

    assert answer.days == 2
    assert ["response_format" in request for request in stub.requests] == [True, False]
