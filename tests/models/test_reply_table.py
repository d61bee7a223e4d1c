"""A table of what providers answer: each reply is read rightly, and each failure has the right class and remedy."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from models import reply_bodies as bodies
from models.openai_stub import Answer, OpenAIStub
from suture.core.settings.schema import KeySettings, ModelSettings, Settings
from suture.errors import (
    ContextTooLong,
    ModelAuthError,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelRequestRejected,
    ModelTimeout,
    ReplyLost,
)
from suture.models import Message, Reply, Sampling, ToolDeclaration, listen_to_replies, open_model

LOOK = ToolDeclaration(name="look", description="looks around", inputs={"at": "where"})
PROMPT = (Message(role="system", content="be brief"), Message(role="user", content="hi"))
CODE = "```python\nx = 1\n```"
CHAT, RESPONSES, ANTHROPIC = "openai:stub", "openai:stub-responses", "anthropic:claude-stub"
GEMINI, BEDROCK, OLLAMA = (
    "google:gemini-2.5-pro",
    "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama:stub",
)
BASE_PATHS = {"openai": "/v1", "qwen": "/v1", "deepseek": "/v1", "openrouter": "/v1"}
PACKAGES = {"google": "langchain_google_genai", "bedrock": "langchain_aws"}


@dataclass(frozen=True)
class Case:
    """One kind of reply.

    Attributes:
        what: What the reply is, for the name of the test.
        model: The model that is asked.
        answer: What the server answers.
        expected: Attributes of the reply.
        calls: The calls of tools as (name, arguments, undecoded arguments); `None` declares no tool.
        streamed: Whether somebody reads along.
        sampling: Further parameters of the call.
    """

    what: str
    model: str
    answer: Answer
    expected: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any], str]] | None = None
    streamed: bool = False
    sampling: dict[str, Any] = field(default_factory=dict)


def text(value: str, **expected: Any) -> dict[str, Any]:
    """Return the expectation of a complete text."""
    return {"text": value, "finish": "stop", **expected}


THOUGHT = {"thinking": "hm"}
REPLIES = (
    # Plain forms
    Case("text", CHAT, bodies.openai_chat({"content": CODE}), text(CODE, prompt_tokens=11, completion_tokens=7)),
    Case("no content", CHAT, bodies.openai_chat({"content": None}), text("")),
    Case("a finish reason that is missing", CHAT, bodies.openai_chat({"content": "a"}, finish=None), text("a")),
    Case("an end of sequence", CHAT, bodies.openai_chat({"content": "a"}, finish="eos"), text("a")),
    Case("an unknown finish reason", CHAT,
         bodies.openai_chat({"content": "a"}, finish="insufficient_system_resource"), {"finish": "other"}),
    Case("no usage", CHAT, bodies.openai_chat({"content": "a"}, usage=None), text("a", counted_by="bound")),
    Case("cached and reasoning tokens", CHAT,
         bodies.openai_chat({"content": "a"}, usage={
             "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
             "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 6}}),
         text("a", cached_tokens=5, thinking_tokens=6)),
    Case("text of Anthropic", ANTHROPIC, bodies.anthropic(bodies.text_block(CODE)), text(CODE)),
    Case("two text blocks", ANTHROPIC, bodies.anthropic(bodies.text_block("a"), bodies.text_block("b")), text("ab")),
    Case("cached tokens of Anthropic", ANTHROPIC,
         bodies.anthropic(bodies.text_block("a"), cache_read_input_tokens=5, cache_creation_input_tokens=2),
         text("a", prompt_tokens=18, cached_tokens=5, cache_write_tokens=2)),
    Case("a stop sequence", ANTHROPIC, bodies.anthropic(bodies.text_block("a"), stop="stop_sequence"), text("a")),
    Case("text of Gemini", GEMINI, bodies.gemini({"text": CODE}), text(CODE, completion_tokens=7, thinking_tokens=3)),
    Case("text of Bedrock", BEDROCK, bodies.bedrock({"text": CODE}), text(CODE, completion_tokens=7)),
    Case("text of Ollama", OLLAMA, bodies.ollama({"content": CODE}), text(CODE, completion_tokens=7)),
    Case("text of the Responses API", RESPONSES, bodies.openai_response(bodies.output_text(CODE)),
         text(CODE, cached_tokens=4, thinking_tokens=3, refused=("chat_completions",))),
    # Thinking
    Case("a block of thinking", CHAT, bodies.openai_chat({"content": f"<think>\nhm\n</think>\n\n{CODE}"}),
         text(CODE, **THOUGHT)),
    Case("thinking whose tag is in the template", CHAT, bodies.openai_chat({"content": f"hm\n</think>\n{CODE}"}),
         text(CODE, **THOUGHT)),
    Case("no thinking between its tags", CHAT, bodies.openai_chat({"content": f"<think>\n\n</think>\n\n{CODE}"}),
         text(CODE, thinking="")),
    Case("several blocks of thinking", CHAT,
         bodies.openai_chat({"content": "<think>hm</think>a\n<think>\nyes\n</think>\nb"}),
         text("a\nb", thinking="hm\nyes")),
    Case("thinking with code that it does not close", CHAT,
         bodies.openai_chat({"content": f"<think>```python\nx = 0\n</think>\n{CODE}"}), text(CODE)),
    Case("tags in the code of an answer", CHAT,
         bodies.openai_chat({"content": "```python\nT = '''\n<think>\nhm\n</think>\n'''\n```"}),
         text("```python\nT = '''\n<think>\nhm\n</think>\n'''\n```", thinking="")),
    Case("a tag in a sentence of an answer", CHAT, bodies.openai_chat({"content": "Cut `</think>` first."}),
         text("Cut `</think>` first.", thinking="")),
    Case("thinking that never ends", CHAT, bodies.openai_chat({"content": f"<think>hm\n{CODE}"}, finish="length"),
         {"text": "", "finish": "thinking", "thinking": f"hm\n{CODE}"}),
    Case("thinking of Magistral", CHAT, bodies.openai_chat({"content": f"[THINK]hm[/THINK]{CODE}"}),
         text(CODE, **THOUGHT)),
    Case("channels of gpt-oss", CHAT,
         bodies.openai_chat({"content": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final"
                             f"<|message|>{CODE}"}), text(CODE, **THOUGHT)),
    Case("reasoning_content", CHAT, bodies.openai_chat({"content": "a", "reasoning_content": "hm"}),
         text("a", **THOUGHT)),
    Case("reasoning", CHAT, bodies.openai_chat({"content": "a", "reasoning": "hm"}), text("a", **THOUGHT)),
    Case("a limit spent on reasoning_content", CHAT,
         bodies.openai_chat({"content": "", "reasoning_content": "hm"}, finish="length"),
         {"text": "", "finish": "thinking", **THOUGHT}),
    Case("a limit spent on hidden thinking", CHAT, bodies.openai_chat({"content": ""}, finish="length"),
         {"text": "", "finish": "thinking"}),
    Case("thinking of Anthropic", ANTHROPIC,
         bodies.anthropic({"type": "thinking", "thinking": "hm", "signature": "s"}, bodies.text_block("a")),
         text("a", **THOUGHT)),
    Case("thinking that Anthropic hides", ANTHROPIC,
         bodies.anthropic({"type": "redacted_thinking", "data": "x"}, bodies.text_block("a")), text("a", thinking="")),
    Case("thoughts of Gemini", GEMINI, bodies.gemini({"text": "hm", "thought": True}, {"text": "a"}),
         text("a", **THOUGHT)),
    Case("reasoning of Bedrock", BEDROCK,
         bodies.bedrock({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, {"text": "a"}),
         text("a", **THOUGHT)),
    Case("thinking of Ollama's text", OLLAMA, bodies.ollama({"content": "<think>hm</think>a"}), text("a", **THOUGHT)),
    Case("thinking of Ollama's own field", "ollama:qwen3:32b", bodies.ollama({"content": "a", "thinking": "hm"}),
         text("a", **THOUGHT)),
    Case("a reasoning item", RESPONSES, bodies.openai_response(bodies.REASONING_ITEM, bodies.output_text("a")),
         text("a", **THOUGHT)),
    # Ends
    Case("a length limit", CHAT, bodies.openai_chat({"content": "def f("}, finish="length"),
         {"text": "def f(", "finish": "length"}),
    Case("a length limit of Anthropic", ANTHROPIC, bodies.anthropic(bodies.text_block("a"), stop="max_tokens"),
         {"text": "a", "finish": "length"}),
    Case("a full context", ANTHROPIC, bodies.anthropic(bodies.text_block("a"), stop="model_context_window_exceeded"),
         {"text": "a", "finish": "length"}),
    Case("a turn that pauses", ANTHROPIC, bodies.anthropic(bodies.text_block("a"), stop="pause_turn"),
         {"text": "a", "finish": "other"}),
    Case("a length limit of Gemini", GEMINI, bodies.gemini({"text": "a"}, finish="MAX_TOKENS"), {"finish": "length"}),
    Case("a length limit of Bedrock", BEDROCK, bodies.bedrock({"text": "a"}, stop="max_tokens"), {"finish": "length"}),
    Case("an incomplete response", RESPONSES,
         bodies.openai_response(bodies.output_text("a"), status="incomplete",
                                incomplete_details={"reason": "max_output_tokens"}), {"finish": "length"}),
    Case("a response of thinking alone", RESPONSES,
         bodies.openai_response(bodies.REASONING_ITEM, status="incomplete",
                                incomplete_details={"reason": "max_output_tokens"}),
         {"text": "", "finish": "thinking", **THOUGHT}),
    Case("a refusal", CHAT, bodies.openai_chat({"content": None, "refusal": "I can't."}),
         {"text": "I can't.", "finish": "refusal"}),
    Case("a refusal of Anthropic", ANTHROPIC, bodies.anthropic(stop="refusal"), {"text": "", "finish": "refusal"}),
    Case("a refusal item", RESPONSES,
         bodies.openai_response({**bodies.output_text(""), "content": [{"type": "refusal", "refusal": "No."}]}),
         {"text": "No.", "finish": "refusal"}),
    Case("a content filter", CHAT, bodies.openai_chat({"content": ""}, finish="content_filter"),
         {"finish": "content_filter"}),
    Case("a content filter with details", CHAT, bodies.openai_chat({"content": ""}, finish="content_filter: SAFETY"),
         {"finish": "content_filter"}),
    Case("a filtered response", RESPONSES,
         bodies.openai_response(status="incomplete", incomplete_details={"reason": "content_filter"}),
         {"finish": "content_filter"}),
    *(
        Case(f"Gemini's {reason}", GEMINI, bodies.gemini(finish=reason), {"finish": "content_filter"})
        for reason in ("SAFETY", "RECITATION", "PROHIBITED_CONTENT")
    ),
    Case("a prompt that Gemini blocks", GEMINI,
         Answer(body={"promptFeedback": {"blockReason": "SAFETY"},
                      "usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11}}),
         {"text": "", "finish": "content_filter"}),
    Case("a guardrail of Bedrock", BEDROCK, bodies.bedrock({"text": "no"}, stop="guardrail_intervened"),
         {"finish": "content_filter"}),
    Case("a prompt that Azure filters", CHAT,
         bodies.openai_error(400, "The response was filtered due to the prompt triggering Azure OpenAI's content "
                             "management policy.", code="content_filter", param="prompt"),
         {"text": "", "finish": "content_filter"}),
    Case("a prompt that Model Studio filters", "qwen:qwen-max",
         bodies.openai_error(400, "Input data may contain inappropriate content.", code="data_inspection_failed"),
         {"text": "", "finish": "content_filter"}),
    # Calls of tools
    Case("parallel calls", CHAT,
         bodies.openai_chat({"content": None, "tool_calls": [bodies.openai_call("look", '{"at": "a"}', "c1"),
                                                             bodies.openai_call("look", '{"at": "b"}', "c2")]},
                            finish="tool_calls"), text(""),
         [("look", {"at": "a"}, ""), ("look", {"at": "b"}, "")]),
    Case("bad arguments before good ones", CHAT,
         bodies.openai_chat({"content": None, "tool_calls": [bodies.openai_call("look", '{"at": ', "c1"),
                                                             bodies.openai_call("look", '{"at": "b"}', "c2")]},
                            finish="tool_calls"), text(""),
         [("look", {}, '{"at": '), ("look", {"at": "b"}, "")]),
    Case("no arguments", CHAT, bodies.openai_chat({"content": "", "tool_calls": [bodies.openai_call("look", "")]}),
         text(""), [("look", {}, "")]),
    Case("arguments that are encoded twice", CHAT,
         bodies.openai_chat({"content": "", "tool_calls": [bodies.openai_call("look", '"{\\"at\\": \\"a\\"}"')]}),
         text(""), [("look", {"at": "a"}, "")]),
    Case("calls without ids", CHAT,
         bodies.openai_chat({"content": "", "tool_calls": [bodies.openai_call("look", "{}", None),
                                                           bodies.openai_call("look", "{}", None)]}),
         text(""), [("look", {}, ""), ("look", {}, "")]),
    Case("text beside a call", ANTHROPIC,
         bodies.anthropic(bodies.text_block("I look."),
                          {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "a"}}, stop="tool_use"),
         text("I look."), [("look", {"at": "a"}, "")]),
    Case("a call of Gemini", GEMINI, bodies.gemini({"functionCall": {"name": "look", "args": {"at": "a"}}}), text(""),
         [("look", {"at": "a"}, "")]),
    Case("a call of Bedrock", BEDROCK,
         bodies.bedrock({"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "a"}}}, stop="tool_use"),
         text(""), [("look", {"at": "a"}, "")]),
    Case("calls of the Responses API", RESPONSES,
         bodies.openai_response(bodies.REASONING_ITEM, bodies.function_call("look", '{"at": ', "c1"),
                                bodies.function_call("look", '{"at": "b"}', "c2")), text("", **THOUGHT),
         [("look", {}, '{"at": '), ("look", {"at": "b"}, "")]),
    # Streams
    Case("a stream", CHAT, bodies.openai_stream({"role": "assistant", "content": "a"}, {"content": "b"}),
         text("ab", prompt_tokens=11, completion_tokens=7), streamed=True),
    Case("a stream of thinking", CHAT,
         bodies.openai_stream({"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "a"}),
         text("a", **THOUGHT), streamed=True),
    Case("a stream that is cut", CHAT, bodies.openai_stream({"content": "def f("}, finish="length"),
         {"text": "def f(", "finish": "length"}, streamed=True),
    Case("a stream of parallel calls", CHAT,
         bodies.openai_stream(bodies.call_delta(0, "", "look", "c1"), bodies.call_delta(0, '{"at": "a"}'),
                              bodies.call_delta(1, '{"at": "b', "look", "c2"), finish="tool_calls"),
         text(""), [("look", {"at": "a"}, ""), ("look", {}, '{"at": "b')], streamed=True),
    Case("a stream of Anthropic", ANTHROPIC,
         bodies.anthropic_stream(
             ({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}),
             (bodies.text_block(""), {"type": "text_delta", "text": "a"}),
             ({"type": "tool_use", "id": "c1", "name": "look", "input": {}},
              {"type": "input_json_delta", "partial_json": '{"at": "a"}'}), stop="tool_use"),
         text("a", prompt_tokens=11, completion_tokens=7, **THOUGHT), [("look", {"at": "a"}, "")], streamed=True),
    Case("a stream of Gemini", GEMINI,
         bodies.event_stream(
             {"candidates": [{"content": {"role": "model", "parts": [{"text": "hm", "thought": True}]}, "index": 0}],
              "modelVersion": "gemini-2.5-pro"},
             {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "MAX_TOKENS",
                              "index": 0}],
              "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 4, "thoughtsTokenCount": 3,
                                "totalTokenCount": 18}, "modelVersion": "gemini-2.5-pro"}),
         {"text": "a", "finish": "length", "completion_tokens": 7, "thinking_tokens": 3, **THOUGHT}, streamed=True),
    Case("a stream of the Responses API", RESPONSES,
         bodies.event_stream(
             {"type": "response.output_item.added", "output_index": 0, "sequence_number": 0,
              "item": {**bodies.output_text(""), "content": []}},
             {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
              "sequence_number": 1, "delta": "a", "logprobs": []},
             {"type": "response.completed", "sequence_number": 2,
              "response": bodies.openai_response(bodies.output_text("a")).body}),
         text("a", completion_tokens=7, cached_tokens=4), streamed=True),
    Case("a stream without usage", CHAT, bodies.openai_stream({"content": "a"}, usage=False),
         text("a", counted_by="bound", refused=("stream_options",)), streamed=True),
)  # fmt: skip


@pytest.fixture
def aws_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region and credentials, so that Bedrock's client looks for neither."""
    for name, value in {"REGION": "us-east-1", "ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "key"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


async def ask(case: Case, stub: OpenAIStub, *answers: Answer) -> Reply:
    """Return the reply to a call, which is answered with `answers`."""
    provider = case.model.partition(":")[0]
    if package := PACKAGES.get(provider):
        pytest.importorskip(package)
    stub.answer(*answers)
    key = SecretStr("sk-very-secret")
    names = ("openai", "anthropic", "qwen", "deepseek", "openrouter", "google")
    address = stub.address + BASE_PATHS.get(provider, "")
    settings = Settings(
        model=ModelSettings(name=case.model, base_url=address, retries=0),
        keys=KeySettings(**dict.fromkeys(names, key)),
    )
    tools = () if case.calls is None else (LOOK,)
    model = open_model(settings)
    try:
        with listen_to_replies(lambda _, __: None) if case.streamed else nullcontext():
            return await model.complete(PROMPT, Sampling(tools=tools, **case.sampling))
    finally:
        await model.close()


@pytest.mark.usefixtures("aws_region")
@pytest.mark.parametrize("case", REPLIES, ids=lambda case: case.what.replace(" ", "-"))
async def test_each_kind_of_reply_is_read(case: Case, stub: OpenAIStub) -> None:
    answers = [bodies.RESPONSES_ONLY, case.answer] if case.model == RESPONSES else [case.answer]
    reply = await ask(case, stub, *answers)
    assert {name: getattr(reply, name) for name in case.expected} == case.expected
    calls = [(call.name, dict(call.arguments), call.undecoded) for call in reply.tool_calls]
    assert calls == (case.calls or [])
    assert len({call.id for call in reply.tool_calls} - {""}) == len(calls)


@dataclass(frozen=True)
class Failure:
    """One kind of failure: what is answered, the error's class, and what its message must contain."""

    what: str
    model: str
    answer: Answer
    error: type[ModelError]
    says: str
    blames_address: bool = False
    streamed: bool = False


FAILURES = (
    Failure("a wrong key", CHAT, bodies.openai_error(401, "Incorrect API key provided", code="invalid_api_key"),
            ModelAuthError, "set OPENAI_API_KEY"),
    Failure("a wrong key of Anthropic", ANTHROPIC,
            bodies.anthropic_error(401, "authentication_error", "invalid x-api-key"), ModelAuthError,
            "set ANTHROPIC_API_KEY"),
    Failure("a wrong key of Gemini", GEMINI,
            bodies.gemini_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            ModelAuthError, "set GEMINI_API_KEY"),
    Failure("an expired token of Bedrock", BEDROCK,
            bodies.bedrock_error(403, "ExpiredTokenException", "The security token included is expired"),
            ModelAuthError, "refused the key"),
    Failure("a model without access", CHAT,
            bodies.openai_error(403, "Project `p` does not have access to model `stub`", code="model_not_found"),
            ModelAuthError, "refuses access"),
    Failure("a region", CHAT, bodies.openai_error(403, "Country, region, or territory not supported"),
            ModelAuthError, "this region"),
    Failure("a model of Bedrock without access", BEDROCK,
            bodies.bedrock_error(403, "AccessDeniedException", "You don't have access to the model"),
            ModelAuthError, "refuses access"),
    Failure("an unknown model", CHAT,
            bodies.openai_error(404, "The model `stub` does not exist", code="model_not_found"), ModelNotFound,
            "check model.name"),
    Failure("an unknown model of Anthropic", ANTHROPIC,
            bodies.anthropic_error(404, "not_found_error", "model: claude-sonnet-4-5"), ModelNotFound,
            "check model.name"),
    Failure("an unknown model of Ollama", OLLAMA, Answer(status=404, body={"error": "model 'stub' not found"}),
            ModelNotFound, "check model.name"),
    Failure("an unknown path", CHAT, Answer(status=404, body={"detail": "Not Found"}), ModelNotFound,
            "check model.base_url", blames_address=True),
    Failure("a path that LM Studio does not know", CHAT,
            Answer(body={"error": "Unexpected endpoint or method. (POST /chat/completions)"}), ModelNotFound,
            "check model.base_url", blames_address=True),
    Failure("a request that took too long", CHAT, bodies.openai_error(408, "Request timed out"), ModelTimeout,
            "raise model.timeout_s"),
    Failure("a conflict", CHAT, bodies.openai_error(409, "Please try again"), ModelError, "HTTP 409"),
    Failure("a request that is too large", ANTHROPIC,
            bodies.anthropic_error(413, "request_too_large", "Request exceeds the maximum allowed number of bytes."),
            ContextTooLong, "too little context"),
    Failure("a full context", CHAT,
            bodies.openai_error(400, "This model's maximum context length is 8192 tokens. However, your messages "
                                "resulted in 9000 tokens.", code="context_length_exceeded", param="messages"),
            ContextTooLong, "too little context"),
    Failure("a full context of vLLM", CHAT,
            bodies.openai_error(400, "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum "
                                "context length is 2048 tokens and your request has 1500 input tokens"),
            ContextTooLong, "too little context"),
    Failure("a full context of Anthropic", ANTHROPIC,
            bodies.anthropic_error(400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"),
            ContextTooLong, "too little context"),
    Failure("a full context of Gemini", GEMINI,
            bodies.gemini_error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of "
                                "tokens allowed (8)."), ContextTooLong, "too little context"),
    Failure("a request that is not valid", CHAT,
            Answer(status=422, body={"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Required"}]}),
            ModelRequestRejected, "refused the request"),
    Failure("a rate limit", CHAT, bodies.openai_error(429, "Rate limit reached", code="rate_limit_exceeded"),
            ModelRateLimited, "slow down"),
    Failure("an account without credit", CHAT,
            bodies.openai_error(429, "You exceeded your current quota", code="insufficient_quota"), ModelRateLimited,
            "plan and billing"),
    Failure("an account without credit at Anthropic", ANTHROPIC,
            bodies.anthropic_error(400, "invalid_request_error", "Your credit balance is too low"), ModelRateLimited,
            "plan and billing"),
    Failure("an account without credit at DeepSeek", "deepseek:deepseek-chat",
            bodies.openai_error(402, "Insufficient Balance"), ModelRateLimited, "plan and billing"),
    Failure("a limit of a minute of Gemini", GEMINI,
            bodies.gemini_error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota",
                                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}),
            ModelRateLimited, "wait 37 s"),
    Failure("a throttled call of Bedrock", BEDROCK,
            bodies.bedrock_error(429, "ThrottlingException", "Too many requests"), ModelRateLimited, "slow down"),
    Failure("a server's fault", CHAT, bodies.openai_error(500, "The server had an error"), ModelError, "HTTP 500"),
    Failure("a gateway's fault", CHAT, bodies.openai_error(502, "Bad gateway"), ReplyLost, "gateway"),
    Failure("a server that starts", CHAT, bodies.openai_error(503, "Loading model"), ModelError, "still starting"),
    Failure("an overloaded server", ANTHROPIC, bodies.anthropic_error(529, "overloaded_error", "Overloaded"),
            ModelError, "overloaded"),
    Failure("an overloaded Gemini", GEMINI, bodies.gemini_error(503, "UNAVAILABLE", "The model is overloaded."),
            ModelError, "overloaded"),
    Failure("an error of a provider behind OpenRouter", "openrouter:some/model",
            Answer(body={"error": {"message": "Provider returned error", "code": 502}}), ReplyLost, "gateway"),
    Failure("an error in place of a reply", CHAT, Answer(body={"error": {"message": "oops", "code": "x"}}), ReplyLost,
            "reported an error"),
    Failure("an error with a status in place of a reply", CHAT,
            Answer(body={"error": {"message": "no model is \u001b[31mloaded", "code": 503}}), ModelError,
            "overloaded"),
    Failure("a fault in the middle of Ollama's stream", OLLAMA,
            Answer(body=b'{"message": {"role": "assistant", "content": "a"}, "done": false}\n{"error": "oops"}\n'),
            ModelError, "failed"),
    Failure("a fault in the middle of a stream", ANTHROPIC,
            bodies.event_stream({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ReplyLost, "reported an error", streamed=True),
    Failure("a fault in the middle of a stream of OpenAI's protocol", CHAT,
            bodies.event_stream({"error": {"message": "oops", "type": "server_error"}}), ReplyLost,
            "reported an error", streamed=True),
    Failure("a response that failed", RESPONSES,
            bodies.openai_response(status="failed", error={"code": "server_error", "message": "oops"}), ReplyLost,
            "reported an error"),
    Failure("no choices", CHAT, Answer(body={"choices": []}), ModelNotFound, "base_url", blames_address=True),
)  # fmt: skip


@pytest.mark.usefixtures("aws_region")
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.what.replace(" ", "-"))
async def test_each_failure_has_its_class_and_its_remedy(failure: Failure, stub: OpenAIStub) -> None:
    answers = [bodies.RESPONSES_ONLY, failure.answer] if failure.model == RESPONSES else [failure.answer]
    case = Case(failure.what, failure.model, failure.answer, streamed=failure.streamed)
    with pytest.raises(failure.error) as caught:
        await ask(case, stub, *answers)
    assert failure.says in str(caught.value)
    assert ("base_url" in str(caught.value)) is failure.blames_address
    assert caught.value.message.isprintable()
    assert len(stub.requests) == len(answers)


