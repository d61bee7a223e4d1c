"""Ask, validate, ask again: a bounded number of times, and every one of them through the caller's purse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel

from suture.errors import MalformedReply, ModelError, RequestRefused
from suture.models.chat_model import Message, Reply, Sampling
from suture.models.structured_output.reply_parsing import Unreadable, read_reply
from suture.models.structured_output.reply_schemas import schema_of

T = TypeVar("T", bound=BaseModel)

Complete = Callable[[Sequence[Message], Sampling], Awaitable[Reply]]
"""One model call. A loop hands in one that reserves budget first; `Model.complete` will do elsewhere."""

WARMER = 0.2
"""What each repetition adds to the temperature: at the same one a small model repeats itself."""
WARMEST = 1.0
"""No repetition is drawn at a higher temperature."""
SHORT_OF = 0.9
"""With less of the room it was given, a reply was cut by something else, and more room will not help it."""
MAX_QUOTED_CHARS = 1500
"""How much of a reply that could not be used is shown to the model again."""


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """A reply that has been validated against its type, with what it took to get it.

    Attributes:
        value: What the model said.
        reply: The reply that it stands in.
        salvaged: Whether the reply was not the plain JSON that was asked for.
        asked: How often the model was asked, this time included.
    """

    value: T
    reply: Reply
    salvaged: bool
    asked: int


async def ask(
    complete: Complete,
    messages: Sequence[Message],
    type_: type[T],
    sampling: Sampling,
    *,
    limit_tokens: int | None = None,
    tries: int = 3,
) -> Answer[T]:
    """Ask a model for a value of a type.

    A reply that was cut short is not read: it is asked for again with twice the room, up to the limit; but
    not one that was cut before its room was used, as where a budget or a context ends. One that does not
    validate is shown to the model with the reasons, and asked for again a little warmer.

    Args:
        complete: Makes one call; called at most `tries` times, one after the other. What it raises ends this.
        messages: The conversation. It must describe the format, as `describe_schema` does: not every
            provider constrains its output, and those that do write better when they know why.
        type_: What the reply must be; none of its fields may have a default.
        sampling: How to draw the first reply; its `max_tokens` is the room to begin with.
        limit_tokens: The most room a repetition may have; what `sampling` says where not given.
        tries: The most calls of the model, the first one included.

    Raises:
        MalformedReply: No reply could be used.
        ModelError: The model failed.
        BudgetExceeded: `complete` had no budget for another call.
    """
    limit = max(limit_tokens or 0, sampling.max_tokens)
    draw = replace(sampling, schema=schema_of(type_))
    prompt, why = tuple(messages), ""
    for asked in range(1, tries + 1):
        try:
            reply = await complete(prompt, draw)
        except ModelError as fault:
            if draw.schema is None or not _refuses_schema(fault):
                raise
            why, draw = str(fault), replace(draw, schema=None)
            continue
        if reply.finish == "length":
            if reply.counted == "provider" and reply.completion_tokens < SHORT_OF * draw.max_tokens:
                raise MalformedReply(
                    f"a {type_.__name__} was cut at {reply.completion_tokens} tokens, before the "
                    f"{draw.max_tokens} that it might have had",
                    remedy="raise budget.completion_tokens or budget.tokens, or model.context_tokens",
                )
            why = f"it was cut at {draw.max_tokens} tokens"
            prompt = tuple(messages)
            if draw.max_tokens < limit:
                draw = replace(draw, max_tokens=min(2 * draw.max_tokens, limit))
            else:
                draw = _warmer(draw)
            continue
        try:
            reading = read_reply(reply.text, type_, salvage=reply.finish == "stop")
        except Unreadable as fault:
            why = str(fault)
            prompt = (*messages, *_correction(reply, why))
            draw = _warmer(draw)
            continue
        return Answer(value=reading.value, reply=reply, salvaged=reading.salvaged, asked=asked)
    raise MalformedReply(
        f"no usable {type_.__name__} in {tries} replies; of the last one: {why}",
        remedy="raise model.max_tokens" if "was cut" in why else "take a stronger model",
    )


def _warmer(draw: Sampling) -> Sampling:
    return replace(draw, temperature=max(draw.temperature, min(draw.temperature + WARMER, WARMEST)))


def _correction(reply: Reply, why: str) -> tuple[Message, Message]:
    return (
        Message(role="assistant", content=reply.text[:MAX_QUOTED_CHARS] or "(nothing)"),
        Message(
            role="user",
            content=f"That reply cannot be used: {why}. Reply again, with the complete JSON object alone.",
        ),
    )


def _refuses_schema(fault: ModelError) -> bool:
    """Whether a server that takes no schema said so; without one its reply is validated all the same."""
    if type(fault) not in (ModelError, RequestRefused):
        return False
    said = fault.message.lower()
    return any(word in said for word in ("response_format", "json_schema", "grammar", "structured output"))
