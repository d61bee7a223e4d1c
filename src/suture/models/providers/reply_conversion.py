"""What a chat model of LangChain answered, as our `Reply`: its text, how it ended, what it cost.

A count of tokens is data from a server: it may be missing, negative, a text, or a trillion. What is booked
decides when a budget ends, so what cannot be true is no count, and our own bound is booked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from suture.models.chat_model import Finish, Message, Reply, Sampling
from suture.models.providers.http_guard import WireFault
from suture.models.structured_output.reply_schemas import text_of, text_with_call
from suture.models.tokens import count_upper_bound, text_lower_bound, text_upper_bound

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage


FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "stop",
    "tool_use": "stop",
    "length": "length",
    "max_tokens": "length",
}
"""How providers call the end of a reply."""
TEXT_BYTES_PER_TOKEN = 128
"""The longest single tokens of today's models. A text longer than so many times the tokens that were asked
for is no reply to the question, whatever its server says that it is."""
SPARE_TEXT_BYTES = 4096


def said_ending(answer: AIMessage) -> str:
    """Why the reply ended, in the provider's word; empty where it did not say."""
    said = answer.response_metadata
    return str(said.get("finish_reason") or said.get("stop_reason") or said.get("done_reason") or "")


def as_reply(
    answer: AIMessage, messages: Sequence[Message], sampling: Sampling, name: str, replies: int
) -> Reply:
    """The answer in our words.

    Raises:
        WireFault: It is longer than was asked for, whichever way its bytes came.
    """
    text = text_with_call(answer) if sampling.tools else text_of(answer)
    if messages[-1].role == "assistant":  # some servers repeat it
        text = text.removeprefix(messages[-1].content)
    most_bytes = TEXT_BYTES_PER_TOKEN * sampling.max_tokens + SPARE_TEXT_BYTES
    if (size_bytes := text_upper_bound(text)) > most_bytes:
        asked = f"{sampling.max_tokens:,} tokens were asked for"
        raise WireFault("flood", f"a text of {size_bytes:,} bytes, where {asked}")
    usage = usage_of(getattr(answer, "usage_metadata", None), messages, text, sampling, replies)
    tokens = _tokens(answer)
    return Reply(
        text=text,
        finish=FINISHES.get((said_ending(answer) or "stop").lower(), "other"),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        counted=usage.counted,
        logprobs=tuple(logprob for _, logprob in tokens),
        tokens=tuple(token for token, _ in tokens),
        model=name,
    )


def _tokens(answer: AIMessage) -> list[tuple[str, float]]:
    """Each token of the reply with its log probability; nothing where not all of them were told."""
    logprobs = answer.response_metadata.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    tokens: list[tuple[str, float]] = []
    for one in content if isinstance(content, list) else ():
        logprob: object = one.get("logprob") if isinstance(one, Mapping) else None
        if not isinstance(logprob, int | float) or not math.isfinite(logprob) or logprob > 0:
            return []
        tokens.append((str(one.get("token", "")), float(logprob)))
    return tokens


def counted_apart(replies: Sequence[Reply]) -> list[Reply]:
    """Replies of one request with their own tokens; all but the first found the prompt evaluated."""
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


AROUND_THE_PROMPT = 4096
"""Tokens that a provider may add to what we send: a schema, and what it tells its model of tools (Anthropic
names up to 804 for these)."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a reply cost.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the reply, thoughts that are not shown included.
        cached_tokens: Tokens of the prompt that the provider had evaluated before.
        counted: Who counted: the provider, or where it did not, or not truly, we, as an upper `bound`.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    counted: Literal["provider", "bound"]


def usage_of(
    said: Mapping[str, Any] | None, messages: Sequence[Message], text: str, sampling: Sampling, replies: int
) -> Usage:
    """The usage to book.

    Args:
        said: What the provider says, in LangChain's words.
        messages: The prompt, oldest message first.
        text: The reply's text.
        sampling: How it was drawn.
        replies: How many came with it; the provider counts them together.
    """
    said = said or {}
    prompt = _believed(
        said.get("input_tokens"),
        least=sum(text_lower_bound(message.content) for message in messages),
        most=2 * count_upper_bound(messages) + AROUND_THE_PROMPT,
    )
    # A server that does not know our limit may write more; it cannot write more tokens than bytes.
    completion = _believed(
        said.get("output_tokens"),
        least=text_lower_bound(text),
        most=replies * max(sampling.max_tokens, text_upper_bound(text)),
    )
    if prompt is None or completion is None:  # who miscounts one of them is not believed the other
        return Usage(
            prompt_tokens=count_upper_bound(messages),
            completion_tokens=min(text_upper_bound(text), sampling.max_tokens),
            cached_tokens=0,
            counted="bound",
        )
    details = said.get("input_token_details")
    cached = details.get("cache_read") if isinstance(details, Mapping) else None
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_believed(cached, least=0, most=prompt) or 0,
        counted="provider",
    )


def _believed(count: object, *, least: int, most: int) -> int | None:
    """A count that can be true, else `None`."""
    return count if type(count) is int and least <= count <= most else None
