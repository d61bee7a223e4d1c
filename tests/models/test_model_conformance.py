"""The conformance suite that every `Model` passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from models.openai_stub import OpenAIStub
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.models import Message, Model, RecordedModel, Sampling, open_model, prompt_token_upper_bound
from suture.testing import ScriptedModel

PROMPT = (
    Message(role="system", content="You answer in one word."),
    Message(role="user", content="Say hello \udcff."),  # a lone surrogate, as in undecodable output
)


pytestmark = pytest.mark.timeout(600)  # a busy machine may need a minute for one reply


@pytest.fixture(params=["scripted", "stub", "recorded", pytest.param("embedded", marks=pytest.mark.live)])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[Model]:
    """Each kind of model in turn."""
    model_under_test: Model
    if request.param in ("scripted", "recorded"):
        model_under_test = ScriptedModel(["hello", "hallo", "salut", "ciao"])
        if request.param == "recorded":
            model_under_test = RecordedModel(model_under_test, request.getfixturevalue("tmp_path"))
    elif request.param == "stub":
        stub: OpenAIStub = request.getfixturevalue("stub")
        model_under_test = open_model(
            Settings(
                model=ModelSettings(name="openai:stub", base_url=stub.base_url),
                keys=KeySettings(openai=SecretStr("k")),
            )
        )
    else:
        model_under_test = open_model(request.getfixturevalue("local_settings"))
    yield model_under_test
    await model_under_test.close()


async def test_a_reply_is_complete(model: Model) -> None:
    reply = await model.complete(PROMPT, Sampling(max_tokens=16))
    assert reply.text
    assert reply.finish in ("stop", "length")
    assert reply.model == model.name
    assert ":" in model.name
    assert not reply.replayed


async def test_tokens_are_counted_and_bounded(model: Model) -> None:
    reply = await model.complete(PROMPT, Sampling(max_tokens=16))
    assert 0 < reply.prompt_tokens <= prompt_token_upper_bound(PROMPT)
    assert 0 < reply.completion_tokens <= 16


async def test_replies_can_be_requested_concurrently(model: Model) -> None:
    samplings = [Sampling(temperature=0.8, max_tokens=8, index=index) for index in range(3)]
    replies = await asyncio.gather(*(model.complete(PROMPT, sampling) for sampling in samplings))
    assert all(reply.text for reply in replies)


async def test_closing_twice_is_safe(model: Model) -> None:
    await model.close()
    await model.close()


def test_a_model_outlives_an_event_loop(stub: OpenAIStub) -> None:
    model = open_model(
        Settings(
            model=ModelSettings(name="openai:stub", base_url=stub.base_url),
            keys=KeySettings(openai=SecretStr("k")),
        )
    )

    async def ask() -> str:
        reply = await model.complete(PROMPT, Sampling())
        await model.close()
        return reply.text

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["hello", "hello"]
