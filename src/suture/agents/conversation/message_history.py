"""The messages of a conversation. They are only appended to until the model's context is full.

A provider can reuse its cache of a prompt only where a later prompt begins with the same messages. So nothing
is shortened while there is room, and then so much at once that it is not needed again soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suture.agents.tuning import COMPACTED_SHARE, MAX_COMPACTED_CHARS, RECENT_MESSAGES
from suture.models import Message
from suture.models.token_counting import estimate_tokens

SHORTENED_RESULT = "(This result is not shown any more.)"
SHORTENED_REPLY = "(This reply is not shown any more.)"


@dataclass(kw_only=True)
class MessageHistory:
    """The messages of a conversation.

    Attributes:
        opening: The rules and the task, which always stay.
        messages: The messages after that, oldest first.
    """

    opening: tuple[Message, ...]
    messages: list[Message] = field(default_factory=list)

    def extend(self, messages: Iterable[Message]) -> None:
        """Append messages."""
        self.messages.extend(messages)

    def within(self, room_tokens: int) -> tuple[Message, ...]:
        """Return all messages, shortened for good if they have more than about `room_tokens` tokens.

        Old results of tools are shortened first, and then old replies. The opening and the latest messages stay.
        Each message keeps its role, so that every call still has its result.
        """
        target = int(room_tokens * COMPACTED_SHARE)
        if self._count_tokens() > room_tokens:
            self._shorten(("tool", "user"), SHORTENED_RESULT, target)
            self._shorten(("assistant",), SHORTENED_REPLY, target)
        return (*self.opening, *self.messages)

    def _shorten(self, roles: Sequence[str], note: str, target_tokens: int) -> None:
        for index, message in enumerate(self.messages[:-RECENT_MESSAGES]):
            if self._count_tokens() <= target_tokens:
                return
            if message.role in roles:
                self.messages[index] = _shorten_message(message, note)

    def _count_tokens(self) -> int:
        calls = [
            Message(role="assistant", content=f"{call.name} {dict(call.arguments)}")
            for message in self.messages
            for call in message.tool_calls
        ]
        return estimate_tokens([*self.opening, *self.messages, *calls])


def _shorten_message(message: Message, note: str) -> Message:
    """Return a message with only the beginning of its text, and its calls with short inputs."""
    if len(message.content) > MAX_COMPACTED_CHARS:
        beginning = message.content[:MAX_COMPACTED_CHARS].partition("\n")[0]
        message = replace(message, content=f"{beginning}\n{note}")
    calls = tuple(
        replace(call, arguments={name: _shorten_input(value) for name, value in call.arguments.items()})
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _shorten_input(value: Any) -> Any:
    is_long = isinstance(value, str) and len(value) > MAX_COMPACTED_CHARS
    return f"{value[:MAX_COMPACTED_CHARS]} ..." if is_long else value
