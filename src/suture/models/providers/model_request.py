"""Building of one request from messages and sampling, as far as the model and its server take each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import Message, RequestParameter, Sampling
from suture.models.profiles import ModelProfile
from suture.models.providers.connections import Connection
from suture.models.providers.error_table import LearnedRefusals
from suture.models.providers.request_conversion import (
    CACHE_MARK,
    constrain_to_schema,
    convert_messages,
    declare_tools,
    mark_cached_prefixes,
    mark_for_anthropic,
    merge_system_message,
    with_extra_body,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import Runnable

SAMPLING_FIELDS: tuple[RequestParameter, ...] = ("temperature", "seed", "logprobs", "reasoning_effort")
"""Parameters that are fields of LangChain's models, and that a request can do without."""
LIMIT_FIELDS = ("max_tokens", "num_predict", "max_output_tokens")
"""The fields of LangChain's models for the reply's length: most, Ollama's and Gemini's."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request that is ready to be sent.

    Attributes:
        stop: Where the reply ends; `None` if the server is not asked to stop anywhere.
        parts: The parameters that the request has.
        max_tokens: The requested length of the reply.
        streams: Whether the reply is read while it is generated.
    """

    chat: Runnable[LanguageModelInput, AIMessage]
    turns: list[BaseMessage]
    stop: list[str] | None
    parts: frozenset[RequestParameter]
    max_tokens: int
    streams: bool


@dataclass(frozen=True, kw_only=True)
class RequestContext:
    """What a request depends on besides its messages and sampling.

    Attributes:
        profile: What the model can do.
        refusals: What its server was seen to refuse.
        originals: See `convert_messages`.
        listens: Whether somebody wants to read the reply while it is generated.
    """

    profile: ModelProfile
    refusals: LearnedRefusals
    originals: Mapping[str, AIMessage]
    seed: int
    listens: bool


def build_request(
    connection: Connection,
    messages: Sequence[Message],
    samplings: Sequence[Sampling],
    context: RequestContext,
) -> ModelRequest:
    """Return the request for one or several replies to a prompt (see `LangChainModel.complete_batch`)."""
    sampling = samplings[0]
    refused = _refused_parts(context)
    parts = _wanted_parts(connection, messages, sampling, context) - refused
    max_tokens = max(each.max_tokens for each in samplings)
    max_tokens = min(max_tokens, context.refusals.max_reply_tokens or max_tokens)
    model = _set_fields(connection.chat, sampling, context, parts, max_tokens)
    model = _choose_protocol(model, refused)
    # A last message of the assistant is a prefill: the beginning of the reply, which the model continues.
    if messages[-1].role == "assistant" and connection.prefill_body:
        model = with_extra_body(model, connection.prefill_body)
    if len(samplings) > 1:
        # The usage does not say how many tokens each reply has, but the log probabilities do.
        model = model.model_copy(update={"n": len(samplings), "logprobs": True, "top_logprobs": 1})
    if "system_role" in refused:
        messages = merge_system_message(messages)
    turns = convert_messages(messages, context.originals)
    tools = declare_tools(sampling.tools) if "tools" in parts else []
    chat: Runnable[LanguageModelInput, AIMessage]
    marks = connection.cache_marks if context.profile.prompt_cache == "explicit" else ""
    if marks in ("anthropic", "messages"):
        mark_cached_prefixes(turns, has_tools=bool(tools))
    if tools and marks == "anthropic":
        tools[-1] = mark_for_anthropic(tools[-1])
    if tools:
        chat = model.bind_tools(tools)
    else:
        chat = constrain_to_schema(model, sampling.schema if "response_format" in parts else None)
    if marks == "argument":
        chat = chat.bind(cache_control=CACHE_MARK)
    return ModelRequest(
        chat=chat,
        turns=turns,
        stop=list(sampling.stop) if "stop" in parts else None,
        parts=parts,
        max_tokens=max_tokens,
        streams=_streams(connection, samplings, context, refused),
    )


def _refused_parts(context: RequestContext) -> frozenset[RequestParameter]:
    """Return what must not be sent: by the profile, or as seen from the server's errors."""
    known = {part for part in SAMPLING_FIELDS if part in context.profile.rejected_parameters}
    if not context.profile.stop or "stop" in context.profile.rejected_parameters:
        known.add("stop")
    return frozenset(known | context.refusals.parameters)


def _wanted_parts(
    connection: Connection, messages: Sequence[Message], sampling: Sampling, context: RequestContext
) -> frozenset[RequestParameter]:
    fields = type(connection.chat).model_fields
    speaks_chat_completions = connection.is_openai_protocol and not getattr(
        connection.chat, "speaks_responses_api", False
    )
    wanted: dict[RequestParameter, bool] = {
        "temperature": "temperature" in fields,
        "seed": "seed" in fields,
        "logprobs": "logprobs" in fields and sampling.logprobs,
        "reasoning_effort": "reasoning_effort" in fields and bool(context.profile.reasoning_effort),
        "stop": bool(sampling.stop),
        "response_format": sampling.schema is not None and not sampling.tools,
        "tools": bool(sampling.tools),
        "system_role": any(message.role == "system" for message in messages),
        "stream_options": speaks_chat_completions and context.listens,
        "max_tokens": speaks_chat_completions,
        "chat_completions": speaks_chat_completions,
    }
    return frozenset(part for part, is_wanted in wanted.items() if is_wanted)


def _set_fields(
    chat: BaseChatModel,
    sampling: Sampling,
    context: RequestContext,
    parts: frozenset[RequestParameter],
    max_tokens: int,
) -> BaseChatModel:
    """Return a copy of `chat` with the sampling parameters.

    The fields of LangChain's models are set instead of passing call arguments: each provider takes different
    arguments, but nearly all have these fields.
    """
    values: dict[str, Any] = {
        "temperature": sampling.temperature,
        "seed": context.seed,
        "logprobs": True,
        "reasoning_effort": context.profile.reasoning_effort,
    }
    fields = type(chat).model_fields
    update = {name: value for name, value in values.items() if name in parts}
    # A field that is left out keeps LangChain's default, which may be a temperature of its own.
    update |= {name: None for name in ("temperature", "seed") if name in fields and name not in parts}
    return chat.model_copy(update=update | {name: max_tokens for name in LIMIT_FIELDS if name in fields})


def _choose_protocol(chat: BaseChatModel, refused: frozenset[RequestParameter]) -> BaseChatModel:
    """Return a model of OpenAI's protocol that calls the API, and names the token limit, as its server wants."""
    update: dict[str, Any] = {}
    if "max_tokens" in refused and (name := getattr(chat, "token_limit_name", None)):
        update["token_limit_name"] = (
            "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
        )
    if "chat_completions" in refused:
        update["use_responses_api"] = True
    return chat.model_copy(update=update) if update else chat


def _streams(
    connection: Connection,
    samplings: Sequence[Sampling],
    context: RequestContext,
    refused: frozenset[RequestParameter],
) -> bool:
    # Without `stream_options` a stream has no usage, and the budget would be charged an upper bound.
    is_possible = connection.streams and "stream_options" not in refused
    return context.listens and is_possible and len(samplings) == 1 and not samplings[0].logprobs
