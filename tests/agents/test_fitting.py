"""Prompts are fitted to the context: parts shrink in order and only as much as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.agents import (
    EarlierAttempt,
    RepairBrief,
    WriteBrief,
    draft_coder_prompt,
    draft_diagnosis_prompt,
    fit_prompt,
    limit_to_shown_files,
    packaged_prompt,
)
from suture.agents.prompting.fitting import PromptPart
from suture.agents.prompting.prompt_files import ShrinkRule
from suture.core.records import Counterexample
from suture.errors import ContextTooLong
from suture.models import Message, prompt_token_upper_bound
from suture.models.token_counting import estimate_tokens

CODER = packaged_prompt("coder")


def make_rule(keep: Any, **more: Any) -> ShrinkRule:
    return ShrinkRule(keep=keep, cut="<$cut>", **more)


async def count_bytes(messages: Sequence[Message]) -> int:
    return prompt_token_upper_bound(messages)


@pytest.mark.parametrize(
    ("keep", "count", "expected"),
    [
        ("first", 4, "a b c d"),
        ("first", 2, "a b <2>"),
        ("last", 1, "<3> d"),
        ("ends", 3, "a b <1> d"),
        ("ends", 2, "a <2> d"),
        ("ends", 1, "a <3>"),
        ("first", 0, ""),
    ],
)
def test_a_part_shows_whole_pieces_and_counts_the_omitted_ones(keep: str, count: int, expected: str) -> None:
    assert PromptPart(pieces=["a", "b", "c", "d"], separator=" ").render(make_rule(keep), count) == expected


def test_a_part_without_pieces_shows_no_frame() -> None:
    part = PromptPart(pieces=["a"], before="(", after=")")
    assert (part.render(make_rule("last"), 1), part.render(make_rule("last"), 0)) == ("(a)", "")
    assert PromptPart(pieces=[], before="(", after=")").render(make_rule("last"), 0) == ""


def test_a_part_may_be_limited_by_pieces_or_characters() -> None:
    part = PromptPart(pieces=["x" * 9] * 100)

    assert part.max_pieces(make_rule("ends")) == 100
    assert part.max_pieces(make_rule("ends", most=7)) == 7
    limited = make_rule("ends", most_chars=100)
    assert part.max_pieces(limited) == 9
    assert len(part.render(limited, 9)) <= 100 < len(part.render(limited, 10))
    assert part.max_pieces(make_rule("ends", most_chars=1, least=3)) == 3


def make_brief(**changes: Any) -> RepairBrief:
    fields: dict[str, Any] = {
        "statement": "Mend it.",
        "files": {f"f{n}.py": f"# file {n}\n" + "x = 1\n" * 40 for n in range(3)},
        "facts": [Counterexample(check_id="t", call=f"f({n})", actual="1", expected="2") for n in range(6)],
        "history": [EarlierAttempt(label=f"attempt {n}", passed=n, total=9) for n in range(3)],
    }
    return RepairBrief(**{**fields, **changes})


async def test_a_prompt_that_fits_is_neither_counted_nor_cut() -> None:
    async def refuse_to_count(messages: Sequence[Message]) -> int:
        raise AssertionError("the tokens were counted")

    fitted = await fit_prompt(draft_coder_prompt(make_brief(), CODER), 100_000, refuse_to_count)

    assert fitted.removed_counts == {}
    assert (
        await fit_prompt(draft_coder_prompt(make_brief(), CODER), None, refuse_to_count)
    ).messages == fitted.messages
    text = fitted.messages[1].content
    assert "- and 2 more failures" in text  # the number of facts is limited, even if all of them would fit


async def test_parts_shrink_in_order_and_no_more_than_needed() -> None:
    draft = draft_coder_prompt(make_brief(), CODER)
    full_tokens = prompt_token_upper_bound((await fit_prompt(draft, None, count_bytes)).messages)

    slightly_shrunk = await fit_prompt(draft, full_tokens - 10, count_bytes)

    assert slightly_shrunk.removed_counts == {"history": 1}
    assert "- 1 more before these\n- attempt 1" in slightly_shrunk.messages[1].content

    further_shrunk = await fit_prompt(draft, full_tokens - 200, count_bytes)
    assert set(further_shrunk.removed_counts) == {"history", "facts"}
    assert "Earlier attempts" not in further_shrunk.messages[1].content

    minimal = await fit_prompt(draft, full_tokens - 600, count_bytes)
    empty_parts = dict.fromkeys(
        ("siblings", "history", "hints", "suspects", "refused", "advice", "output"), 0
    )
    assert minimal.piece_counts == {**empty_parts, "facts": 1, "files": 1}


@given(st.integers(300, 2500))
async def test_a_fitted_prompt_shows_whole_pieces(max_tokens: int) -> None:
    brief = make_brief()

    try:
        fitted = await fit_prompt(draft_coder_prompt(brief, CODER), max_tokens, count_bytes)
    except ContextTooLong:
        assert max_tokens < 900
        return

    text = fitted.messages[1].content
    assert prompt_token_upper_bound(fitted.messages) <= max_tokens
    assert text.startswith("Mend it.")
    shown_brief = limit_to_shown_files(brief, fitted)
    assert isinstance(shown_brief, RepairBrief)
    assert shown_brief.files
    for path, source in brief.files.items():
        assert (f"### {path}\n```python\n{source.strip()}\n```" in text) == (path in shown_brief.files)
        assert (source.splitlines()[0] in text) == (path in shown_brief.files)


async def test_a_task_that_does_not_fit_is_an_error_with_a_remedy() -> None:
    draft = draft_coder_prompt(make_brief(statement="Mend it. " * 200), CODER)
    with pytest.raises(ContextTooLong, match="room for 500") as caught:
        await fit_prompt(draft, 500, count_bytes)
    assert "model.context_tokens" in caught.value.remedy


async def test_a_log_keeps_its_start_and_end() -> None:
    lines = [f"line {n}" for n in range(1000)]
    lines[3] = "y" * 5000
    draft = draft_coder_prompt(make_brief(facts=(), output="\n".join(lines)), CODER)

    text = (await fit_prompt(draft, None, count_bytes)).messages[1].content

    assert "    line 0\n    line 1\n" in text
    assert "    line 999\n" in text
    assert "yyy ... 4700 characters are cut ... yyy" in text
    (omission,) = [line for line in text.splitlines() if "lines are cut here" in line]
    kept_lines = [line for line in text.splitlines() if line.startswith("    line") or "yyy" in line]
    assert omission == f"    ... {1000 - len(kept_lines)} lines are cut here ..."

    smaller = (await fit_prompt(draft, 1900, count_bytes)).messages[1].content
    assert "    line 0\n" in smaller
    assert "    line 999\n" in smaller
    assert len(smaller) < len(text)


async def test_tests_are_shown_from_the_start() -> None:
    tests = "\n".join(f"assert f({n}) == {n}" for n in range(1000))
    draft = draft_coder_prompt(WriteBrief(statement="Write f.", module="m.py", tests=tests), CODER)

    text = (await fit_prompt(draft, None, count_bytes)).messages[1].content

    assert "```python\nassert f(0) == 0\n" in text
    assert " more lines are not shown\n```" in text
    assert len(text) < 4500

    text_without_tests = (await fit_prompt(draft, 420, count_bytes)).messages[1].content
    assert "assert" not in text_without_tests
    assert "Write f." in text_without_tests


def test_the_text_of_a_repair_prompt() -> None:
    draft = draft_coder_prompt(
        RepairBrief(
            statement="Add up.",
            files={"a.py": "def f(): pass\n"},
            facts=[Counterexample(check_id="t", call="f()", actual="None", expected="3")],
            history=[
                EarlierAttempt(label="sample 1, greedy", passed=1, total=2, first_failure="`f()` gave 1")
            ],
        ),
        CODER,
    )
    system, user = draft.messages(draft.full_counts())

    assert system.content == (
        "You are an expert Python programmer. "
        "You answer with code in fenced blocks and keep explanations short."
    )
    assert user.content == (
        "Add up.\n\nThe code below fails its tests.\n\n### a.py\n```python\ndef f(): pass\n```\n"
        "What the tests saw:\n- `f()` gave None, but should give 3\n\n"
        "Earlier attempts that did not work:\n- sample 1, greedy: 1 of 2 checks passed; `f()` gave 1\n\n"
        "Find the mistake and change as little as possible.\n"
        "Reply with one ```python block that holds the complete corrected `a.py`. Do not change the tests."
    )


def test_the_text_of_a_write_prompt() -> None:
    draft = draft_coder_prompt(WriteBrief(statement="Write f.", module="m.py", tests="assert f()"), CODER)
    assert draft.messages(draft.full_counts())[1].content == (
        "Write the Python module `m.py` for this task:\n\nWrite f.\n\n"
        "It must pass these tests:\n\n```python\nassert f()\n```\n\n"
        "Reply with one ```python block that holds the complete module: the imports it needs and the code, "
        "without tests and without example calls."
    )


def test_the_diagnosis_prompt_describes_the_reply_type() -> None:
    draft = draft_diagnosis_prompt(make_brief(), packaged_prompt("diagnose"))
    text = draft.messages(draft.full_counts())[1].content
    assert '"category": one of "syntax", "missing_name"' in text
    assert '"confidence": a number from 0 to 1' in text


def test_a_token_estimate_is_positive_and_below_the_bound() -> None:
    messages = [Message(role="user", content="def f(x):\n    return x * 31\n" * 20 + "日本語" * 9)]
    assert 200 < estimate_tokens(messages) <= prompt_token_upper_bound(messages)
