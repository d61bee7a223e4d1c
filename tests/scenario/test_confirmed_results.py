"""New code without a test or example: a person says which of its results are right, and these decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from run_events import read_event_data
from suture.api import Review, ReviewAnswer, WriteOptions, pending_review, replay, resume, solve
from suture.core.ledger import find_run
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.narrative.result_text import next_step_lines
from suture.interfaces.narrative.review_text import example_lines, render_review_question
from suture.testing import ScriptedModel

TASK = "A function that returns the sum of all even numbers in the list"
ALL_EVEN = "```python\ndef sum_even(nums):\n    return sum(n for n in nums if n % 2 == 0)\n```"
POSITIVE_EVEN = (
    "```python\ndef sum_of_evens(numbers):\n    return sum(n for n in numbers if n % 2 == 0 and n > 0)\n```"
)


def answer_with(answer: ReviewAnswer, reviews: list[Review]) -> Callable[[Review], ReviewAnswer]:
    def review(question: Review) -> ReviewAnswer:
        reviews.append(question)
        return answer

    return review


async def test_confirmed_results_verify_the_code(settings: Settings) -> None:
    reviews: list[Review] = []
    model = ScriptedModel([ALL_EVEN, POSITIVE_EVEN])
    approve = answer_with(ReviewAnswer(choice="approve"), reviews)

    result = await solve(TASK, WriteOptions(settings=settings, model=model, ask=True, on_review=approve))

    (question,) = reviews
    agreed = [example for example in question.examples if len(example.answers) == 1]
    differing = [example for example in question.examples if len(example.answers) > 1]
    assert 3 <= len(question.examples) <= 5
    assert differing
    assert len(model.calls) == 2  # one more than without a person, who learns most where versions differ
    assert result.outcome == "healed"
    assert result.verdict is not None
    assert {outcome.provenance for outcome in result.verdict.outcomes} == {"user"}
    assert len(result.verdict.passed) == len(agreed)
    assert (await replay(result.run_id, settings=settings)).same


async def test_a_corrected_result_prefers_the_version_that_gives_it(settings: Settings) -> None:
    edited = ReviewAnswer(choice="edit", files={"x": "assert sum_even([2, -2, 4]) == 6\n"})
    model = ScriptedModel([ALL_EVEN, POSITIVE_EVEN])
    options = WriteOptions(settings=settings, model=model, ask=True, on_review=answer_with(edited, []))

    result = await solve(TASK, options)

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "sum_of_evens" in result.candidate.files["solution.py"]  # under the name that it chose itself
    assert read_event_data(settings.paths.home, "examples.confirmed", result.run_id) == [
        {"asserts": ["assert sum_of_evens([2, -2, 4]) == 6\n"]}
    ]


async def test_a_result_that_no_version_gives_leads_to_a_repair(settings: Settings) -> None:
    edited = ReviewAnswer(
        choice="edit", files={"x": "assert sum_even([1, 2]) == 2\nassert sum_even([]) is None\n"}
    )
    corrected = ALL_EVEN.replace("    return", "    if not nums:\n        return None\n    return")
    model = ScriptedModel([ALL_EVEN, ALL_EVEN, corrected], repeat_last=True)
    options = WriteOptions(settings=settings, model=model, ask=True, on_review=answer_with(edited, []))

    result = await solve(TASK, options)

    assert result.outcome == "healed"
    assert len(model.calls) > 2


async def test_a_run_waits_for_somebody_who_says_what_is_right(settings: Settings) -> None:
    options = WriteOptions(settings=settings, model=ScriptedModel([ALL_EVEN, ALL_EVEN]), ask=True)
    waiting = await solve(TASK, options)
    question = pending_review(waiting.run_id, settings=settings)

    assert (waiting.outcome, waiting.reason.detail) == ("waiting", "examples")
    assert question is not None
    assert question.choices == ("approve", "edit", "reject", "abort")
    with pytest.raises(UsageError, match="no call with its result"):
        question.require_answered_by(ReviewAnswer(choice="edit", files={"x": "pass\n"}))
    rejected = await resume(
        waiting.run_id, settings=settings, model=ScriptedModel([]), answer=ReviewAnswer(choice="reject")
    )
    assert (rejected.outcome, rejected.reason.code) == ("not_healed", "results_rejected")


async def test_a_run_that_ended_unverified_can_be_verified_later(settings: Settings) -> None:
    unverified = await solve(TASK, WriteOptions(settings=settings, model=ScriptedModel([ALL_EVEN])))
    assert (unverified.outcome, unverified.reason.code) == ("not_healed", "no_trusted_check")
    (saved,) = (settings.paths.home / "runs" / unverified.run_id).glob("unverified_*")
    assert saved.name == "unverified_solution.py"

    approve = answer_with(ReviewAnswer(choice="approve"), [])
    unused = ScriptedModel([])  # the question comes first
    verified = await resume(unverified.run_id, settings=settings, model=unused, on_review=approve)

    assert verified.outcome == "healed"
    assert (await replay(verified.run_id, settings=settings)).result.outcome == "healed"
    folder = find_run(settings.paths.home, verified.run_id)
    assert not [line for line in next_step_lines(verified, folder) if "not verified" in line]


INITIALS = "```python\ndef initials(person):\n    return person['first'][0] + person['last'][0]\n```"
"""Code that fails for each value that is guessed for `person`."""


async def test_a_person_writes_an_example_where_no_guessed_call_returns_a_value(settings: Settings) -> None:
    reviews: list[Review] = []
    example = "assert initials({'first': 'Ada', 'last': 'Lovelace'}) == 'AL'\n"
    answer = answer_with(ReviewAnswer(choice="edit", files={"x": example}), reviews)
    model = ScriptedModel([INITIALS], repeat_last=True)
    options = WriteOptions(settings=settings, model=model, ask=True, on_review=answer)

    result = await solve("A function that returns the initials of a person", options)

    (question,) = reviews
    assert (question.stage, question.examples) == ("examples", ())
    assert question.choices == ("edit", "reject", "abort")
    assert "initials(person) == ..." in render_review_question(question)
    assert result.outcome == "healed"
    assert (await replay(result.run_id, settings=settings)).same


async def test_a_function_of_another_name_than_the_task_asks_for_is_named(settings: Settings) -> None:
    model = ScriptedModel([INITIALS], repeat_last=True)
    waiting = await solve(
        "half(n) halves a number. half(4) is two.", WriteOptions(settings=settings, model=model, ask=True)
    )
    question = pending_review(waiting.run_id, settings=settings)
    assert question is not None
    assert "The code defines initials; the task asks for half." in list(example_lines(question))
    (prepared,) = read_event_data(settings.paths.home, "task.prepared", waiting.run_id)
    assert prepared["unused_examples"] == ["half(4) is two"]


async def test_an_input_that_the_task_names_comes_first_if_the_code_raises_an_exception_for_it(
    settings: Settings,
) -> None:
    code = "```python\ndef to_seconds(text):\n    return int(text) if text[0] == '1' else 0\n```"
    model = ScriptedModel([code], repeat_last=True)
    waiting = await solve(
        "A function that turns a text such as '1h30m' into seconds",
        WriteOptions(settings=settings, model=model, ask=True),
    )
    question = pending_review(waiting.run_id, settings=settings)
    assert question is not None
    first, *others = example_lines(question)
    assert first == "  to_seconds('1h30m') raises ValueError, although the task names this input"
    assert others
    assert not any("1h30m" in line for line in others)


async def test_a_person_who_knows_no_example_learns_which_one_to_add(settings: Settings) -> None:
    model = ScriptedModel(["```python\ndef show(text):\n    print(text)\n```"], repeat_last=True)
    reject = answer_with(ReviewAnswer(choice="reject"), [])
    options = WriteOptions(settings=settings, model=model, ask=True, on_review=reject)

    result = await solve("A function that prints a text", options)

    assert (result.outcome, result.reason.code) == ("not_healed", "no_shown_result")
    steps = list(next_step_lines(result, find_run(settings.paths.home, result.run_id)))
    assert any("such as show(text) == ..." in line for line in steps)
