"""Repairs behave differently, and the user's answer prefers one and excludes the other."""

from __future__ import annotations

from typing import Any, cast

import pytest

from suture.core.ledger.kinds import Choice, DistinguishingInput
from suture.core.records import Task
from suture.errors import UsageError
from suture.judge.trials.trial_records import Proposal
from suture.loop.review.questions import Review, ReviewAnswer, apply_choice, reviewer_with_asker
from suture.search import PlausibleRepairs, Repair

DIFFERENCE = DistinguishingInput(
    call="f(3, 2)", answers={"a": "5", "b": "6"}, answers_by_repair=("5", "5", "6", "1")
)


def make_repair(label: str) -> Repair:
    change = Proposal(path="a.py", edits=(), label=label, score=1.0, operators=())
    return Repair(proposal=change, text="", score=1.0)


REPAIRS = PlausibleRepairs(repairs=tuple(map(make_repair, "abcd")), difference=DIFFERENCE)


def make_review(difference: DistinguishingInput | None) -> Review:
    stage = "distinguish" if difference else "delivery"
    return Review(
        run_id="r",
        key="k",
        stage=cast(Any, stage),
        moves=(),
        diff="",
        candidate=None,
        verdict=None,
        diagnosis=None,
        task=Task(statement="anything"),
        difference=difference,
    )


@pytest.mark.parametrize(
    ("choice", "remaining"), [("first", "ab"), ("second", "c"), ("neither", "d"), ("unsure", "abcd")]
)
def test_an_answer_orders_and_excludes_repairs(choice: str, remaining: str) -> None:
    assert "".join(repair.proposal.label for repair in apply_choice(REPAIRS, choice).repairs) == remaining


async def test_the_asker_gets_only_questions_about_differences() -> None:
    async def ask(difference: DistinguishingInput) -> Choice | None:
        return "second" if difference is DIFFERENCE else None

    approve = ReviewAnswer(choice="approve")
    asker_and_reviewer, asker_only = (
        reviewer_with_asker(ask, lambda review: approve),
        reviewer_with_asker(lambda difference: None, None),
    )
    for reviewer, difference, expected in (
        (asker_and_reviewer, DIFFERENCE, ReviewAnswer(choice="second")),
        (asker_and_reviewer, None, approve),
        (asker_only, DIFFERENCE, ReviewAnswer(choice="unsure")),
        (asker_only, None, None),
    ):
        answer = reviewer(make_review(difference))
        assert (await cast(Any, answer)) == expected


@pytest.mark.parametrize(("difference", "choice"), [(DIFFERENCE, "approve"), (None, "first")])
def test_an_answer_to_another_kind_of_question_is_refused(
    difference: DistinguishingInput | None, choice: str
) -> None:
    with pytest.raises(UsageError, match="does not answer the question"):
        make_review(difference).require_answered_by(ReviewAnswer(choice=cast(Any, choice)))
