"""What people were asked, and what they said."""

from __future__ import annotations

from typing import Literal

from suture.core.ledger.event import Payload
from suture.core.ledger.kinds.search import DistinguishingInput
from suture.core.records import Diagnosis, Move

Choice = Literal["first", "second", "neither"]
"""Which of the two answers of a difference is right."""
ReviewStage = Literal["search", "samples", "repairs", "hand_over", "distinguish", "test", "safety"]
"""Before what a person is asked: a search without a model, fresh candidates, repairs, the end, the choice
between two repairs that pass and differ, the use of a test that a model wrote, or a run of code that the
safety scan asks about."""
ReviewChoice = Literal["approve", "edit", "redirect", "reject", "abort"]


class UserAnswered(Payload, kind="user.answered"):
    """The user said which of two repairs is right.

    Attributes:
        call: The call on which they differ.
        answers: What the likeliest gives, and the other.
        choice: Which of the two is right.
    """

    call: str
    answers: tuple[str, ...]
    choice: Choice


class TestAccepted(Payload, kind="test.accepted"):
    """A person accepted a test that a model wrote: it decides from now on, as the user's own tests do.

    Attributes:
        path: The test's file, relative to the project root.
        source: Its text.
        command: The test command that runs it beside the others.
    """

    path: str
    source: str
    command: tuple[str, ...]


class ReviewAsked(Payload, kind="review.asked"):
    """A person is asked before something is done.

    Attributes:
        key: Names the question; equal in a replay of the run.
        stage: Before what: a search without a model, fresh candidates, repairs, the end, or
            (`distinguish`) the choice between two repairs that pass and differ, or (`test`) the use of a test
            that a model wrote; then the candidate is that test; or (`safety`) a run of code that the safety
            scan asks about; then the verdict holds what it found.
        decision: Number of the decision that it is about.
        round: The round, from 0.
        moves: What would be done; none at the end.
        candidate: Hash of the candidate that would be mended or handed over; empty before the first.
        blob: Blob of that candidate; empty where there is none.
        verdict: Blob of its verdict; empty where there is none.
        diagnosis: Why it fails, where somebody has said so.
        difference: For `distinguish`, the input that tells the repairs apart, and what they answer.
    """

    key: str
    stage: ReviewStage
    decision: int = 0
    round: int = 0
    moves: tuple[Move, ...] = ()
    candidate: str = ""
    blob: str = ""
    verdict: str = ""
    diagnosis: Diagnosis | None = None
    distinguishing_input: DistinguishingInput | None = None


class ReviewAnswered(Payload, kind="review.answered"):
    """A person has answered.

    Attributes:
        key: Names the question.
        stage: Before what it was asked.
        choice: What they said.
        hint: For `redirect`, what the model is to be told from now on.
        blob: For `edit`, blob of the person's candidate.
    """

    key: str
    stage: ReviewStage = "samples"
    choice: ReviewChoice
    hint: str = ""
    blob: str = ""
