"""What a chat model of LangChain answered, as our `Reply`: its text, how it ended, its tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from suture.models.seam import Finish, Message, Reply, Sampling
from suture.models.structured.schemas import text_of
from suture.models.structured.tool_calls import text_with_call
from suture.models.tokens import text_upper_bound
from suture.models.vendors.answer_shapes import WireFault
from suture.models.vendors.usage import usage_of

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
