"""Two plausible repairs that differ: which of them is right is a question that only a person can answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import get_args

from suture.core.ledger.kinds import Choice
from suture.loop.review.reviewing import Review, ReviewAnswer, Reviewer
from suture.search import Difference, Repair

Asker = Callable[[Difference], Choice | Awaitable[Choice | None] | None]
"""Says which of two answers is right, plain or async; `None` where nobody knows."""


@dataclass(frozen=True, kw_only=True)
class FoundRepairs:
    """What the search found plausible.

    Attributes:
        repairs: The likeliest first.
        difference: What tells the first from the next; `None` where nothing does.
    """

    repairs: tuple[Repair, ...]
    difference: Difference | None = None


def preferred(found: FoundRepairs, choice: str) -> FoundRepairs:
    """Without those that answer what a person says is wrong, and those that answer right before all.

    Args:
        found: What the search found; there is a difference.
        choice: A `Choice`; anything else leaves it as it is.
    """
    difference = found.difference
    if difference is None or choice not in get_args(Choice):
        return found
    first, second = difference.apart
    right = {"first": first, "second": second}.get(choice)
    wrong = {first, second} - {right}
    answers = list(zip(found.repairs, difference.by_repair, strict=True))
    agreeing = [repair for repair, answer in answers if answer == right]
    others = [repair for repair, answer in answers if answer != right and answer not in wrong]
    return FoundRepairs(repairs=(*agreeing, *others), difference=difference)


def reviewer_with(ask: Asker, reviewer: Reviewer | None) -> Reviewer:
    """Has one person asked what tells repairs apart, and another, where there is one, all else."""

    async def answer(review: Review) -> ReviewAnswer | None:
        if review.difference is not None:
            choice = ask(review.difference)
            chosen = await choice if inspect.isawaitable(choice) else choice
            return ReviewAnswer(choice=chosen or "unsure")
        said = reviewer(review) if reviewer is not None else None
        return await said if inspect.isawaitable(said) else said

    return answer
