"""Conversion of LangChain's messages into our `Reply`: text, finish reason and usage.

Token counts come from a server: they may be missing, negative, a string, or a trillion. They decide when a
budget ends, so an implausible count is replaced by our own upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from suture.models.chat_model import FinishReason, Message, Reply, Sampling
from suture.models.providers.http_guard import ResponseRefused
from suture.models.structured_output.reply_schemas import answer_text, answer_text_with_tool_call
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


def provider_finish_reason(answer: AIMessage) -> str:
    """Return why the reply ended, in the provider's words; empty if it does not say."""
    reported = answer.response_metadata
    return str(
        reported.get("finish_reason") or reported.get("stop_reason") or reported.get("done_reason") or ""
    )


def convert_answer(
    answer: AIMessage, messages: Sequence[Message], sampling: Sampling, name: str, replies: int
) -> Reply:
    """Convert an answer into a `Reply`.

    Raises:
        ResponseRefused: The text is longer than the requested tokens can be.
    """
    text = answer_text_with_tool_call(answer) if sampling.tools else answer_text(answer)
    if messages[-1].role == "assistant":  # some servers repeat the prefill
        text = text.removeprefix(messages[-1].content)
    most_bytes = MAX_TEXT_BYTES_PER_TOKEN * sampling.max_tokens + SPARE_TEXT_BYTES
    if (size_bytes := token_upper_bound(text)) > most_bytes:
        asked = f"{sampling.max_tokens:,} tokens were asked for"
        raise ResponseRefused("too_long", f"a text of {size_bytes:,} bytes, but {asked}")
    usage = measure_usage(getattr(answer, "usage_metadata", None), messages, text, sampling, replies)
    tokens = _tokens(answer)
    return Reply(
        text=text,
        finish=FINISHES.get((provider_finish_reason(answer) or "stop").lower(), "other"),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        counted_by=usage.counted_by,
        logprobs=tuple(logprob for _, logprob in tokens),
        tokens=tuple(token for token, _ in tokens),
        model=name,
    )


def _tokens(answer: AIMessage) -> list[tuple[str, float]]:
    """Return each token with its log probability; nothing unless all of them are present."""
    logprobs = answer.response_metadata.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens: list[tuple[str, float]] = []
    for one in content if isinstance(content, list) else ():
        logprob: object = one.get("logprob") if isinstance(one, Mapping) else None
        if not isinstance(logprob, int | float) or not math.isfinite(logprob) or logprob > 0:
            return []
        tokens.append((str(one.get("token", "")), float(logprob)))
    return tokens


def count_replies_separately(replies: Sequence[Reply]) -> list[Reply]:
    """Give each reply of one request its own token count; all but the first had a cached prompt."""
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


@dataclass(frozen=True, kw_only=True)
class TokenUsage:
    """The tokens of a reply.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the reply, including reasoning that is not shown.
        cached_tokens: Prompt tokens that the provider took from its cache.
        counted_by: `provider`, or `bound` if the provider's count is missing or implausible.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    counted_by: Literal["provider", "bound"]


def measure_usage(
    reported: Mapping[str, Any] | None,
    messages: Sequence[Message],
    text: str,
    sampling: Sampling,
    replies: int,
) -> TokenUsage:
    """Return the usage to charge to the budget.

    Args:
        reported: The provider's usage, with LangChain's keys.
        messages: The prompt, oldest message first.
        text: The reply's text.
        sampling: How the reply was generated.
        replies: How many replies the request returned; the provider counts them together.
    """
    reported = reported or {}
    prompt = _plausible(
        reported.get("input_tokens"),
        minimum=sum(token_lower_bound(message.content) for message in messages),
        maximum=2 * prompt_token_upper_bound(messages) + MAX_PROVIDER_OVERHEAD_TOKENS,
    )
    # A server that ignores our limit may write more tokens, but never more tokens than bytes.
    completion = _plausible(
        reported.get("output_tokens"),
        minimum=token_lower_bound(text),
        maximum=replies * max(sampling.max_tokens, token_upper_bound(text)),
    )
    if prompt is None or completion is None:  # if one count is wrong, the other is not trusted either
        return TokenUsage(
            prompt_tokens=prompt_token_upper_bound(messages),
            completion_tokens=min(token_upper_bound(text), sampling.max_tokens),
            cached_tokens=0,
            counted_by="bound",
        )
    details = reported.get("input_token_details")
    cached = details.get("cache_read") if isinstance(details, Mapping) else None
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_plausible(cached, minimum=0, maximum=prompt) or 0,
        counted_by="provider",
    )


def _plausible(count: object, *, minimum: int, maximum: int) -> int | None:
    """Return the count if it can be true, else `None`."""
    return count if type(count) is int and minimum <= count <= maximum else None