@dataclass(frozen=True)
class Refusal:
    """A part of a request that a server refuses, and how the next request differs: its absent or new fields."""

    what: str
    model: str
    answer: Answer
    refused: str
    absent: tuple[str, ...] = ()
    present: dict[str, Any] = field(default_factory=dict)
    case: dict[str, Any] = field(default_factory=dict)


SCHEMA = {"title": "Answer", "type": "object", "properties": {}, "additionalProperties": False}
REFUSALS = (
    Refusal("temperature", CHAT,
            bodies.openai_error(400, "Unsupported value: 'temperature' does not support 0.0 with this model. Only the "
                                "default (1) value is supported.", param="temperature", code="unsupported_value"),
            "temperature", ("temperature",)),
    Refusal("temperature of Anthropic", ANTHROPIC,
            bodies.anthropic_error(400, "invalid_request_error", "`temperature` is deprecated for this model."),
            "temperature", ("temperature",)),
    Refusal("seed", CHAT,
            Answer(status=422, body={"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"],
                                                 "msg": "Extra inputs are not permitted", "input": 0}]}),
            "seed", ("seed",)),
    Refusal("stop", CHAT,
            bodies.openai_error(400, "Unsupported parameter: 'stop' is not supported with this model.", param="stop"),
            "stop", ("stop",), case={"sampling": {"stop": ("END",)}}),
    Refusal("max_tokens", CHAT,
            bodies.openai_error(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                                "'max_completion_tokens' instead.", param="max_tokens"),
            "max_tokens", ("max_tokens",), {"max_completion_tokens": 1024}),
    Refusal("max_completion_tokens", "openai:gpt-5",
            bodies.openai_error(400, "Unrecognized request argument supplied: max_completion_tokens"),
            "max_tokens", ("max_completion_tokens",), {"max_tokens": 1024}),
    Refusal("a reply that is too long", ANTHROPIC,
            bodies.anthropic_error(400, "invalid_request_error", "max_tokens: 1024 > 512, which is the maximum allowed "
                                   "number of output tokens for claude-sonnet-4-5-20250929"),
            "max_tokens", present={"max_tokens": 512}),
    Refusal("response_format", CHAT, bodies.openai_error(400, "This response_format type is unavailable now"),
            "response_format", ("response_format",), case={"sampling": {"schema": SCHEMA}}),
    Refusal("logprobs", CHAT, bodies.openai_error(400, "logprobs are not supported", param="logprobs"), "logprobs",
            ("logprobs",), case={"sampling": {"logprobs": True}}),
    Refusal("tools of vLLM", CHAT,
            bodies.openai_error(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
            "tools", ("tools",), case={"calls": []}),
    Refusal("tools of Ollama", OLLAMA, Answer(status=400, body={"error": "stub does not support tools"}), "tools",
            case={"calls": []}),
    Refusal("a system role", CHAT, bodies.openai_error(500, "System role not supported"), "system_role",
            present={"messages": [{"role": "user", "content": "be brief\n\nhi"}]}),
    Refusal("stream_options", CHAT, bodies.openai_error(400, "Unknown parameter: stream_options.include_usage"),
            "stream_options", ("stream_options",), case={"streamed": True}),
    Refusal("Chat Completions", CHAT, bodies.RESPONSES_ONLY, "chat_completions", ("seed", "messages", "stop"),
            {"store": False, "max_output_tokens": 1024}),
)  # fmt: skip
GOOD = {
    CHAT: bodies.openai_chat({"content": "a"}),
    "openai:gpt-5": bodies.openai_chat({"content": "a"}),
    ANTHROPIC: bodies.anthropic(bodies.text_block("a")),
    OLLAMA: bodies.ollama({"content": "a"}),
}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.what.replace(" ", "-"))
async def test_a_refused_part_is_dropped_named_once_and_remembered(
    refusal: Refusal, stub: OpenAIStub
) -> None:
    good = GOOD[refusal.model]
    if refusal.refused == "chat_completions":
        good = bodies.openai_response(bodies.output_text("a"))
    case = Case(refusal.what, refusal.model, good, **refusal.case)
    first = await ask(case, stub, refusal.answer, good)
    second = await ask(case, stub, good)

    assert (first.text, first.refused, second.text, second.refused) == ("a", (refusal.refused,), "a", ())
    _, *requests = stub.requests
    assert len(requests) == 2  # the second call repeats no request
    for request in requests:
        assert not request.keys() & set(refusal.absent)
        assert {name: request[name] for name in refusal.present} == refusal.present


def test_the_table_has_at_least_sixty_kinds() -> None:
    assert len(REPLIES) + len(FAILURES) + len(REFUSALS) >= 60
