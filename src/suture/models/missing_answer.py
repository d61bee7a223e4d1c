"""Name a reply that has no answer, with its own remedy."""

from __future__ import annotations

from suture.errors import MissingAnswer
from suture.models.chat_model import Reply

MAX_QUOTED_REFUSAL_CHARS = 200
"""How much of a refusal is shown. Chosen by judgement; not measured."""


def require_answer(reply: Reply, model: str, *, may_be_empty: bool = True) -> None:
    """Refuse a reply that has no answer.

    Args:
        reply: The reply.
        model: Name of the model, for the message.
        may_be_empty: Whether a reply without any text or tool call is left to the caller.

    Raises:
        MissingAnswer: It names the reason and the remedy.
    """
    if reply.finish == "thinking":
        raise MissingAnswer(
            "thinking",
            f"{model!r} spent all {reply.completion_tokens} tokens of its reply on thinking",
            remedy="raise model.profile.thinking_tokens or budget.tokens, or lower "
            "model.profile.reasoning_effort",
        )
    if reply.finish == "refusal":
        said = f": {reply.text[:MAX_QUOTED_REFUSAL_CHARS]!a}" if reply.text.strip() else ""
        raise MissingAnswer(
            "refusal",
            f"{model!r} refused to answer{said}",
            remedy="state the task in other words, or name another model in model.fallbacks",
        )
    if reply.finish == "content_filter" and not reply.tool_calls:
        raise MissingAnswer(
            "content_filter",
            f"the provider's content filter stopped the reply of {model!r}",
            remedy="look for texts in the project that the filter may object to, or name a model of another "
            "provider in model.fallbacks",
        )
    if not may_be_empty and not reply.text.strip() and not reply.tool_calls:
        raise MissingAnswer(
            "empty",
            f"{model!r} returned an empty reply",
            remedy="`suture models check` shows what the model and its server can do",
        )
