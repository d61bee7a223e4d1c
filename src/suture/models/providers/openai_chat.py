"""LangChain's model of OpenAI's protocols, with what LangChain leaves out: thinking, refusals, and the token limit's
name.

Importing this module imports OpenAI's SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from suture.models.providers.http_guard import repair_counts

THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields next to `content` in which servers put the thinking: DeepSeek, Qwen, vLLM and llama.cpp the first, newer
versions of vLLM and OpenRouter the second. OpenRouter's details hold signatures, so they are sent back with tool
results."""
KEPT_FIELDS = (*THINKING_FIELDS, "refusal")
CHAT_ONLY_PARAMETERS = ("seed", "n", "logprobs", "top_logprobs", "stop")
"""Parameters of Chat Completions that the Responses API does not have."""


class OpenAIProtocolChat(ChatOpenAI):
    """A model that is called by Chat Completions or the Responses API, of OpenAI or of any other server."""

    token_limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    """The parameter for the reply's length in Chat Completions. Servers older than OpenAI's reasoning models know
    only `max_tokens`, which those models refuse."""
    thinks: bool = False
    """Whether the model thinks before it answers, so that the Responses API has thinking to give back."""

    @property
    def speaks_responses_api(self) -> bool:
        """Whether requests go to the Responses API."""
        return bool(self._use_responses_api({}))

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "input" in payload:  # the Responses API
            for name in CHAT_ONLY_PARAMETERS:
                payload.pop(name, None)
            # By default OpenAI stores prompts of the Responses API, but not those of Chat Completions. Thinking that
            # is not stored travels with the conversation, encrypted.
            payload.setdefault("store", False)
            if self.thinks:
                payload.setdefault("include", ["reasoning.encrypted_content"])
            return payload
        if self.token_limit_name == "max_tokens" and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        for message, sent in zip(self._convert_input(input_).to_messages(), payload["messages"], strict=True):
            if isinstance(message, AIMessage):
                # DeepSeek refuses the result of a tool without the thinking that led to its call.
                sent |= _select(message.additional_kwargs, THINKING_FIELDS)
        return payload

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        raw = response.model_dump(warnings=False) if isinstance(response, BaseModel) else response
        choices = raw.get("choices") if isinstance(raw, dict) else None
        calls = [choice["message"].pop("tool_calls", None) or () for choice in choices or ()]
        result = super()._create_chat_result(raw, generation_info)
        for generation, choice, raw_calls in zip(result.generations, choices or (), calls, strict=True):
            _keep_fields(generation.message, choice["message"])
            # LangChain fails where arguments are JSON but not an object, and loses the order where one is unreadable. A
            # call that it could not read keeps its raw string, which is also what the next request sends back.
            if isinstance(generation.message, AIMessage):
                generation.message.invalid_tool_calls = [_unread_call(call) for call in raw_calls]
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(
            repair_counts(chunk), default_chunk_class, base_generation_info
        )
        choices = chunk.get("choices")
        if converted is not None and choices:
            _keep_fields(converted.message, choices[0].get("delta") or {})
        return converted


def _unread_call(raw: Mapping[str, Any]) -> InvalidToolCall:
    function = raw.get("function") or {}
    return invalid_tool_call(name=function.get("name"), args=function.get("arguments"), id=raw.get("id"))


def _keep_fields(message: BaseMessage, raw: Mapping[str, Any]) -> None:
    message.additional_kwargs |= _select(raw, KEPT_FIELDS)


def _select(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name)}
