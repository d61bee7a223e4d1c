"""What lies between a question of the graph and its answer: the ledger, a person, or nobody."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from suture.loop.context import RunContext
from suture.loop.edits import edited_candidate
from suture.loop.reviewing import review_of

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
    for event in context.ledger.events:
        if event.kind == "review.answered" and event.data["key"] == question["key"]:
            return _answer(event.data)
    context.ledger.append("review.asked", question)
    if context.on_review is None:
        return None
    review = review_of(context.folder, question)
    said = context.on_review(review)
    answer = await said if inspect.isawaitable(said) else said
    if answer is None:
        return None
    blob = ""
    if answer.choice == "edit":
        blob = context.keep(await edited_candidate(answer.files, review.candidate, context))
    told = {"choice": answer.choice, "hint": answer.hint, "blob": blob}
    context.ledger.append("review.answered", {"key": question["key"], "stage": question["stage"], **told})
    return told


def _answer(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("choice", "hint", "blob")}
