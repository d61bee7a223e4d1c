"""Each fault of a provider, over real HTTP, is mapped to one of Suture's errors."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from models.openai_stub import Answer, OpenAIStub, chat_completion
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.errors import (
    ContextTooLong,
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelProtocolError,
    ModelRateLimited,
    ModelTimeout,
    ReplyLost,
)
from suture.models import Message, Reply, Sampling, open_model
from suture.models.providers.error_mapping import ModelTarget, map_provider_error

PROMPT = (Message(role="user", content="hi"),)
KEY = "sk-very-secret"


def error_body(message: str) -> dict[str, dict[str, str]]:
    """Return the body of an error response."""
    return {"error": {"message": message, "type": "some_error"}}


async def ask(stub: OpenAIStub, *, timeout_s: float = 60, sampling: Sampling | None = None) -> Reply:
    """Return the reply of the stub to one call."""
    settings = Settings(
        model=ModelSettings(name="openai:stub", base_url=stub.base_url, timeout_s=timeout_s, seed=5),
        keys=KeySettings(openai=SecretStr(KEY)),
    )
    model = open_model(settings)
    try:
        return await model.complete(PROMPT, sampling or Sampling())
    finally:
        await model.close()


async def test_the_request_contains_prompt_sampling_and_key(stub: OpenAIStub) -> None:
    reply = await ask(stub, sampling=Sampling(temperature=0.5, max_tokens=99, index=2))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("hello", 11, 7)
    (request,) = stub.requests
    assert request["messages"] == [{"role": "user", "content": "hi"}]
    assert (request["temperature"], request["max_tokens"], request["seed"]) == (0.5, 99, 7)
    assert stub.keys == [f"Bearer {KEY}"]


async def test_a_reply_cut_by_the_token_limit_keeps_its_text(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=chat_completion("def f(", finish="length")))
    reply = await ask(stub)
    assert (reply.text, reply.finish) == ("def f(", "length")


async def test_an_unknown_finish_reason_is_not_a_stop(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=chat_completion("", finish="insufficient_system_resource")))
    assert (await ask(stub)).finish == "other"


async def test_missing_token_counts_are_estimated(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=chat_completion("hello", usage=False)))
    reply = await ask(stub)
    assert reply.prompt_tokens >= len("hi")
    assert reply.completion_tokens == len("hello")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401, body=error_body(f"bad key {KEY}")), ModelAuthError),
        (Answer(status=403, body=error_body("not for you")), ModelAuthError),
        (Answer(status=404, body=error_body("no such model")), ModelNotFound),
        (Answer(status=429, body=error_body("slow down")), ModelRateLimited),
        (Answer(status=500, body=error_body("oops")), ModelError),
        (Answer(status=400, body=error_body("request exceeds the available context size")), ContextTooLong),
        (Answer(body=b"not json"), ModelProtocolError),
        (Answer(body=b"<html>not json"), ModelNotFound),
        (Answer(body={**chat_completion(""), "choices": []}), ModelProtocolError),
        (Answer(body={**chat_completion(""), "choices": None}), ModelProtocolError),
        (Answer(body=chat_completion("hello"), cut=True), ReplyLost),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_faults_are_mapped(stub: OpenAIStub, answer: Answer, error: type[ModelError]) -> None:
    stub.answer(answer)
    with pytest.raises(error) as caught:
        await ask(stub)
    assert type(caught.value) is error
    assert caught.value.__cause__ is not None
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("prefix_length", range(165, 200, 3))
async def test_a_key_at_the_end_of_a_quotation_is_masked(stub: OpenAIStub, prefix_length: int) -> None:
    stub.answer(Answer(body={"error": "x" * prefix_length + KEY}))
    with pytest.raises(ModelProtocolError) as caught:
        await ask(stub)
    assert KEY[:9] not in str(caught.value)


async def test_a_slow_server_times_out(stub: OpenAIStub) -> None:
    stub.answer(Answer(body=b"", slow=True))
    with pytest.raises(ModelTimeout, match="timeout_s"):
        await ask(stub, timeout_s=0.3)


async def test_waiting_for_a_turn_counts_towards_the_time_limit(stub: OpenAIStub) -> None:
    settings = ModelSettings(
        name="openai:stub", base_url=stub.base_url, timeout_s=60, requests_per_minute=0.1
    )
    model = open_model(Settings(model=settings))
    await model.complete(PROMPT, Sampling())
    await model.close()
    impatient_model = open_model(Settings(model=settings.model_copy(update={"timeout_s": 0.3})))

    with pytest.raises(ModelRateLimited, match=r"was not asked: its turn did not come in 0\.3 s"):
        await impatient_model.complete(PROMPT, Sampling())

    await impatient_model.close()
    assert len(stub.requests) == 1


async def test_a_transient_fault_is_retried(stub: OpenAIStub) -> None:
    good_answer = Answer(body=chat_completion("hello"))
    stub.answer(replace(good_answer, status=500), replace(good_answer, status=429), good_answer)
    assert (await ask(stub)).text == "hello"
    assert len(stub.requests) == 3


async def test_an_unreachable_server_is_reported(stub: OpenAIStub) -> None:
    settings = Settings(model=ModelSettings(name="openai:stub", base_url="http://127.0.0.1:9/v1"))
    model = open_model(settings)
    with pytest.raises(ModelError, match="base_url"):
        await model.complete(PROMPT, Sampling())
    await model.close()


class VendorRateLimit(Exception):
    """An exception like those that a vendor's SDK raises."""

    status_code = 429

    class response:
        headers = {"retry-after": "7.5"}  # noqa: RUF012


def test_retry_after_is_carried() -> None:
    fault = map_provider_error(VendorRateLimit("slow down"), ModelTarget(name="vendor:model"))
    assert isinstance(fault, ModelRateLimited)
    assert fault.retry_after_s == 7.5


def test_own_errors_pass_through() -> None:
    timeout = ModelTimeout("late")
    assert map_provider_error(timeout, ModelTarget(name="vendor:model")) is timeout
