"""How many tokens a prompt can cost, without a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

from suture.models.seam import Message

__all__ = ["count_upper_bound", "text_upper_bound"]

MESSAGE_ALLOWANCE_TOKENS = 8
"""Role, start and end marks of one message; ChatML needs five."""
PROMPT_ALLOWANCE_TOKENS = 40
"""What a chat template adds once: the start of the reply, and a default system message where we send none."""


def text_upper_bound(text: str) -> int:
    """The most tokens that `text` can be: its UTF-8 bytes.

    A byte-level BPE starts from single bytes and only ever merges them, so it never makes more tokens than
    there are bytes (Radford et al. 2019, section 2.2). Qwen, Llama 3 and the GPT models use one.
    """
    return len(text.encode("utf-8", "surrogatepass"))


def count_upper_bound(messages: Sequence[Message]) -> int:
    """The most tokens that a prompt can cost, for reserving a budget before the call.

    Args:
        messages: The conversation.

    Returns:
        UTF-8 bytes of all messages plus an allowance for the chat template, in tokens.
    """
    return PROMPT_ALLOWANCE_TOKENS + sum(
        text_upper_bound(message.content) + MESSAGE_ALLOWANCE_TOKENS for message in messages
    )
