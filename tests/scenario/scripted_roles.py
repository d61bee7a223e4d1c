"""A scripted model with its own replies for each role."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from suture.agents import packaged_prompt, packaged_prompt_names
from suture.models import Message, Reply, Sampling, prompt_token_upper_bound


def as_json(**fields: object) -> str:
    return json.dumps(fields)


SYSTEMS = {
    packaged_prompt(name).render("system"): name for name in packaged_prompt_names() if name != "optimiser"
}
OPTIMISES = "This code is correct:"
"""The optimiser is introduced as the coder is; this tells them apart."""


class ScriptedRoles:
    """Answers each role from a list of its own, and with the last entry of it for ever.

    Args:
        replies: Role, by the name of its prompt file -> what it says, in order.
    """

    name = "scripted:cast"

    def __init__(self, replies: Mapping[str, Sequence[str]]) -> None:
        self.replies = replies
        self.calls: list[str] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """The next reply of whoever asks; a repetition of a question counts as one more."""
        role = SYSTEMS[messages[0].content]
        if role == "coder" and OPTIMISES in messages[1].content:
            role = "optimiser"
        replies = self.replies[role]
        text = replies[min(self.calls.count(role), len(replies) - 1)]
        self.calls.append(role)
        return Reply(
            text=text,
            prompt_tokens=prompt_token_upper_bound(messages) // 4,
            completion_tokens=len(text) // 4,
            model=self.name,
        )

    async def close(self) -> None:
        """Nothing to release."""
