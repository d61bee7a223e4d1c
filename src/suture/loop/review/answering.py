"""Get the answer to a question of the graph: from the ledger, or from a person."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from suture.core.ledger import select_events
from suture.core.ledger.kinds import (
    Choice,
    DistinguishingInput,
    ReviewAnswered,
    ReviewAsked,
    ReviewChoice,
    UserAnswered,
)
from suture.core.records import Candidate
from suture.errors import UsageError
from suture.judge import find_protected_files
from suture.loop.context import RunContext
from suture.loop.review.examples import EXAMPLES_FILE
from suture.loop.review.questions import find_recorded_choice, load_review


async def get_answer(question: ReviewAsked, context: RunContext) -> dict[str, Any] | None:
    """Return a person's answer as JSON values, recorded before it is used; `None` if there is no answer now.

    A question that was answered before, in a process that was killed since, is not asked again.

    Raises:
        UsageError: The answer does not fit the question, or edits a file that no candidate may write.
    """
    recorded_answer = _find_recorded_answer(question, context)
    if recorded_answer is not None:
        return recorded_answer
    context.ledger.append(question)
    if context.spec.on_review is None:
        return None
    review = load_review(context.folder, question)
    result = context.spec.on_review(review)
    answer = await result if inspect.isawaitable(result) else result
    if answer is None:
        return None
    review.require_answered_by(answer)
    if review.difference is not None:
        return _record_choice(answer.choice, review.difference, context)
    blob = ""
    if answer.choice == "edit":
        if question.stage == "examples":
            candidate = Candidate(files={EXAMPLES_FILE: "\n".join(answer.files.values())}, origin="edit")
        else:
            candidate = await make_edited_candidate(answer.files, review.candidate, context)
        blob = context.candidates.save(candidate)
    answered = ReviewAnswered(
        key=question.key,
        stage=question.stage,
        choice=cast(ReviewChoice, answer.choice),
        hint=answer.hint,
        blob=blob,
    )
    context.ledger.append(answered)
    return _encode_answer(answered)


def _find_recorded_answer(question: ReviewAsked, context: RunContext) -> dict[str, Any] | None:
    if question.distinguishing_input is not None:
        choice = find_recorded_choice(question.distinguishing_input, context.ledger.events)
        return {"choice": choice} if choice is not None else None
    for _, answered in select_events(context.ledger.events, ReviewAnswered):
        if answered.key == question.key:
            return _encode_answer(answered)
    return None


def _record_choice(choice: str, difference: DistinguishingInput, context: RunContext) -> dict[str, Any]:
    """Record which repair is right. `unsure` is not an answer and is not recorded."""
    if choice != "unsure":
        context.ledger.append(
            UserAnswered(call=difference.call, answers=difference.answer_pair, choice=cast(Choice, choice))
        )
    return {"choice": choice}


def _encode_answer(answered: ReviewAnswered) -> dict[str, Any]:
    """Return the answer as the JSON values with which the graph continues."""
    return {"choice": answered.choice, "hint": answered.hint, "blob": answered.blob}


async def make_edited_candidate(
    files: Mapping[str, str], base: Candidate | None, context: RunContext
) -> Candidate:
    """Return a candidate with a person's files over those of the one that was edited, if there was one.

    Raises:
        UsageError: No candidate may write one of the files.
    """
    protected = find_protected_files(files, await context.suites.load())
    if protected:
        raise UsageError(
            f"no candidate may write {', '.join(protected)}", remedy="edit code that is not protected"
        )
    return Candidate(
        files={**(base.files if base else {}), **files},
        origin="edit",
        parent=base.hash if base and base.files else None,
        label="edited by a person",
    )
