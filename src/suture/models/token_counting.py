"""Token counts of prompts: exact where the model can count, else estimates; and bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from suture.models.chat_model import Message, Model, Sampling, ToolCall
from suture.models.tuning import (
    ASCII_CHARS_PER_TOKEN,
    ESTIMATE_MARGIN,
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
    return _template_tokens(messages) + _estimate_text("".join(map(_message_text, messages)))


def estimate_request_tokens(
    messages: Sequence[Message], sampling: Sampling, tokens_per_byte: float | None = None
) -> int:
    """Estimate the prompt tokens of a request, to reserve budget before it is sent.

    Args:
        sampling: Its tools and its schema are part of what the provider counts.
        tokens_per_byte: What the provider counted in earlier requests of the run; `None` before the first one.

    Returns:
        An estimate on the high side, but never more than one token for each byte.
    """
    text = _request_text(messages, sampling)
    size_bytes = token_upper_bound(text)
    if tokens_per_byte is None:
        estimate = _estimate_text(text)
    else:
        estimate = math.ceil(size_bytes * tokens_per_byte * ESTIMATE_MARGIN)
    return _template_tokens(messages) + min(estimate, size_bytes)


def request_bytes(messages: Sequence[Message], sampling: Sampling) -> int:
    """Return the length in bytes of what the model reads: the messages, the tools and the schema."""
    return token_upper_bound(_request_text(messages, sampling))


def _request_text(messages: Sequence[Message], sampling: Sampling) -> str:
    declared: list[Mapping[str, object]] = [
        {"name": tool.name, "description": tool.description, "inputs": dict(tool.inputs)}
        for tool in sampling.tools
    ]
    extra = json.dumps([*declared, *([dict(sampling.schema)] if sampling.schema else [])], default=str)
    return "".join(map(_message_text, messages)) + (extra if extra != "[]" else "")


def _message_text(message: Message) -> str:
    return message.content + "".join(map(_call_text, message.tool_calls))


def _call_text(call: ToolCall) -> str:
    return call.name + (call.undecoded or json.dumps(dict(call.arguments), ensure_ascii=False, default=str))


def _estimate_text(text: str) -> int:
    ascii_bytes = sum(character < "\x80" for character in text)
    other_bytes = token_upper_bound(text) - ascii_bytes
    return math.ceil(ascii_bytes / ASCII_CHARS_PER_TOKEN + other_bytes / OTHER_BYTES_PER_TOKEN)


def _template_tokens(messages: Sequence[Message]) -> int:
    """Return an allowance for the chat template."""
    return PROMPT_OVERHEAD_TOKENS + MESSAGE_OVERHEAD_TOKENS * len(messages)


def token_upper_bound(text: str) -> int:
    """Return the maximum number of tokens of a string: the length of its UTF-8 encoding.

    A byte-level BPE starts from single bytes and only merges them, so it never makes more tokens than there
    are bytes (Radford et al. 2019, section 2.2). Qwen, Llama 3 and the GPT models use one.
    """
    return len(text.encode("utf-8", "surrogatepass"))


def token_lower_bound(text: str) -> int:
    """Return the minimum number of tokens of a string; a smaller count by a provider is not credible.

    The bound is deliberately low: it rejects impossible counts, never honest ones.
    """
    words = text.split()
    word_bytes = sum(map(token_upper_bound, words))
    minimum = max(len(words) / MAX_WORDS_PER_TOKEN, word_bytes / MAX_BYTES_PER_TOKEN)
    return max(int(minimum), 1 if words else 0)


def prompt_token_upper_bound(messages: Sequence[Message]) -> int:
    """Return the maximum number of tokens of a prompt.

    It is the number of UTF-8 bytes of all messages plus an allowance for the chat template.
    """
    return _template_tokens(messages) + sum(token_upper_bound(_message_text(message)) for message in messages)
