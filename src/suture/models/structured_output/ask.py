"""Ask for a structured reply, validate it, and ask again up to a limit.

Each call is charged to the caller's budget.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from suture.errors import MalformedReply
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.structured_output.reply_parsing import UnreadableReply, parse_reply
from suture.models.structured_output.reply_schemas import strict_schema
from suture.models.tuning import (
    MAX_QUOTED_REPLY_CHARS,
    MAX_RETRY_TEMPERATURE,
    RETRY_TEMPERATURE_STEP,
    TRUNCATED_BELOW_SHARE,
)

T = TypeVar("T", bound=BaseModel)

Complete = Callable[[Sequence[Message], Sampling], Awaitable[Reply]]
"""One model call: `Model.complete`, or in the loop a function that reserves budget before it."""


async def ask_structured(
    complete: Complete,
    messages: Sequence[Message],
    type_: type[T],
    sampling: Sampling,
    *,
    tries: int = 3,
) -> T:
    """Ask a model for a value of a type.

    A reply that was cut is not read. It is asked for again at a slightly higher temperature, unless the budget or
    the context cut it before its token limit. So is an invalid reply, which is shown to the model with the reasons.

    Args:
        complete: Makes one call; it is called at most `tries` times, one after the other. Its exceptions end
            this.
        messages: The conversation. It must describe the format, as `describe_schema` does: not every provider
            constrains its output, and those that do write better when the prompt explains the format.
        type_: The type of the value; none of its fields may have a default.
        sampling: How the first reply is generated.
        tries: Maximum number of calls, including the first.

    Raises:
        MalformedReply: No reply was usable.
        ModelError: The model failed.
        BudgetExceeded: `complete` had no budget for another call.
    """
    sampling = replace(sampling, schema=strict_schema(type_))
    prompt, reason, was_truncated = tuple(messages), "", False
    for _ in range(tries):
        reply = await complete(prompt, sampling)
        _require_willingness(reply, type_.__name__)
        was_truncated = reply.finish in ("length", "thinking")
        if was_truncated:
            _require_full_length(reply, sampling, type_.__name__)
            reason = f"it was cut at {sampling.max_tokens} tokens"
            prompt = tuple(messages)
            sampling = _raise_temperature(sampling)
            continue
        try:
            # A reply that ended for an unknown reason may be incomplete, so that only plain JSON is read.
            return parse_reply(reply.text, type_, salvage=reply.finish == "stop")
        except UnreadableReply as fault:
            reason = str(fault)
            prompt = (
                *messages,
                Message(role="assistant", content=reply.text[:MAX_QUOTED_REPLY_CHARS] or "(nothing)"),
                Message(
                    role="user",
                    content=f"That reply cannot be used: {reason}. Reply again, with the complete JSON object "
                    "alone.",
                ),
            )
            sampling = _raise_temperature(sampling)
    raise MalformedReply(
        f"no usable {type_.__name__} in {tries} replies; of the last one: {reason}",
        remedy="raise model.max_tokens" if was_truncated else "take a stronger model",
    )


def _require_willingness(reply: Reply, type_name: str) -> None:
    """Refuse a reply that the model or its provider declined to give: asking again changes nothing."""
    if reply.finish in ("refusal", "content_filter"):
        who = "the model" if reply.finish == "refusal" else "its provider's content filter"
        raise MalformedReply(
            f"{who} refused a {type_name}", remedy="rephrase the task, or take another model for this role"
        )


def _require_full_length(reply: Reply, sampling: Sampling, type_name: str) -> None:
    """Refuse a reply that the budget or the context cut before its token limit: a higher limit cannot help."""
    if reply.counted_by == "provider" and (
        reply.completion_tokens < TRUNCATED_BELOW_SHARE * sampling.max_tokens
    ):
        raise MalformedReply(
            f"a {type_name} was cut at {reply.completion_tokens} tokens, before its limit of "
            f"{sampling.max_tokens}",
            remedy="raise budget.completion_tokens or budget.tokens, or model.context_tokens",
        )


def _raise_temperature(sampling: Sampling) -> Sampling:
    """Return the sampling of a retry. A temperature that is already above the bound stays as it is."""
    raised = min(sampling.temperature + RETRY_TEMPERATURE_STEP, MAX_RETRY_TEMPERATURE)
    return replace(sampling, temperature=max(sampling.temperature, raised))
