"""A typed call with its result answers the question about new code only where no results are shown."""

from __future__ import annotations

import pytest

from suture.api import Review, ReviewAnswer
from suture.core.ledger.kinds import ProposedExample
from suture.core.records import Candidate, Task
from suture.interfaces.cli.repair.review_command import _correct_result, _parse_answer
from suture.loop.review.examples import EXAMPLES_FILE

HELPER = "def pad(text):\n    return text\n"
CODE = "from helper import pad\n\n\ndef show(n):\n    return pad(str(n))\n"


def make_question(*examples: ProposedExample) -> Review:
    """Return a question about new code in two files; the file of the task is not the first of them."""
    candidate = Candidate(files={"helper.py": HELPER, "solution.py": CODE}, origin="sample")
    return Review(
        run_id="r",
        key="k",
        stage="examples",
        moves=(),
        candidate=candidate,
        verdict=None,
        diagnosis=None,
        diff="",
        task=Task(statement="Show a number."),
        examples=examples,
    )


@pytest.mark.parametrize("typed", ["show(2) == '2'", "assert show(2) == '2'"])
def test_a_typed_call_is_the_example_where_no_result_is_shown(typed: str) -> None:
    expected = ReviewAnswer(choice="edit", files={EXAMPLES_FILE: "assert show(2) == '2'\n"})
    assert _parse_answer(typed, make_question()) == expected


def test_a_typed_call_does_not_replace_the_results_that_are_shown() -> None:
    shown = ProposedExample(call="show(1)", answers=("'1'",))
    assert _parse_answer("show(2) == '2'", make_question(shown)) is None


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("show('a == b')=='x'", "assert show(1) == '1'\nassert show('a == b')=='x'\n"),
        ("show(2) == '2'", "assert show(1) == '1'\nassert show('a == b') == 'a'\nassert show(2) == '2'\n"),
        ("show(3) == '3'", "assert show(3) == '3'\n"),
        ("show(3)", None),
    ],
)
async def test_any_result_can_be_corrected(typed: str, expected: str | None) -> None:
    agreed = ProposedExample(call="show(1)", answers=("'1'",))
    comparison = ProposedExample(call="show('a == b')", answers=("'a'",))
    differing = ProposedExample(call="show(2)", answers=("'3'", "'4'"))

    async def read() -> str:
        return typed

    answer = await _correct_result(make_question(agreed, comparison, differing), read)

    assert (answer.files[EXAMPLES_FILE] if answer is not None else None) == expected


@pytest.mark.parametrize("typed", ["1", "y", "show(1)"])
async def test_an_answer_that_does_not_say_what_is_right_is_told_what_is_expected(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def read() -> str:
        return typed

    question = make_question(ProposedExample(call="show(1)", answers=("'1'",)))
    assert await _correct_result(question, read) is None
    assert f"{typed!r} does not say what is right. Type it as: show(1) == ..." in capsys.readouterr().err


async def test_the_wrong_result_is_asked_for_also_where_the_versions_differ_in_all() -> None:
    async def read() -> str:
        return "show(2) == '2'"

    answer = await _correct_result(
        make_question(ProposedExample(call="show(2)", answers=("'3'", "'4'"))), read
    )

    assert answer == ReviewAnswer(choice="edit", files={EXAMPLES_FILE: "assert show(2) == '2'\n"})


def test_the_suggested_call_is_of_the_tasks_own_file() -> None:
    assert make_question().example_call == "show(n)"
