"""Repairs that behave differently: the answer of a person prefers one and excludes the other."""

from __future__ import annotations

from typing import Any, cast

import pytest

from suture.core.ledger.kinds import Choice, DistinguishingInput
from suture.core.records import Task
from suture.errors import UsageError
from suture.judge.trials.trial_records import Proposal
from suture.loop.review.repair_choice import PlausibleRepairs, apply_choice, reviewer_with_asker
from suture.loop.review.review import Review, ReviewAnswer
from suture.search import Repair

DIFFERENCE = DistinguishingInput(
    call="f(3, 2)", answers={"a": "5", "b": "6"}, answers_by_repair=("5", "5", "6", "1")
)


def repair(label: str) -> Repair:
    change = Proposal(path="a.py", edits=(), label=label, score=1.0, operators=())
    return Repair(proposal=change, text="", score=1.0)


FOUND = PlausibleRepairs(repairs=tuple(map(repair, "abcd")), difference=DIFFERENCE)


def question(difference: DistinguishingInput | None) -> Review:
    stage = "distinguish" if difference else "delivery"
    nothing: dict[str, Any] = {"candidate": None, "verdict": None, "diagnosis": None}
    return Review(
        **{"run_id": "r", "key": "k", "stage": cast(Any, stage), "moves": (), "diff": "", **nothing},
        task=Task(statement="anything"),
        difference=difference,
    )


@pytest.mark.parametrize(
    ("choice", "left"), [("first", "abd"), ("second", "cd"), ("neither", "d"), ("unsure", "abcd")]
)
def test_what_is_right_comes_first_and_what_is_wrong_goes(choice: str, left: str) -> None:
    assert "".join(one.proposal.label for one in apply_choice(FOUND, choice).repairs) == left


async def test_who_distinguishes_repairs_is_asked_nothing_else() -> None:
    async def ask(difference: DistinguishingInput) -> Choice | None:
        return "second" if difference is DIFFERENCE else None

    approve = ReviewAnswer(choice="approve")
    both, alone = (
        reviewer_with_asker(ask, lambda review: approve),
        reviewer_with_asker(lambda difference: None, None),
    )
    for reviewer, difference, expected in (
        (both, DIFFERENCE, ReviewAnswer(choice="second")),
        (both, None, approve),
        (alone, DIFFERENCE, ReviewAnswer(choice="unsure")),
        (alone, None, None),
    ):
        answer = reviewer(question(difference))
        assert (await cast(Any, answer)) == expected


@pytest.mark.parametrize(("difference", "choice"), [(DIFFERENCE, "approve"), (None, "first")])
def test_an_answer_to_another_kind_of_question_is_refused(
    difference: DistinguishingInput | None, choice: str
) -> None:
    with pytest.raises(UsageError, match="does not answer the question"):
        question(difference).require_answered_by(ReviewAnswer(choice=cast(Any, choice)))
