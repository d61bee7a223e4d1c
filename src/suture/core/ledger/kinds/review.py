"""Events of the dialogue with people: what they are asked, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suture.core.ledger.event import Payload
from suture.core.ledger.kinds.search import DistinguishingInput
from suture.core.records import Diagnosis, Move

Choice = Literal["first", "second", "neither"]
"""Which of two answers is right."""
ReviewStage = Literal["search", "samples", "repairs", "delivery", "distinguish", "test", "safety", "examples"]
"""What happens after the review, in this order: a search without a model; fresh samples; repairs; the delivery
of the result; the choice between two repairs that pass and differ; the use of a test that a model wrote; a
run of code that the safety scan asks about; the use of results of new code as checks."""
ReviewChoice = Literal["approve", "edit", "redirect", "reject", "abort"]


class UserAnswered(Payload, kind="user.answered"):
    """The user said which of two repairs is right.

    Attributes:
        call: Call on which the repairs differ.
        answers: Two answers, as source: that of the likeliest repair, and that of the other repair.
        choice: Which of the two answers is right.
    """

    call: str
    answers: tuple[str, ...]
    choice: Choice


class TestAccepted(Payload, kind="test.accepted"):
    """A person accepted a test that a model wrote. From now on it decides like the user's own tests.

    Attributes:
        path: Path of the test file, relative to the project root.
        source: Text of the test file.
        command: Test command that runs it together with the other tests.
    """

    path: str
    source: str
    command: tuple[str, ...]


class ExamplesConfirmed(Payload, kind="examples.confirmed"):
    """A person said which results of new code are right. From now on they decide like the user's own tests.

    Attributes:
        asserts: The calls with their results, as Python asserts.
    """

    asserts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProposedExample:
    """A call of new code, with the results of the versions that were written.

    Attributes:
        call: The call, as source.
        answers: The different results, as source, that of most versions first. One if all versions agree.
    """

    call: str
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RaisingCall:
    """A call of new code that raises an exception.

    Attributes:
        call: The call, as source.
        exception: The name of the exception's class.
        is_shown: Whether an argument is a literal that the task shows.
    """

    call: str
    exception: str
    is_shown: bool = False


class ReviewAsked(Payload, kind="review.asked"):
    """A person is asked for a review.

    Attributes:
        key: Identifies the question; it is the same in a replay of the run.
        stage: What happens after the review. For `test`, the candidate is the test that a model wrote; for
            `safety`, the verdict holds the findings.
        decision: Number of the decision under review.
        round: Number of the round, from 0.
        moves: Moves that would be made; empty before the delivery.
        candidate: Hash of the candidate that would be repaired or delivered; empty before the first one.
        blob: Blob of that candidate; empty if there is none.
        verdict: Blob of its verdict; empty if there is none.
        diagnosis: Why it fails, if a role has diagnosed it.
        distinguishing_input: For `distinguish`, the input on which the repairs differ, and their answers.
        examples: For `examples`, calls of the candidate with their results.
        raising_calls: For `examples`, calls on which the candidate raises an exception. Nothing checks them.
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
    examples: tuple[ProposedExample, ...] = ()
    raising_calls: tuple[RaisingCall, ...] = ()


class ReviewAnswered(Payload, kind="review.answered"):
    """A person has answered a review.

    Attributes:
        key: Identifies the question.
        stage: Stage of the review.
        choice: The answer.
        hint: For `redirect`, the advice that the model gets from now on.
        blob: For `edit`, the blob of the person's candidate; at the stage `examples`, that of their asserts.
    """

    key: str
    stage: ReviewStage = "samples"
    choice: ReviewChoice
    hint: str = ""
    blob: str = ""
