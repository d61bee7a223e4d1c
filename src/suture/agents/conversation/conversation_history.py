"""The messages of an agent's next call: its complete history while that fits, and a shortened one after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.agents.tuning import RECENT_STEPS
from suture.models import Message
from suture.models.token_counting import estimate_tokens


@dataclass(frozen=True, kw_only=True)
class AgentStep:
    """One reply of the model, and the observation that it led to."""

    reply: str
    observation: str


def build_conversation(
    opening: Sequence[Message], steps: Sequence[AgentStep], room_tokens: int, *, retries: int = 0
) -> tuple[Message, ...]:
    """Return the messages of the next call.

    Nothing is left out while there is room, so that the provider's prompt cache stays valid. After that, the
    results of all but the last steps are left out first, and then whole steps, the oldest first.

    Args:
        opening: The system message and the task.
        steps: The steps so far, oldest first.
        room_tokens: Maximum length of the prompt, by our estimate.
        retries: How often the provider called the prompt too long. The room shrinks by a third each time.
    """
    room_tokens = int(room_tokens * (2 / 3) ** retries)
    for without_results in (False, True):
        messages = _render_steps(opening, steps, 0, without_results=without_results)
        if estimate_tokens(messages) <= room_tokens:
            return messages
    for left_out in range(1, len(steps)):
        messages = _render_steps(opening, steps, left_out, without_results=True)
        if estimate_tokens(messages) <= room_tokens:
            return messages
    return _render_steps(opening, steps, max(0, len(steps) - 1), without_results=True)


def _render_steps(
    opening: Sequence[Message], steps: Sequence[AgentStep], left_out: int, *, without_results: bool
) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number, step in enumerate(steps[left_out:], left_out + 1):
        observation = step.observation
        if without_results and number <= len(steps) - RECENT_STEPS:
            observation = f"(this result of {len(observation)} characters is not shown any more)"
        if left_out and not messages:
            observation = f"({left_out} steps before this one are not shown any more.)\n{observation}"
        messages.append(Message(role="assistant", content=step.reply))
        messages.append(Message(role="user", content=observation))
    return (*opening, *messages)
