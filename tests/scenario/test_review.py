"""A person in the loop, through the real graph, sandbox and database; only the model is scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from suture.api import Review, ReviewAnswer, WriteOptions, pending_review, replay, resume, solve
from suture.core.ledger import Event, find_run, read_ledger, total_spend
from suture.core.records import Result
from suture.core.settings import LoopSettings, Settings
from suture.core.settings.schema import Autonomy
from suture.errors import UsageError
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
OWN = "def double(n):\n    return 2 * n\n"

Answers = Callable[[Review], ReviewAnswer | None]


def reviewed(settings: Settings, autonomy: Autonomy) -> Settings:
    return settings.model_copy(update={"loop": LoopSettings(autonomy=autonomy, samples=2)})


def events_of(settings: Settings, result: Result) -> tuple[Event, ...]:
    return read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events


def approving(seen: list[Review], unless: Answers | None = None) -> Answers:
    def answer(review: Review) -> ReviewAnswer | None:
        seen.append(review)
        answer = unless(review) if unless else None
        return answer or ReviewAnswer(choice="approve")

    return answer


def prompts(model: ScriptedModel) -> list[str]:
    return ["\n".join(message.content for message in call.messages) for call in model.calls]


async def test_nobody_is_asked_of_a_run_that_goes_by_itself(settings: Settings) -> None:
    def never(review: Review) -> None:
        raise AssertionError(review.stage)

    result = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([RIGHT]), on_review=never))
    assert result.outcome == "healed"


async def test_repairs_wait_for_approval_and_the_rest_does_not(settings: Settings) -> None:
    seen: list[Review] = []
    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    chosen = reviewed(settings, "review_repairs")
    result = await solve(TASK, WriteOptions(settings=chosen, model=script, on_review=approving(seen)))
    assert result.outcome == "healed", result.reason
    (review,) = seen
    assert (review.stage, {move.kind for move in review.moves}) == ("repairs", {"repair"})
    assert review.candidate is not None
    assert review.facts[0].call == "double(5)"
    assert "+    return n + 2" in review.diff
    kinds = [event.kind for event in events_of(settings, result)]
    assert kinds.count("review.asked") == kinds.count("review.answered") == 1
    again = await replay(result.run_id, settings=settings)
    assert again.same, str(again.difference)


async def test_review_all_asks_before_each_round_and_the_end(settings: Settings) -> None:
    seen: list[Review] = []
    script = ScriptedModel([WRONG, RIGHT], repeat_last=True)
    result = await solve(
        TASK, WriteOptions(settings=reviewed(settings, "review_all"), model=script, on_review=approving(seen))
    )
    assert result.outcome == "healed", result.reason
    assert [review.stage for review in seen] == ["samples", "samples", "delivery"]
    assert seen[0].candidate is None
    assert "+    return n + n" in seen[-1].diff


async def test_an_edit_is_judged_like_any_candidate_and_delivered(settings: Settings) -> None:
    def edit(review: Review) -> ReviewAnswer | None:
        if review.stage != "delivery" or (review.candidate and review.candidate.origin == "edit"):
            return None
        return ReviewAnswer(choice="edit", files={"solution.py": OWN})

    seen: list[Review] = []
    chosen = reviewed(settings, "review_all")
    result = await solve(
        TASK,
        WriteOptions(settings=chosen, model=ScriptedModel([RIGHT]), on_review=approving(seen, unless=edit)),
    )
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert (result.candidate.files["solution.py"], result.candidate.origin) == (OWN, "edit")
    assert [review.stage for review in seen] == ["samples", "delivery", "delivery"]
    again = await replay(result.run_id, settings=settings)
    assert again.same, str(again.difference)


async def test_an_edit_that_is_wrong_is_found_out(settings: Settings) -> None:
    def edit(review: Review) -> ReviewAnswer | None:
        wrong = {"solution.py": "def double(n):\n    return 3\n"}
        return ReviewAnswer(choice="edit", files=wrong) if review.candidate is None else None

    seen: list[Review] = []
    chosen = reviewed(settings, "review_all")
    result = await solve(
        TASK,
        WriteOptions(
            settings=chosen,
            model=ScriptedModel([RIGHT], repeat_last=True),
            on_review=approving(seen, unless=edit),
        ),
    )
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert "n + n" in result.candidate.files["solution.py"]


@pytest.mark.heavy
async def test_a_hint_is_in_the_prompt_of_the_model(settings: Settings) -> None:
    def hint(review: Review) -> ReviewAnswer | None:
        return ReviewAnswer(choice="redirect", hint="add it to itself")

    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    chosen = reviewed(settings, "review_repairs")
    result = await solve(TASK, WriteOptions(settings=chosen, model=script, on_review=hint))
    assert result.outcome == "healed", result.reason
    has_hint = ["add it to itself" in prompt for prompt in prompts(script)]
    assert has_hint == [False, False, False, True, True]
    assert (await replay(result.run_id, settings=settings)).same


async def test_a_rejected_repair_makes_way_for_something_else(settings: Settings) -> None:
    rejected: list[Review] = []

    def reject_once(review: Review) -> ReviewAnswer | None:
        if rejected:
            return None
        rejected.append(review)
        return ReviewAnswer(choice="reject")

    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    chosen = reviewed(settings, "review_repairs")
    result = await solve(
        TASK, WriteOptions(settings=chosen, model=script, on_review=approving([], unless=reject_once))
    )
    assert result.outcome == "healed", result.reason
    assert {e.data.get("origin") for e in events_of(settings, result)} - {None} == {"sample"}


@pytest.mark.parametrize("autonomy", ["review_repairs", "review_all"])
async def test_who_rejects_everything_ends_the_run(settings: Settings, autonomy: Autonomy) -> None:
    script = ScriptedModel([WRONG, WRONG_TOO], repeat_last=True)
    result = await solve(
        TASK,
        WriteOptions(
            settings=reviewed(settings, autonomy),
            model=script,
            on_review=lambda review: ReviewAnswer(choice="reject"),
        ),
    )
    assert result.outcome in ("not_healed", "stuck", "budget_exhausted")


async def test_what_a_person_rejected_is_not_delivered(settings: Settings) -> None:
    def picky(review: Review) -> ReviewAnswer | None:
        wanted = review.stage != "delivery" or "2 * n" in review.diff
        return None if wanted else ReviewAnswer(choice="reject")

    script = ScriptedModel([RIGHT, f"```python\n{OWN}```"], repeat_last=True)
    chosen = reviewed(settings, "review_all")
    result = await solve(
        TASK, WriteOptions(settings=chosen, model=script, on_review=approving([], unless=picky))
    )
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert result.candidate.files["solution.py"] == OWN


async def test_abort_ends_the_run_and_keeps_the_best(settings: Settings) -> None:
    def abort(review: Review) -> ReviewAnswer | None:
        return ReviewAnswer(choice="abort") if review.stage == "repairs" else None

    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)
    chosen = reviewed(settings, "review_all")
    result = await solve(
        TASK, WriteOptions(settings=chosen, model=script, on_review=approving([], unless=abort))
    )
    assert result.outcome == "cancelled"
    assert result.candidate is not None
    assert len(script.calls) == 3


async def test_a_replay_of_a_parked_run_does_not_go_on_with_a_live_model(settings: Settings) -> None:
    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO])
    parked = await solve(TASK, WriteOptions(settings=reviewed(settings, "review_repairs"), model=script))
    again = await replay(parked.run_id, settings=settings)
    assert again.same
    with pytest.raises(UsageError, match="is a replay") as refused:
        await resume(again.result.run_id, settings=settings, model=script)
    assert parked.run_id in refused.value.remedy
    assert len(script.calls) == 3


@pytest.mark.heavy
async def test_a_parked_run_waits_and_continues_without_paying_twice(settings: Settings) -> None:
    script = ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO])
    chosen = reviewed(settings, "review_repairs")
    parked = await solve(TASK, WriteOptions(settings=chosen, model=script))
    assert (parked.outcome, len(script.calls)) == ("waiting", 3)
    assert parked.candidate is not None
    still = await resume(parked.run_id, settings=settings, model=ScriptedModel([]))
    assert still.outcome == "waiting"
    assert still.spend.tokens == parked.spend.tokens
    asked = pending_review(parked.run_id, settings=settings)
    assert asked is not None
    assert asked.stage == "repairs"
    same = await replay(parked.run_id, settings=settings)
    assert same.same, str(same.difference)
    assert same.result.outcome == "waiting"

    later = ScriptedModel([RIGHT], repeat_last=True)
    seen: list[Event] = []
    done = await resume(
        parked.run_id,
        settings=settings,
        model=later,
        answer=ReviewAnswer(choice="approve"),
        on_event=seen.append,
    )
    assert done.outcome == "healed", done.reason
    assert len(later.calls) == 2
    assert [event.seq for event in seen] == list(range(len(seen)))
    assert seen[-1].kind == "run.finished"
    assert pending_review(parked.run_id, settings=settings) is None
    assert (await replay(parked.run_id, settings=settings)).same
    with pytest.raises(UsageError, match="has ended"):
        await resume(parked.run_id, settings=settings, answer=ReviewAnswer(choice="approve"))


async def test_an_edit_of_a_protected_file_parks_the_run_and_says_so(settings: Settings) -> None:
    chosen = reviewed(settings, "review_all")
    bad = ReviewAnswer(choice="edit", files={"conftest.py": "x = 1\n"})
    with pytest.raises(UsageError, match=r"conftest\.py"):
        await solve(
            TASK, WriteOptions(settings=chosen, model=ScriptedModel([RIGHT]), on_review=lambda review: bad)
        )
    result = await resume("last", settings=settings, model=ScriptedModel([RIGHT]), on_review=approving([]))
    assert result.outcome == "healed", result.reason


async def test_a_reviewer_that_fails_loses_nothing(settings: Settings) -> None:
    async def broken(review: Review) -> ReviewAnswer:
        raise ZeroDivisionError("the reviewer's own fault")

    chosen = reviewed(settings, "review_all")
    with pytest.raises(ZeroDivisionError):
        await solve(TASK, WriteOptions(settings=chosen, model=ScriptedModel([]), on_review=broken))
    result = await resume("last", settings=settings, model=ScriptedModel([RIGHT]), on_review=approving([]))
    assert result.outcome == "healed", result.reason


def test_a_day_of_thinking_costs_no_seconds() -> None:
    story = [
        ("run.started", 0),
        ("review.asked", 5),
        ("run.paused", 5),
        ("run.resumed", 90_000),
        ("review.asked", 90_001),
        ("review.answered", 99_999),
        ("run.finished", 100_002),
    ]
    events = [Event(seq=n, time_s=float(at), kind=kind) for n, (kind, at) in enumerate(story)]
    assert total_spend(events).seconds == 5 + 1 + 3


def test_answers_that_say_too_little_are_refused() -> None:
    with pytest.raises(UsageError, match="hint"):
        ReviewAnswer(choice="redirect")
    with pytest.raises(UsageError, match="file"):
        ReviewAnswer(choice="edit")
