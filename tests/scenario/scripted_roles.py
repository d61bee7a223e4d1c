"""A scripted model with its own replies for each role."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from suture.agents import packaged_prompt, packaged_prompt_names
from suture.models import Message, Reply, Sampling, prompt_token_upper_bound


def to_json(**fields: object) -> str:
    return json.dumps(fields)


ROLES_BY_SYSTEM_PROMPT = {
    packaged_prompt(name).render("system"): name for name in packaged_prompt_names() if name != "optimiser"
}
OPTIMISER_OPENING = "This code is correct:"
"""The optimiser has the coder's system prompt. This line identifies the optimiser."""


class ScriptedRoles:
    """Answer each role from its own list of replies, and repeat the last reply at the end of the list.

    Args:
        replies: The replies of each role in order, by the name of the role's prompt file.
    """

    name = "scripted:cast"

    def __init__(self, replies: Mapping[str, Sequence[str]]) -> None:
        self.replies = replies
        self.calls: list[str] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        """Return the next reply of the calling role. A repeated question counts as another call."""
        # The agent's rules go on with the tools where the model calls them in its text.
        rules = messages[0].content
        role = next(role for prompt, role in ROLES_BY_SYSTEM_PROMPT.items() if rules.startswith(prompt))
        if role == "coder" and OPTIMISER_OPENING in messages[1].content:
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
        """Do nothing: there is nothing to release."""
