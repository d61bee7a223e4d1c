"""Conversion of LangChain's messages into our `Reply`: text, tool calls, finish reason and usage.

Token counts come from a server: they may be missing, negative, a string, or a trillion. They decide when a
budget ends, so an implausible count is replaced by our own upper bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import FinishReason, Message, Reply, Sampling, ToolCall
from suture.models.providers.http_guard import ResponseRefused
from suture.models.thinking import separate_thinking
from suture.models.token_counting import prompt_token_upper_bound, token_lower_bound, token_upper_bound
from suture.models.tuning import MAX_PROVIDER_OVERHEAD_TOKENS, MAX_TEXT_BYTES_PER_TOKEN, SPARE_TEXT_BYTES

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


FINISHES: Mapping[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "tool_use": "stop",
    "function_call": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "complete": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "sensitive": "content_filter",
}
"""Provider's finish reason in lower case -> ours; any other is `other`. The names are those of OpenAI (Chat
Completions and Responses), Anthropic, Gemini, Bedrock, Mistral, Together, Cohere and Zhipu, in this order of
frequency. Anthropic's `pause_turn` is among the others: the turn is not over, and no code may be read from it."""
ANTHROPIC_CACHE_LIFETIMES = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""Keys of LangChain's usage details for tokens that Anthropic put into its cache, by the lifetime there."""
FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
"""Where LangChain's packages keep the reason in a message's metadata."""


def provider_finish_reason(answer: AIMessage) -> str:
    """Return why the reply ended, in the provider's words; empty if it does not say."""
    reported = answer.response_metadata
    details = reported.get("incomplete_details")  # of the Responses API
    if isinstance(details, Mapping) and details.get("reason"):
        return str(details["reason"])
    feedback = reported.get("prompt_feedback")  # of Gemini, for a prompt that it does not answer
    if isinstance(feedback, Mapping) and feedback.get("block_reason"):
        return "content_filter"
    return next(
        (str(reported[key]) for key in FINISH_KEYS if reported.get(key)), str(reported.get("status") or "")
    )


def _read_finish(answer: AIMessage) -> FinishReason:
    if _refusal_text(answer):
        return "refusal"
    # Gemini behind OpenAI's protocol adds details: `content_filter: RECITATION`.
    name = (provider_finish_reason(answer) or "stop").lower().partition(":")[0]
    return FINISHES.get(name, "other")


def _refusal_text(answer: AIMessage) -> str:
    """Return the text with which OpenAI's models refuse; empty if they do not."""
    blocks = [block.get("refusal") for block in _content_blocks(answer) if block.get("type") == "refusal"]
    return "".join(map(str, filter(None, (answer.additional_kwargs.get("refusal"), *blocks))))


def _content_blocks(answer: AIMessage) -> list[Mapping[str, Any]]:
    content = answer.content if isinstance(answer.content, list) else []
    return [block for block in content if isinstance(block, Mapping)]


def _read_thinking(answer: AIMessage) -> str:
    """Return what the model thought, wherever its provider puts that."""
    fields = (answer.additional_kwargs.get(name) for name in ("reasoning_content", "reasoning"))
    blocks = [
        block
        for block in _content_blocks(answer)
        if "thinking" in block or "reasoning" in str(block.get("type"))
    ]
    return "\n".join(filter(None, map(_thinking_text, (next(filter(None, fields), ""), *blocks))))


