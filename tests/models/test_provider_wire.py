"""The contract of each provider, over real HTTP, against a server that speaks its documented wire format."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from models.openai_stub import Answer, OpenAIStub
from models.wire_formats import FORMATS, WireFormat
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.errors import (
    ContextTooLong,
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelProtocolError,
    ModelRateLimited,
    ModelRequestRejected,
    ModelTimeout,
    ModelUnreachable,
    PrerequisiteError,
    ReplyLost,
)
from suture.models import (
    Message,
    Model,
    Reply,
    Sampling,
    ToolCall,
    ToolDeclaration,
    find_profile,
    open_model,
    open_role_models,
)

PROMPT = (Message(role="user", content="hi"),)
KEY = "sk-very-secret"
LOOK = ToolDeclaration(
    name="look",
    description="looks around",
    inputs={"at": "where", "depth": "how far"},
    optional=("depth",),
)


@pytest.fixture(params=FORMATS, ids=lambda wire: wire.name.partition(":")[0])
def wire(request: pytest.FixtureRequest, stub: OpenAIStub) -> WireFormat:
    """The wire format of each provider in turn, for which the stub has a good answer."""
    wire_format: WireFormat = request.param
    stub.answer(wire_format.answer())
    return wire_format


def make_settings(wire: WireFormat, address: str, **knobs: object) -> Settings:
    """Return settings for the model of a provider at the address of a test server."""
    model = {"name": wire.name, "base_url": address + wire.base_path, **knobs}
    secret = SecretStr(KEY)
    return Settings(
        model=ModelSettings.model_validate(model),
        keys=KeySettings(openai=secret, anthropic=secret, qwen=secret),
    )


def open_wire_model(wire: WireFormat, address: str, **knobs: object) -> Model:
    """Open the model of a provider at the address of a test server."""
    return open_model(make_settings(wire, address, **knobs))


async def ask(wire: WireFormat, stub: OpenAIStub, sampling: Sampling | None = None, **knobs: object) -> Reply:
    """Return the reply to one call."""
    model = open_wire_model(wire, stub.address, **knobs)
    try:
        return await model.complete(PROMPT, sampling or Sampling())
    finally:
        await model.close()


async def test_a_reply_records_its_sampling(wire: WireFormat, stub: OpenAIStub) -> None:
    reply = await ask(wire, stub, Sampling(temperature=0.5, max_tokens=99))
    assert (reply.text, reply.finish, reply.model) == ("hello", "stop", wire.name)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.counted_by) == (11, 7, "provider")

    (request,) = stub.requests
    assert wire.read_prompt(request) == ([{"role": "user", "content": "hi"}], 99)
    assert stub.paths == [wire.path]
    assert stub.keys == [f"Bearer {KEY}" if wire.sends_key else ""]


async def test_a_prefilled_reply_stops_at_its_stop_text(wire: WireFormat, stub: OpenAIStub) -> None:
    messages = (*PROMPT, Message(role="assistant", content="```python\ndef f(x):"))
    model = open_wire_model(wire, stub.address)
    stub.answer(wire.answer("\n    return x"))
    try:
        reply = await model.complete(messages, Sampling(stop=("\n```", "\nd")))
    finally:
        await model.close()

    assert reply.text == "\n    return x"

    (request,) = stub.requests
    assert wire.read_prompt(request)[0][-1] == {"role": "assistant", "content": "```python\ndef f(x):"}

    parameters = {**request, **request.get("options", {})}
    assert (parameters.get("stop") or parameters.get("stop_sequences")) == ["\n```", "\nd"]

    needs_continue_flag = wire.name.startswith(("openai", "qwen"))  # vLLM and SGLang need it
    assert request.get("continue_final_message", False) is needs_continue_flag


async def test_a_prefill_that_the_server_repeats_is_removed(wire: WireFormat, stub: OpenAIStub) -> None:
    messages = (*PROMPT, Message(role="assistant", content="def f(x):"))
    model = open_wire_model(wire, stub.address)
    stub.answer(wire.answer("def f(x):\n    return x"))

    try:
        assert (await model.complete(messages, Sampling())).text == "\n    return x"
    finally:
        await model.close()


async def test_a_reply_cut_by_the_token_limit_keeps_its_text(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(wire.answer("def f(", cut_short=True))
    reply = await ask(wire, stub)
    assert (reply.text, reply.finish) == ("def f(", "length")


async def test_tools_are_declared_with_their_optional_inputs(wire: WireFormat, stub: OpenAIStub) -> None:
    await ask(wire, stub, Sampling(tools=(LOOK,)))

    (declaration,) = stub.requests[0]["tools"]
    declaration = declaration.get("function", declaration)
    assert (declaration["name"], declaration["description"]) == ("look", "looks around")

    parameters = declaration.get("parameters") or declaration["input_schema"]
    assert (list(parameters["properties"]), parameters["required"]) == (["at", "depth"], ["at"])


async def test_every_call_of_a_reply_is_read_in_its_order(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(Answer(body=wire.calls("I look twice.", ("look", {"at": "a"}), ("look", {"at": "b"}))))
    reply = await ask(wire, stub, Sampling(tools=(LOOK,)))
    assert (reply.text, reply.finish) == ("I look twice.", "stop")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("look", {"at": "a"}),
        ("look", {"at": "b"}),
    ]
    assert len({call.id for call in reply.tool_calls}) == 2


async def test_calls_and_their_results_are_sent_in_the_providers_own_form(
    wire: WireFormat, stub: OpenAIStub
) -> None:
    calls = (
        ToolCall(id="c1", name="look", arguments={"at": "a"}),
        ToolCall(id="c2", name="look", undecoded='{"at": '),
    )
    conversation = (
        *PROMPT,
        Message(role="assistant", content="", tool_calls=calls),
        Message(role="tool", content="a tree", tool_call_id="c1"),
        Message(role="tool", content="not JSON", tool_call_id="c2"),
    )
    model = open_wire_model(wire, stub.address)
    try:
        await model.complete(conversation, Sampling(tools=(LOOK,)))
    finally:
        await model.close()
    assert wire.read_calls(stub.requests[0]["messages"]) == [
        ("look", {"at": "a"}, "a tree"),
        ("look", {"INVALID_JSON": '{"at": '}, "not JSON"),
    ]


async def test_an_undeclared_tool_call_returns_its_arguments(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(Answer(body=wire.calls("", ("look", {"at": "a"}))))
    assert (await ask(wire, stub)).text == '{"at": "a"}'


@pytest.mark.parametrize(
    ("status", "message", "error", "expected"),
    [
        (401, f"bad key {KEY}", ModelAuthError, "refused the key"),
        (403, "not for you", ModelAuthError, "refuses access"),
        (404, "no such model", ModelNotFound, "check model.name"),
        (400, "prompt is too long: 9 tokens > 8 context window", ContextTooLong, "too little context"),
        (400, "temperature is wrong", ModelRequestRejected, "refused the request"),
        (429, "slow down", ModelRateLimited, "asks to slow down"),
        (500, "oops", ModelError, "failed .HTTP 500"),
        (503, "loading", ModelError, "overloaded, or still starting"),
        (529, "overloaded", ModelError, "overloaded, or still starting"),
        (504, "gateway", ModelTimeout, "did not answer in time"),
        (524, "a timeout occurred", ModelTimeout, "did not answer in time"),
        *((status, "bad gateway", ReplyLost, "a gateway lost") for status in (502, 520, 522)),
    ],
)
async def test_an_error_is_mapped_and_masks_the_key(
    wire: WireFormat, stub: OpenAIStub, status: int, message: str, error: type[ModelError], expected: str
) -> None:
    if not wire.sends_key:
        message = message.replace(KEY, "")  # no key is sent, so none can be returned
    stub.answer(wire.fault(status, message))

    with pytest.raises(error, match=expected) as caught:
        await ask(wire, stub, retries=0)
    assert type(caught.value) is error
    assert caught.value.__cause__ is not None
    assert KEY not in str(caught.value)
    assert len(stub.requests) == 1  # the vendors' own retries are off
    assert message.strip().replace(KEY, "***") in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_transient_faults_are_retried(wire: WireFormat, stub: OpenAIStub, status: int) -> None:
    stub.answer(wire.fault(status, "later"), wire.answer())
    reply = await ask(wire, stub)
    assert (reply.text, reply.retries, len(stub.requests)) == ("hello", 1, 2)


@pytest.mark.parametrize("status", [400, 401, 404, 408, 502, 504, 520, 522, 524])
async def test_a_permanent_fault_is_not_retried(wire: WireFormat, stub: OpenAIStub, status: int) -> None:
    stub.answer(wire.fault(status, "no"))
    with pytest.raises(ModelError):
        await ask(wire, stub)
    assert len(stub.requests) == 1


async def test_retry_after_is_waited_for(wire: WireFormat, stub: OpenAIStub) -> None:
    if wire.name.startswith("ollama:"):
        pytest.skip("Ollama's client drops the headers of an error")
    slow_down = replace(wire.fault(429, "slow down"), headers={"retry-after": "1"})
    stub.answer(slow_down, wire.answer())
    start_s = time.monotonic()

    assert (await ask(wire, stub)).text == "hello"
    assert time.monotonic() - start_s >= 1


async def test_a_retry_after_beyond_the_time_limit_is_not_waited_for(
    wire: WireFormat, stub: OpenAIStub
) -> None:
    if wire.name.startswith("ollama:"):
        pytest.skip("Ollama's client drops the headers of an error")
    stub.answer(replace(wire.fault(429, "slow down"), headers={"retry-after": "3600"}))

    with pytest.raises(ModelRateLimited) as caught:
        await ask(wire, stub)
    assert caught.value.retry_after_s == 3600
    assert len(stub.requests) == 1


async def test_a_timed_out_call_is_not_retried(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(Answer(body=b"", slow=True))
    with pytest.raises(ModelTimeout, match="timeout_s"):
        await ask(wire, stub, timeout_s=1)
    assert len(stub.requests) <= 1  # on a busy machine the time may be over before the request is sent


async def test_a_broken_off_reply_is_not_retried(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(replace(wire.answer("a long reply " * 50), cut=True))
    with pytest.raises(ReplyLost):
        await ask(wire, stub)
    assert len(stub.requests) == 1


async def test_a_closed_connection_is_not_retried(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(replace(wire.answer(), silent=True))
    with pytest.raises(ReplyLost, match="closed the connection before it answered"):
        await ask(wire, stub)
    assert len(stub.requests) == 1


async def test_a_body_that_is_not_json_is_a_protocol_error(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(Answer(body=b"not json\n"))
    with pytest.raises(ModelProtocolError):
        await ask(wire, stub)
    assert len(stub.requests) == 1


async def test_a_reply_without_content_is_an_error_or_empty(wire: WireFormat, stub: OpenAIStub) -> None:
    stub.answer(Answer(body=wire.empty))
    if wire.empty_is_foreign:
        with pytest.raises(ModelProtocolError):
            await ask(wire, stub)
    else:
        assert (await ask(wire, stub)).text == ""


async def test_an_unreachable_server_is_a_missing_prerequisite(wire: WireFormat) -> None:
    model = open_wire_model(wire, "http://127.0.0.1:9", retries=0)
    with pytest.raises(ModelUnreachable, match="base_url") as caught:
        await model.complete(PROMPT, Sampling())
    assert isinstance(caught.value, PrerequisiteError)
    await model.close()


def test_each_event_loop_has_a_connection_of_its_own(wire: WireFormat, stub: OpenAIStub) -> None:
    import asyncio

    model = open_wire_model(wire, stub.address)

    async def complete_once() -> str:
        reply = await model.complete(PROMPT, Sampling())
        await model.close()
        return reply.text

    assert [asyncio.run(complete_once()) for _ in range(2)] == ["hello", "hello"]


async def test_ollama_gets_the_context_size_and_a_cut_stream_is_lost(stub: OpenAIStub) -> None:
    ollama = FORMATS[-1]
    stub.answer(ollama.answer())
    await ask(ollama, stub, context_tokens=2048)
    assert stub.requests[0]["options"]["num_ctx"] == 2048

    body = ollama.answer().body
    assert isinstance(body, bytes)

    stub.answer(Answer(body=body.splitlines(keepends=True)[0]))
    with pytest.raises(ReplyLost, match="broke off"):
        await ask(ollama, stub)


@pytest.mark.parametrize(
    ("page", "settings", "expected"),
    [
        pytest.param({"parameters": 'stop "x"\nnum_ctx   32768'}, {}, 32_768, id="the model's file decides"),
        pytest.param(
            {"parameters": "num_ctx 32768"}, {"context_tokens": 4_096}, 4_096, id="a setting decides"
        ),
        pytest.param(
            {"parameters": "num_ctx 32768"},
            {"profile": {"context_tokens": 4_096}},
            4_096,
            id="so does a profile",
        ),
        pytest.param(
            {"parameters": "num_ctx 32768"},
            {"profiles": {"ollama:stub": {"context_tokens": 4_096}}},
            4_096,
            id="so does a profile by name",
        ),
        pytest.param(
            {"model_info": {"general.architecture": "llama", "llama.context_length": 2_048}},
            {"context_tokens": 16_384},
            2_048,
            id="never more than the model was trained with",
        ),
        pytest.param({"parameters": "num_ctx 12", "model_info": [7]}, {}, 8_192, id="nonsense is ignored"),
        pytest.param(["?"], {}, 8_192, id="another server is ignored"),
        pytest.param(None, {}, 8_192, id="the default remains without an answer"),
    ],
)
async def test_the_context_that_ollama_is_asked_for_is_the_one_of_the_profile(
    stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch, page: Any, settings: dict[str, Any], expected: int
) -> None:
    monkeypatch.setattr("suture.models.providers.endpoints.OLLAMA_TIMEOUT_S", 60)  # the machine may be busy
    ollama = FORMATS[-1]
    if page is not None:
        stub.pages["/api/show"] = page
    stub.answer(ollama.answer())
    given = make_settings(ollama, stub.address, **settings)
    models = open_role_models(given)
    await models.for_role("coder").model.complete(PROMPT, Sampling())
    assert stub.requests[0]["options"]["num_ctx"] == expected
    recorded = models.apply_served_contexts(given)
    assert find_profile(ollama.name, recorded).context_tokens == expected
    await models.close()


async def test_a_model_without_temperature_support_is_sent_none(stub: OpenAIStub) -> None:
    stub.answer(FORMATS[0].answer())
    await ask(replace(FORMATS[0], name="openai:o3-mini"), stub, Sampling(temperature=0.5))
    assert "temperature" not in stub.requests[0]
