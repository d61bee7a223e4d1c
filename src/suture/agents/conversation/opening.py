"""The first messages of a conversation: the rules, which are the same for every task, and what fails."""

from __future__ import annotations

from dataclasses import dataclass

from suture.agents.context.failure_context import build_failure_context
from suture.agents.conversation.agent_turn import AgentTurn
from suture.agents.conversation.tool_calls import render_text_tools
from suture.models import Message
from suture.models.profiles import ModelProfile


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The beginning of a conversation.

    Attributes:
        messages: The first messages.
        shown_files: The files of which they show at least a part; empty if they show none.
    """

    messages: tuple[Message, ...]
    shown_files: tuple[str, ...] = ()


async def build_opening(turn: AgentTurn, profile: ModelProfile, max_tokens: int) -> Opening:
    """Return the beginning of a conversation.

    Args:
        max_tokens: Tokens of the description of the failing tests and the code.

    Raises:
        BudgetExceeded: The time is up.
        SandboxError: The sandbox failed.
    """
    prompt = turn.calls.prompts.load("agent")
    rules = prompt.render("system")
    if turn.offers_tools and not profile.tools:
        rules += "\n" + prompt.render("text_tools", tools=render_text_tools())
    task, shown_files = await _describe_task(turn, max_tokens)
    messages = (Message(role="system", content=rules), Message(role="user", content=task))
    return Opening(messages=messages, shown_files=shown_files)


async def _describe_task(turn: AgentTurn, max_tokens: int) -> tuple[str, tuple[str, ...]]:
    """Return `(text, shown files)`: the task, and what fails with the code that it reaches if tests have run."""
    task, verdict = turn.suite.task, turn.verdict
    if verdict is None:
        is_single_file = task.kind == "write" and task.project is None
        parts = [turn.briefing.render_task(), *turn.briefing.hints]
        return "\n\n".join(parts) + "\n", (task.module,) if is_single_file else ()
    async with turn.calls.budget.time_limit():
        context = await build_failure_context(
            task,
            turn.files,
            verdict,
            turn.suite,
            # A search stops at its first repairs and may have seen few tests, so the tests are traced for this.
            None,
            threshold=turn.trust_threshold,
            max_tokens=max_tokens,
        )
    parts = [turn.briefing.render_task(), context.render().strip(), *turn.briefing.hints]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n", context.shown_files
