"""What lies between a question of the graph and its answer: the ledger, a person, or nobody."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from suture.core.ledger import those_of
from suture.core.ledger.kinds import Choice, ReviewAnswered, ReviewAsked, ReviewChoice, UserAnswered
from suture.core.records import from_plain
from suture.loop.context import RunContext
from suture.loop.proposing import edited_candidate
from suture.loop.review.reviewing import recorded_choice, review_of
from suture.search import Difference


async def answer_to(question: Mapping[str, Any], context: RunContext) -> dict[str, Any] | None:
    """What a person says to a question, on disk before it is used; `None` where nobody answers now.

    A question that was answered before, in a process that was killed since, is not asked again.

    Raises:
        UsageError: The answer cannot be taken: it is one to another kind of question, or edits a file that no
            candidate may write.
    """
    asked = from_plain(ReviewAsked, question)
    before = _answered_before(asked, context)
    if before is not None:
        return before
    context.ledger.append(asked)
    if context.spec.on_review is None:
        return None
    review = review_of(context.folder, asked)
    said = context.spec.on_review(review)
    answer = await said if inspect.isawaitable(said) else said
    if answer is None:
        return None
    review.require_answered_by(answer)
    if review.difference is not None:
        return _distinguished(answer.choice, review.difference, context)
    blob = ""
    if answer.choice == "edit":
        blob = context.keep(await edited_candidate(answer.files, review.candidate, context))
    answered = ReviewAnswered(
        key=asked.key,
        stage=asked.stage,
        choice=cast(ReviewChoice, answer.choice),
        hint=answer.hint,
        blob=blob,
    )
    context.ledger.append(answered)
    return _as_plain(answered)


def _answered_before(asked: ReviewAsked, context: RunContext) -> dict[str, Any] | None:
    if asked.difference is not None:
        choice = recorded_choice(Difference(**vars(asked.difference)), context.ledger.events)
        return {"choice": choice} if choice is not None else None
    for _, answered in those_of(context.ledger.events, ReviewAnswered):
        if answered.key == asked.key:
            return _as_plain(answered)
    return None


def _distinguished(choice: str, difference: Difference, context: RunContext) -> dict[str, Any]:
    """Which repair is right; that nobody knows is no answer, and nothing is kept of it."""
    if choice != "unsure":
        right = cast(Choice, choice)
        context.ledger.append(UserAnswered(call=difference.call, answers=difference.apart, choice=right))
    return {"choice": choice}


def _as_plain(answered: ReviewAnswered) -> dict[str, Any]:
    """What the graph goes on with: JSON values."""
    return {"choice": answered.choice, "hint": answered.hint, "blob": answered.blob}
