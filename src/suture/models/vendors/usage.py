"""What a reply cost in tokens: what the provider says, as far as that can be true, else our own bound.

A count is data from a server: it may be missing, negative, a text, or a trillion. What is booked decides when
a budget ends, so what cannot be true is no count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from suture.models.seam import Message, Sampling
from suture.models.tokens import count_upper_bound, text_lower_bound, text_upper_bound

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
