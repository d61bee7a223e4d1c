"""Conversion of LangChain's messages into our `Reply`: text, finish reason and usage.

Token counts come from a server: they may be missing, negative, a string, or a trillion. They decide when a
budget ends, so an implausible count is replaced by our own upper bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suture.models.chat_model import FinishReason, Message, Reply, Sampling, ToolCall
from suture.models.providers.http_guard import ResponseRefused
from suture.models.providers.tool_calls import read_tool_calls
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
    "length": "length",
    "max_tokens": "length",
}
"""Provider's finish reason -> ours; any other is `other`."""
ANTHROPIC_CACHE_LIFETIMES = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""Keys of prompt tokens that Anthropic put into its cache, in LangChain's usage."""


def provider_finish_reason(answer: AIMessage) -> str:
    """Return why the reply ended, in the provider's words; empty if it does not say."""
    reported = answer.response_metadata
    return str(
        reported.get("finish_reason") or reported.get("stop_reason") or reported.get("done_reason") or ""
    )


def convert_answers(
    answers: Sequence[AIMessage], messages: Sequence[Message], sampling: Sampling, name: str
) -> list[Reply]:
    """Convert the answers of one request into replies, each with its own token count.

    A text that is longer than the requested tokens can be is refused.
    """
    replies = [_convert_answer(answer, messages, sampling, name, len(answers)) for answer in answers]
    if len(replies) == 1:
        return replies
    # The usage of a request does not tell how many tokens each of its replies has. So the log probabilities are
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
    """Convert one answer into a reply; refuse a text that is too long for the requested tokens."""
    calls = read_tool_calls(answer, id_prefix=f"call_{len(messages)}_")
    text = str(answer.text)
    if not sampling.tools and calls:  # the tool that stands for a schema (see `constrain_to_schema`)
        text, calls = calls[0].undecoded or json.dumps(calls[0].arguments, ensure_ascii=False), ()
    if messages[-1].role == "assistant":  # some servers repeat the prefill
        text = text.removeprefix(messages[-1].content)
    max_bytes = MAX_TEXT_BYTES_PER_TOKEN * sampling.max_tokens + SPARE_TEXT_BYTES
    size_bytes = token_upper_bound(text) + token_upper_bound(_arguments_text(calls))
    if size_bytes > max_bytes:
        raise ResponseRefused(
            "too_long",
            f"a text of {size_bytes:,} bytes, but {sampling.max_tokens:,} tokens were asked for",
        )
    tokens = _token_logprobs(answer)
    reply = Reply(
        text=text,
        tool_calls=calls,
        finish=FINISHES.get((provider_finish_reason(answer) or "stop").lower(), "other"),
        logprobs=tuple(logprob for _, logprob in tokens),
        tokens=tuple(token for token, _ in tokens),
        model=name,
    )
    usage = getattr(answer, "usage_metadata", None) or {}
    return _add_usage(reply, usage, messages, sampling, reply_count)


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
    written_tokens = token_upper_bound(reply.text + _arguments_text(reply.tool_calls))
    prompt_tokens = _plausible(
        reported.get("input_tokens"),
        minimum=sum(token_lower_bound(message.content) for message in messages),
        # Twice the bound, by judgement: a provider may count in its own way, but not in another dimension.
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
        cached_tokens=cached_tokens,
        cache_write_tokens=_plausible(written_tokens, minimum=0, maximum=new_tokens) or 0,
    )


def _plausible(count: object, *, minimum: int, maximum: int) -> int | None:
    """Return the count if it can be true, else `None`."""
    return count if type(count) is int and minimum <= count <= maximum else None