def _thinking_text(value: object) -> str:
    """Return the text in a piece of thinking: a string, a block, or a list of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_thinking_text, value)))
    if not isinstance(value, Mapping):
        return ""
    # Anthropic, Gemini: `thinking`; Responses API: `summary` with strings; Bedrock: `reasoning_content` with a string.
    names = ("thinking", "reasoning", "text", "summary", "content", "reasoning_content")
    return next((text for name in names if (text := _thinking_text(value.get(name)))), "")


def convert_answers(
    answers: Sequence[AIMessage], messages: Sequence[Message], sampling: Sampling, name: str
) -> list[Reply]:
    """Convert the answers of one request into replies, each with its own token count.

    A reply that is longer than the requested tokens can be is refused.
    """
    replies = [_convert_answer(answer, messages, sampling, name, len(answers)) for answer in answers]
    if len(replies) == 1:
        return replies
    # The usage of a request does not say how many tokens each of its replies has. So the log probabilities are
    # counted, which were requested only for that. All but the first reply had a cached prompt.
    return [
        replace(
            reply,
            completion_tokens=len(reply.logprobs),
            cached_tokens=reply.prompt_tokens if number else reply.cached_tokens,
            logprobs=(),
            tokens=(),
        )
        for number, reply in enumerate(replies)
    ]


def _convert_answer(
    answer: AIMessage, messages: Sequence[Message], sampling: Sampling, name: str, reply_count: int
) -> Reply:
    """Convert one answer into a reply; refuse one that is too long for the requested tokens."""
    calls = read_tool_calls(answer, id_prefix=f"call_{len(messages)}_")
    text = str(answer.text) or _refusal_text(answer)
    if not sampling.tools and calls:  # the tool that stands for a schema (see `constrain_to_schema`)
        text, calls = calls[0].undecoded or json.dumps(calls[0].arguments, ensure_ascii=False), ()
    has_prefill = messages[-1].role == "assistant"
    if has_prefill:  # some servers repeat the prefill
        text = text.removeprefix(messages[-1].content)
    tokens = _token_logprobs(answer)
    reply = Reply(
        text=text,
        thinking=_read_thinking(answer),
        tool_calls=calls,
        finish=_read_finish(answer),
        logprobs=tuple(logprob for _, logprob in tokens),
        tokens=tuple(token for token, _ in tokens),
        model=name,
    )
    _refuse_too_long_text(reply, sampling)
    usage = getattr(answer, "usage_metadata", None) or {}
    reply = _add_usage(reply, usage, messages, sampling, reply_count)
    if not has_prefill:  # a model that continues our text does not think before it
        reply = separate_thinking(reply)
    return replace(reply, text=_cut_at_stop(reply.text, sampling.stop))


def _refuse_too_long_text(reply: Reply, sampling: Sampling) -> None:
    max_bytes = MAX_TEXT_BYTES_PER_TOKEN * sampling.max_tokens + SPARE_TEXT_BYTES
    if (size_bytes := _written_bytes(reply)) > max_bytes:
        raise ResponseRefused(
            "too_long",
            f"a text of {size_bytes:,} bytes, but {sampling.max_tokens:,} tokens were asked for",
        )


def _cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """Return the reply before the first stop string; servers that ignore stop strings continue."""
    return text[: min((text.index(each) for each in stop if each in text), default=len(text))]


def _written_bytes(reply: Reply) -> int:
    """Return the size of everything that the model wrote, which is an upper bound of its tokens."""
    return token_upper_bound(reply.thinking + reply.text + _arguments_text(reply.tool_calls))


def _arguments_text(calls: Sequence[ToolCall]) -> str:
    """Return what the model wrote to call tools, for counting."""
    return "".join(
        call.name + (call.undecoded or json.dumps(call.arguments, ensure_ascii=False)) for call in calls
    )


def _token_logprobs(answer: AIMessage) -> list[tuple[str, float]]:
    """Return `(token, log probability)` of each token; an empty list unless all of them are present."""
    logprobs = answer.response_metadata.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens: list[tuple[str, float]] = []
    for entry in content if isinstance(content, list) else ():
        logprob: object = entry.get("logprob") if isinstance(entry, Mapping) else None
        if not isinstance(logprob, int | float) or not math.isfinite(logprob) or logprob > 0:
            return []
        tokens.append((str(entry.get("token", "")), float(logprob)))
    return tokens


def _add_usage(
    reply: Reply,
    reported: Mapping[str, Any],
    messages: Sequence[Message],
    sampling: Sampling,
    reply_count: int,
) -> Reply:
    """Return the reply with the tokens that are charged to the budget.

    `reported` is the provider's usage with LangChain's keys. The provider may count all `reply_count` replies of
    a request together.
    """
    tool_tokens = token_upper_bound(
        "".join(_arguments_text(message.tool_calls) for message in messages) + repr(sampling.tools)
    )
    written_tokens = _written_bytes(reply)
    prompt_tokens = _plausible(
        reported.get("input_tokens"),
        minimum=sum(token_lower_bound(message.content) for message in messages),
        # Twice the bound, by judgement: a provider may count differently, but not by orders of magnitude.
        maximum=2 * (prompt_token_upper_bound(messages) + tool_tokens) + MAX_PROVIDER_OVERHEAD_TOKENS,
    )
    # A server that ignores our limit may write more tokens, but never more tokens than bytes.
    completion_tokens = _plausible(
        reported.get("output_tokens"),
        minimum=token_lower_bound(reply.text),
        maximum=reply_count * max(sampling.max_tokens, written_tokens),
    )
    if prompt_tokens is None or completion_tokens is None:
        # If one count is wrong, the other is not trusted either.
        return replace(
            reply,
            prompt_tokens=prompt_token_upper_bound(messages),
            completion_tokens=min(written_tokens, sampling.max_tokens),
            counted_by="bound",
        )
    details = reported.get("input_token_details")
    details = details if isinstance(details, Mapping) else {}
    cached_tokens = _plausible(details.get("cache_read"), minimum=0, maximum=prompt_tokens) or 0
    # LangChain moves Anthropic's count to the key of its lifetime where the provider gives one.
    written = [details.get(key) for key in ("cache_creation", *ANTHROPIC_CACHE_LIFETIMES)]
    written_tokens = sum(count for count in written if type(count) is int)
    new_tokens = prompt_tokens - cached_tokens
    return replace(
        reply,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        thinking_tokens=_thinking_tokens(reported, completion_tokens),
        cached_tokens=cached_tokens,
        cache_write_tokens=_plausible(written_tokens, minimum=0, maximum=new_tokens) or 0,
    )


def _thinking_tokens(reported: Mapping[str, Any], completion_tokens: int) -> int:
    details = reported.get("output_token_details")
    tokens = details.get("reasoning") if isinstance(details, Mapping) else None
    return _plausible(tokens, minimum=0, maximum=completion_tokens) or 0


def _plausible(count: object, *, minimum: int, maximum: int) -> int | None:
    """Return the count if it can be true, else `None`."""
    return count if type(count) is int and minimum <= count <= maximum else None


@dataclass(frozen=True, kw_only=True)
class _RawCall:
    """A call as LangChain has it; `arguments` is a string or an object."""

    id: str
    name: str
    arguments: object


def read_tool_calls(answer: AIMessage, *, id_prefix: str) -> tuple[ToolCall, ...]:
    """Return the calls of an answer.

    Args:
        answer: The provider's answer, complete or put together from the chunks of a stream.
        id_prefix: Begins the id of a call whose own id is missing, or belongs to an earlier call of the answer.
    """
    calls: list[ToolCall] = []
    for number, raw in enumerate(_raw_calls(answer), 1):
        is_taken = not raw.id or any(call.id == raw.id for call in calls)
        arguments, undecoded = _decode_arguments(raw.arguments)
        calls.append(
            ToolCall(
                id=f"{id_prefix}{number}" if is_taken else raw.id,
                name=raw.name,
                arguments=arguments,
                undecoded=undecoded,
            )
        )
    return tuple(calls)


def _raw_calls(answer: AIMessage) -> list[_RawCall]:
    # LangChain completes the arguments of a streamed call that was cut off, so that half a file would look like
    # a whole one. The chunks still hold the raw arguments.
    chunks = getattr(answer, "tool_call_chunks", None)
    calls: Sequence[Any] = chunks or (*answer.tool_calls, *answer.invalid_tool_calls)
    raw_calls = [
        _RawCall(id=call.get("id") or "", name=call.get("name") or "", arguments=call.get("args"))
        for call in calls
    ]
    # LangChain sorts calls into readable and unreadable ones; the blocks of the answer have the model's order.
    order = _call_order(answer)
    return sorted(raw_calls, key=lambda call: order.index(call.id) if call.id in order else len(order))


def _call_order(answer: AIMessage) -> list[str]:
    """Return the ids of the calls among the answer's blocks; empty if it is a plain string."""
    blocks = answer.content if isinstance(answer.content, list) else ()
    return [str(block.get("call_id") or block.get("id")) for block in blocks if isinstance(block, Mapping)]


def _decode_arguments(arguments: object) -> tuple[Mapping[str, Any], str]:
    """Return `(arguments, "")`, or `({}, string)` if the string is not a JSON object."""
    if arguments is None or arguments == "":
        return {}, ""  # how OpenAI's protocol calls a tool without inputs
    value = _load_json(arguments)
    if isinstance(value, str):  # some servers encode the arguments twice
        value = _load_json(value)
    if isinstance(value, Mapping):
        return value, ""
    return {}, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _load_json(value: object) -> object:
    """Return the value of a JSON string, or `value` itself if it is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, strict=False)  # models write line breaks inside of strings
    except (ValueError, RecursionError):
        return value
