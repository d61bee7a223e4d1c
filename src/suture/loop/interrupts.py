"""What lies between a question of the graph and its answer: the ledger, a person, or nobody."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from suture.ledger import those_of
from suture.ledger.kinds import ReviewAnswered, ReviewAsked
from suture.loop.context import RunContext
from suture.loop.edits import edited_candidate
from suture.loop.review.reviewing import review_of
from suture.records import from_plain

__all__ = ["answer_to"]


async def answer_to(question: Mapping[str, Any], context: RunContext) -> dict[str, Any] | None:
    """What a person says to a question, on disk before it is used; `None` where nobody answers now.

    A question that was answered before, in a process that was killed since, is not asked again.

    Args:
        question: As `nodes.review` made it.
        context: The run.

    Raises:
        UsageError: The answer cannot be taken: it edits a file that no candidate may write.
    """
    asked = from_plain(ReviewAsked, question)
    for _, answered in those_of(context.ledger.events, ReviewAnswered):
        if answered.key == asked.key:
            return _told(answered)
    context.ledger.append(asked)
    if context.spec.on_review is None:
        return None
    review = review_of(context.folder, asked)
    said = context.spec.on_review(review)
    answer = await said if inspect.isawaitable(said) else said
    if answer is None:
        return None
    blob = ""
    if answer.choice == "edit":
        blob = context.keep(await edited_candidate(answer.files, review.candidate, context))
    answered = ReviewAnswered(
        key=asked.key, stage=asked.stage, choice=answer.choice, hint=answer.hint, blob=blob
    )
    context.ledger.append(answered)
    return _told(answered)


def _told(answered: ReviewAnswered) -> dict[str, Any]:
    """What the graph goes on with: JSON values."""
    return {"choice": answered.choice, "hint": answered.hint, "blob": answered.blob}
