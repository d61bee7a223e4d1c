"""The first messages of a conversation: the rules, which are the same for every task, and what fails."""

from __future__ import annotations

from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.tool_calls import render_text_tools
from suture.models import Message
from suture.models.profiles import ModelProfile


def build_opening(turn: AgentTurn, profile: ModelProfile, max_tokens: int) -> tuple[Message, ...]:
    """Return the first messages.

    Args:
        max_tokens: Tokens of the description of the task and its failing tests.
    """
    prompt = turn.calls.prompts.load("agent")
    rules = prompt.render("system")
    if not profile.tools:
        rules += "\n" + prompt.render("text_tools", tools=render_text_tools())
    return (
        Message(role="system", content=rules),
        Message(role="user", content=turn.briefing.render_markdown()),
    )
