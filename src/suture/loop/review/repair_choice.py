"""Let a person choose between plausible repairs that behave differently."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import get_args

from suture.core.ledger.kinds import Choice, DistinguishingInput
from suture.loop.review.questions import Review, ReviewAnswer, Reviewer
from suture.search import PlausibleRepairs

Asker = Callable[[DistinguishingInput], Choice | Awaitable[Choice | None] | None]
"""Says which of two answers is right; `None` if that is not known. It may be async."""


def apply_choice(found: PlausibleRepairs, choice: str) -> PlausibleRepairs:
    """Put the repairs with the right answer first, and drop those with a wrong one.

    Args:
        choice: A `Choice`; anything else, such as `unsure`, leaves the repairs as they are.
    """
    difference = found.difference
    if difference is None or choice not in get_args(Choice):
        return found
    first, second = difference.answer_pair
    # The third choice is `neither`: no answer is right, and both are wrong.
    right_answer = {"first": first, "second": second}.get(choice)
    wrong_answers = {first, second} - {right_answer}
    answers = list(zip(found.repairs, difference.answers_by_repair, strict=True))
    agreeing = [repair for repair, answer in answers if answer == right_answer]
    others = [repair for repair, answer in answers if answer != right_answer and answer not in wrong_answers]
    remaining = [*agreeing, *others]
    positions = [found.repairs.index(repair) for repair in remaining]
    compared_calls = tuple(
        replace(call, answers=tuple(call.answers[position] for position in positions))
        for call in found.compared_calls
    )
    return replace(found, repairs=tuple(remaining), compared_calls=compared_calls)


def reviewer_with_asker(ask: Asker, reviewer: Reviewer | None) -> Reviewer:
    """Return a reviewer that asks `ask` about differing repairs, and `reviewer`, if any, everything else."""

    async def review_or_ask(review: Review) -> ReviewAnswer | None:
        if review.difference is not None:
            reply = ask(review.difference)
            choice = await reply if inspect.isawaitable(reply) else reply
            return ReviewAnswer(choice=choice or "unsure")  # `None` means that the answer is not known.
        answer = reviewer(review) if reviewer is not None else None
        return await answer if inspect.isawaitable(answer) else answer

    return review_or_ask
