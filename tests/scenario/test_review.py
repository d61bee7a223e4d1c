"""A person in the loop, through the real graph, sandbox and database; only the model is scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from run_events import read_events
from suture.api import Review, ReviewAnswer, WriteOptions, pending_review, replay, resume, solve
from suture.core.ledger import Event, total_spend
from suture.core.settings import LoopSettings, Settings
from suture.core.settings.schema import Autonomy
from suture.errors import UsageError
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
EDITED = "def double(n):\n    return 2 * n\n"

Answers = Callable[[Review], ReviewAnswer | None]


def set_autonomy(settings: Settings, autonomy: Autonomy) -> Settings:
    return settings.model_copy(update={"loop": LoopSettings(autonomy=autonomy, samples=2)})


def make_approver(reviews: list[Review], override: Answers | None = None) -> Answers:
    def approve(review: Review) -> ReviewAnswer | None:
        reviews.append(review)
        answer = override(review) if override else None
        return answer or ReviewAnswer(choice="approve")

    return approve


def prompts(model: ScriptedModel) -> list[str]:
    return ["\n".join(message.content for message in call.messages) for call in model.calls]


async def test_an_autonomous_run_asks_for_no_review(settings: Settings) -> None:
    def refuse_review(review: Review) -> None:
        raise AssertionError(review.stage)

    result = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT]), on_review=refuse_review)
    )
    assert result.outcome == "healed"


async def test_review_repairs_asks_about_repairs_only(settings: Settings) -> None:
    reviews: list[Review] = []
    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    reviewing = set_autonomy(settings, "review_repairs")

    result = await solve(
        TASK, WriteOptions(settings=reviewing, model=model, on_review=make_approver(reviews))
    )

    assert result.outcome == "healed", result.reason
    (review,) = reviews
    assert (review.stage, {move.kind for move in review.moves}) == ("repairs", {"repair"})
    assert review.candidate is not None
    assert review.facts[0].call == "double(5)"
    assert "+    return n + 2" in review.diff
    kinds = [event.kind for event in read_events(settings.paths.home, result.run_id)]
    assert kinds.count("review.asked") == kinds.count("review.answered") == 1

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)


async def test_review_all_asks_before_each_round_and_the_end(settings: Settings) -> None:
    reviews: list[Review] = []
    model = ScriptedModel([WRONG, RIGHT], repeat_last=True)

    result = await solve(
        TASK,
        WriteOptions(
            settings=set_autonomy(settings, "review_all"), model=model, on_review=make_approver(reviews)
        ),
    )

    assert result.outcome == "healed", result.reason
    assert [review.stage for review in reviews] == ["samples", "samples", "delivery"]
    assert reviews[0].candidate is None
    assert "+    return n + n" in reviews[-1].diff


async def test_a_correct_edit_is_judged_and_delivered(settings: Settings) -> None:
    def edit(review: Review) -> ReviewAnswer | None:
        if review.stage != "delivery" or (review.candidate and review.candidate.origin == "edit"):
            return None
        return ReviewAnswer(choice="edit", files={"solution.py": EDITED})

    reviews: list[Review] = []
    reviewing = set_autonomy(settings, "review_all")

    result = await solve(
        TASK,
        WriteOptions(
            settings=reviewing, model=ScriptedModel([RIGHT]), on_review=make_approver(reviews, override=edit)
        ),
    )

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert (result.candidate.files["solution.py"], result.candidate.origin) == (EDITED, "edit")
    assert [review.stage for review in reviews] == ["samples", "delivery", "delivery"]

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)


async def test_a_wrong_edit_is_not_delivered(settings: Settings) -> None:
    def edit(review: Review) -> ReviewAnswer | None:
        wrong = {"solution.py": "def double(n):\n    return 3\n"}
        return ReviewAnswer(choice="edit", files=wrong) if review.candidate is None else None

    reviews: list[Review] = []
    reviewing = set_autonomy(settings, "review_all")

    result = await solve(
        TASK,
        WriteOptions(
            settings=reviewing,
            model=ScriptedModel([RIGHT], repeat_last=True),
            on_review=make_approver(reviews, override=edit),
        ),
    )

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert "n + n" in result.candidate.files["solution.py"]


@pytest.mark.heavy
async def test_later_prompts_contain_the_hint(settings: Settings) -> None:
    def hint(review: Review) -> ReviewAnswer | None:
        return ReviewAnswer(choice="redirect", hint="add it to itself")

    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    reviewing = set_autonomy(settings, "review_repairs")

    result = await solve(TASK, WriteOptions(settings=reviewing, model=model, on_review=hint))

    assert result.outcome == "healed", result.reason
    has_hint = ["add it to itself" in prompt for prompt in prompts(model)]
    assert has_hint == [False, False, False, True, True]
    assert (await replay(result.run_id, settings=settings)).same


async def test_a_rejected_repair_is_followed_by_new_samples(settings: Settings) -> None:
    rejected: list[Review] = []

    def reject_once(review: Review) -> ReviewAnswer | None:
        if rejected:
            return None
        rejected.append(review)
        return ReviewAnswer(choice="reject")

    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    reviewing = set_autonomy(settings, "review_repairs")

    result = await solve(
        TASK, WriteOptions(settings=reviewing, model=model, on_review=make_approver([], override=reject_once))
    )

    assert result.outcome == "healed", result.reason
    assert {event.data.get("origin") for event in read_events(settings.paths.home, result.run_id)} - {
        None
    } == {"sample"}


@pytest.mark.parametrize("autonomy", ["review_repairs", "review_all"])
async def test_rejecting_every_review_ends_the_run(settings: Settings, autonomy: Autonomy) -> None:
    model = ScriptedModel([WRONG, WRONG_TOO], repeat_last=True)
    result = await solve(
        TASK,
        WriteOptions(
            settings=set_autonomy(settings, autonomy),
            model=model,
            on_review=lambda review: ReviewAnswer(choice="reject"),
        ),
    )
    assert result.outcome in ("not_healed", "stuck", "budget_exhausted")


async def test_a_rejected_candidate_is_not_delivered(settings: Settings) -> None:
    def reject_others(review: Review) -> ReviewAnswer | None:
        accepted = review.stage != "delivery" or "2 * n" in review.diff
        return None if accepted else ReviewAnswer(choice="reject")

    model = ScriptedModel([RIGHT, f"```python\n{EDITED}```"], repeat_last=True)
    reviewing = set_autonomy(settings, "review_all")

    result = await solve(
        TASK,
        WriteOptions(settings=reviewing, model=model, on_review=make_approver([], override=reject_others)),
    )

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["solution.py"] == EDITED


async def test_abort_ends_the_run_and_keeps_the_best_candidate(settings: Settings) -> None:
    def abort(review: Review) -> ReviewAnswer | None:
        return ReviewAnswer(choice="abort") if review.stage == "repairs" else None

    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    reviewing = set_autonomy(settings, "review_all")

    result = await solve(
        TASK, WriteOptions(settings=reviewing, model=model, on_review=make_approver([], override=abort))
    )

    assert result.outcome == "cancelled"
    assert result.candidate is not None
    assert len(model.calls) == 3


async def test_resume_refuses_the_replay_of_a_parked_run(settings: Settings) -> None:
    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO])
    parked = await solve(TASK, WriteOptions(settings=set_autonomy(settings, "review_repairs"), model=model))

    replayed = await replay(parked.run_id, settings=settings)

    assert replayed.same

    with pytest.raises(UsageError, match="is a replay") as caught:
        await resume(replayed.result.run_id, settings=settings, model=model)
    assert parked.run_id in caught.value.remedy
    assert len(model.calls) == 3


@pytest.mark.heavy
async def test_a_parked_run_resumes_without_paying_twice(settings: Settings) -> None:
    model = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO])
    reviewing = set_autonomy(settings, "review_repairs")
    parked = await solve(TASK, WriteOptions(settings=reviewing, model=model))
    assert (parked.outcome, len(model.calls)) == ("waiting", 3)
    assert parked.candidate is not None
    unanswered = await resume(parked.run_id, settings=settings, model=ScriptedModel([]))
    assert unanswered.outcome == "waiting"
    assert unanswered.spend.tokens == parked.spend.tokens
    review = pending_review(parked.run_id, settings=settings)
    assert review is not None
    assert review.stage == "repairs"
    replayed = await replay(parked.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)
    assert replayed.result.outcome == "waiting"

    later_model = ScriptedModel([RIGHT], repeat_last=True)
    events: list[Event] = []
    resumed = await resume(
        parked.run_id,
        settings=settings,
        model=later_model,
        answer=ReviewAnswer(choice="approve"),
        on_event=events.append,
    )
    assert resumed.outcome == "healed", resumed.reason
    assert len(later_model.calls) == 2
    assert [event.seq for event in events] == list(range(len(events)))
    assert events[-1].kind == "run.finished"
    assert pending_review(parked.run_id, settings=settings) is None
    assert (await replay(parked.run_id, settings=settings)).same
    with pytest.raises(UsageError, match="has ended"):
        await resume(parked.run_id, settings=settings, answer=ReviewAnswer(choice="approve"))


async def test_an_edit_of_a_protected_file_is_refused_and_parks_the_run(settings: Settings) -> None:
    reviewing = set_autonomy(settings, "review_all")
    edit = ReviewAnswer(choice="edit", files={"conftest.py": "x = 1\n"})

    with pytest.raises(UsageError, match=r"conftest\.py"):
        await solve(
            TASK,
            WriteOptions(settings=reviewing, model=ScriptedModel([RIGHT]), on_review=lambda review: edit),
        )

    result = await resume(
        "last", settings=settings, model=ScriptedModel([RIGHT]), on_review=make_approver([])
    )
    assert result.outcome == "healed", result.reason


async def test_a_run_resumes_after_its_reviewer_raised(settings: Settings) -> None:
    async def fail(review: Review) -> ReviewAnswer:
        raise ZeroDivisionError("the reviewer's own fault")

    reviewing = set_autonomy(settings, "review_all")

    with pytest.raises(ZeroDivisionError):
        await solve(TASK, WriteOptions(settings=reviewing, model=ScriptedModel([]), on_review=fail))

    result = await resume(
        "last", settings=settings, model=ScriptedModel([RIGHT]), on_review=make_approver([])
    )
    assert result.outcome == "healed", result.reason


def test_the_time_of_a_review_is_not_spent() -> None:
    timeline = [
        ("run.started", 0),
        ("review.asked", 5),
        ("run.paused", 5),
        ("run.resumed", 90_000),
        ("review.asked", 90_001),
        ("review.answered", 99_999),
        ("run.finished", 100_002),
    ]
    events = [Event(seq=n, time_s=float(time_s), kind=kind) for n, (kind, time_s) in enumerate(timeline)]
    assert total_spend(events).seconds == 5 + 1 + 3


def test_incomplete_answers_are_refused() -> None:
    with pytest.raises(UsageError, match="hint"):
        ReviewAnswer(choice="redirect")
    with pytest.raises(UsageError, match="file"):
        ReviewAnswer(choice="edit")
