"""Token counts of prompts: exact where the model can count, else estimates; and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from suture.models.chat_model import Message, Model
from suture.models.tuning import (
    ASCII_CHARS_PER_TOKEN,
    MAX_BYTES_PER_TOKEN,
    MAX_WORDS_PER_TOKEN,
    MESSAGE_OVERHEAD_TOKENS,
    OTHER_BYTES_PER_TOKEN,
    PROMPT_OVERHEAD_TOKENS,
)


@runtime_checkable
class TokenCounter(Protocol):
    """A model that can count the tokens of a prompt without replying to it."""

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt, including those of the chat template."""
        ...


async def count_tokens(model: Model, messages: Sequence[Message]) -> int:
    """Return the tokens of a prompt as the model counts them, else an estimate on the high side.

    Raises:
        ModelError: The model failed to count.
    """
    if isinstance(model, TokenCounter):
        return await model.count_tokens(messages)
    return estimate_tokens(messages)


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a prompt for a model that cannot count."""
    text = "".join(message.content for message in messages)
    ascii_bytes = sum(character < "\x80" for character in text)
    other_bytes = token_upper_bound(text) - ascii_bytes
    overhead = PROMPT_OVERHEAD_TOKENS + MESSAGE_OVERHEAD_TOKENS * len(messages)
    return overhead + math.ceil(ascii_bytes / ASCII_CHARS_PER_TOKEN + other_bytes / OTHER_BYTES_PER_TOKEN)


def token_upper_bound(text: str) -> int:
    """Return the maximum number of tokens of a text: the length of its UTF-8 encoding.

    A byte-level BPE starts from single bytes and only merges them, so it never makes more tokens than there
    are bytes (Radford et al. 2019, section 2.2). Qwen, Llama 3 and the GPT models use one.
    """
    return len(text.encode("utf-8", "surrogatepass"))


def token_lower_bound(text: str) -> int:
    """Return the minimum number of tokens of a text; a smaller count by a provider is not credible.

    The bound is deliberately low: it rejects impossible counts, never honest ones.
    """
    words = text.split()
    word_bytes = sum(map(token_upper_bound, words))
    minimum = max(len(words) / MAX_WORDS_PER_TOKEN, word_bytes / MAX_BYTES_PER_TOKEN)
    return max(int(minimum), 1 if words else 0)


def prompt_token_upper_bound(messages: Sequence[Message]) -> int:
    """Return the maximum number of tokens of a prompt, for reserving budget before the call.

    It is the number of UTF-8 bytes of all messages plus an allowance for the chat template.
    """
    return PROMPT_OVERHEAD_TOKENS + sum(
        token_upper_bound(message.content) + MESSAGE_OVERHEAD_TOKENS for message in messages
    )
