"""How many tokens a prompt is: counted where the model can, else estimated; and the most it can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from suture.models.chat_model import Message, Model

MESSAGE_ALLOWANCE_TOKENS = 8
"""Role, start and end marks of one message; ChatML needs five."""
PROMPT_ALLOWANCE_TOKENS = 40
"""What a chat template adds once: the start of the reply, and a default system message where we send none."""

ASCII_PER_TOKEN = 2.5
"""Fewer than the four characters of English prose or the three of code: digits and punctuation are short."""
OTHER_BYTES_PER_TOKEN = 2
"""Of text that is not ASCII."""

WORDS_PER_TOKEN = 1.5
"""More than any tokenizer makes one token of: most split at blanks, and those that do not ("SuperBPE", Liu et
al. 2025) reach about 1.2."""
MOST_BYTES_PER_TOKEN = 16
"""On average over the letters of a text. Single tokens are longer; prose and code have three to five."""


@runtime_checkable
class CountsTokens(Protocol):
    """A model that can count the tokens of a prompt without answering it."""

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, those of the chat template included."""
        ...


async def count_tokens(model: Model, messages: Sequence[Message]) -> int:
    """The tokens of a prompt: as the model counts, else an estimate that is rather too high.

    Raises:
        ModelError: The model that was to count failed.
    """
    if isinstance(model, CountsTokens):
        return await model.count_tokens(messages)
    return estimate_tokens(messages)


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a prompt is, for models that do not count."""
    text = "".join(message.content for message in messages)
    ascii_bytes = sum(character < "\x80" for character in text)
    others = text_upper_bound(text) - ascii_bytes
    marks = PROMPT_ALLOWANCE_TOKENS + MESSAGE_ALLOWANCE_TOKENS * len(messages)
    return marks + math.ceil(ascii_bytes / ASCII_PER_TOKEN + others / OTHER_BYTES_PER_TOKEN)


def text_upper_bound(text: str) -> int:
    """The most tokens that `text` can be: its UTF-8 bytes.

    A byte-level BPE starts from single bytes and only ever merges them, so it never makes more tokens than
    there are bytes (Radford et al. 2019, section 2.2). Qwen, Llama 3 and the GPT models use one.
    """
    return len(text.encode("utf-8", "surrogatepass"))


def text_lower_bound(text: str) -> int:
    """The fewest tokens that `text` can be; whoever says that it was less did not count.

    It is low on purpose: it is to catch what cannot be true, and no honest count.
    """
    words = text.split()
    letters_bytes = sum(map(text_upper_bound, words))
    fewest = max(len(words) / WORDS_PER_TOKEN, letters_bytes / MOST_BYTES_PER_TOKEN)
    return max(int(fewest), 1 if words else 0)


def count_upper_bound(messages: Sequence[Message]) -> int:
    """The most tokens that a prompt can cost, for reserving a budget before the call.

    Args:
        messages: The prompt, oldest message first.

    Returns:
        UTF-8 bytes of all messages plus an allowance for the chat template, in tokens.
    """
    return PROMPT_ALLOWANCE_TOKENS + sum(
        text_upper_bound(message.content) + MESSAGE_ALLOWANCE_TOKENS for message in messages
    )
