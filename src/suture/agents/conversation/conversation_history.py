"""What an agent is shown of what it did: all of it, as long as there is room; then by rule less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.models import Message
from suture.models.tokens import estimate_tokens

RECENT = 4
"""Steps whose results stay whole when others are left out."""
HISTORY_TOKENS = 24_000
"""Of a prompt, where the context of the model is not known."""


@dataclass(frozen=True, kw_only=True)
class AgentStep:
    """One reply of the model, and what came of it."""

    reply: str
    observation: str


def conversation(
    opening: Sequence[Message], steps: Sequence[AgentStep], room_tokens: int, *, squeeze: int = 0
) -> tuple[Message, ...]:
    """The messages of the next call.

    Nothing is left out while there is room, so that a provider's cache of the beginning holds. Then first the
    results of all but the last steps are left out, then those steps themselves, the oldest first.

    Args:
        opening: The system's message and the task.
        steps: What was done, oldest first.
        room_tokens: The most tokens of the prompt, by our estimate.
        squeeze: How often a provider called it too long: the room is a third less each time.
    """
    room = int(room_tokens * (2 / 3) ** squeeze)
    for stripped in (False, True):
        whole = _messages(opening, steps, 0, stripped=stripped)
        if estimate_tokens(whole) <= room:
            return whole
    for left_out in range(1, len(steps)):
        messages = _messages(opening, steps, left_out, stripped=True)
        if estimate_tokens(messages) <= room:
            return messages
    return _messages(opening, steps, max(0, len(steps) - 1), stripped=True)


def _messages(
    opening: Sequence[Message], steps: Sequence[AgentStep], left_out: int, *, stripped: bool
) -> tuple[Message, ...]:
    said: list[Message] = []
    for number, step in enumerate(steps[left_out:], left_out + 1):
        observation = step.observation
        if stripped and number <= len(steps) - RECENT:
            observation = f"(this result of {len(observation)} characters is not shown any more)"
        if left_out and not said:
            observation = f"({left_out} steps before this one are not shown any more.)\n{observation}"
        said += [Message(role="assistant", content=step.reply), Message(role="user", content=observation)]
    return (*opening, *said)
