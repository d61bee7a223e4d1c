"""The critic and the summariser: their prompts and their replies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suture.agents import EarlierAttempt, PromptDraft, RepairBrief, draft_coder_prompt, packaged_prompt
from suture.agents.roles.advisers import (
    CritiqueReply,
    LessonsReply,
    draft_critique_prompt,
    draft_lessons_prompt,
)
from suture.core.records import Counterexample, Critique, decode_record, encode_record
from suture.errors import MalformedReply
from suture.models import Message, Sampling
from suture.models.structured_output import ask_structured
from suture.testing import ScriptedModel

CODE = "def f(x):\n    return x\n"
FACT = Counterexample(check_id="c", call="f(1)", expected="2", actual="1")


def render_user_prompt(draft: PromptDraft) -> str:
    return draft.messages(draft.full_counts())[-1].content


def render_messages(draft: PromptDraft) -> Sequence[Message]:
    return draft.messages(draft.full_counts())


def make_critique_prompt(**more: int) -> PromptDraft:
    brief = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT])
    return draft_critique_prompt(brief, packaged_prompt("critic"), **more)


def test_the_critic_sees_task_code_and_facts() -> None:
    text = render_user_prompt(make_critique_prompt(passed=1, total=3))
    for part in ("Add one.", "### m.py", "return x", "1 of 3 tests passed", "`f(1)` gave 1", '"approved"'):
        assert part in text
    assert "line by line" in text


def test_the_critic_of_passing_code_looks_for_gaps_in_the_tests() -> None:
    assert "The tests may miss something" in render_user_prompt(make_critique_prompt(passed=3, total=3))
    assert "It was not tested" in render_user_prompt(make_critique_prompt())


async def test_a_critique_reply_becomes_a_record() -> None:
    model = ScriptedModel(['{"issues": ["returns x itself"], "score": 0.2, "approved": false}'])
    answer = await ask_structured(
        model.complete, render_messages(make_critique_prompt()), CritiqueReply, Sampling()
    )
    record = answer.record()
    assert record == Critique(issues=("returns x itself",), score=0.2, approved=False)
    assert decode_record(Critique, encode_record(record)) == record


@pytest.mark.parametrize("reply", ["Looks good to me!", '{"score": 1, "approved": true}', "{}"])
async def test_an_unusable_critique_is_malformed(reply: str) -> None:
    model = ScriptedModel([reply], repeat_last=True)
    with pytest.raises(MalformedReply):
        await ask_structured(
            model.complete, render_messages(make_critique_prompt()), CritiqueReply, Sampling()
        )


def make_lessons_prompt(known: Sequence[str] = ()) -> PromptDraft:
    attempt = EarlierAttempt(label="sample 1", passed=1, total=3, first_failure="`f(1)` gave 1")
    prompt = packaged_prompt("summariser")
    return draft_lessons_prompt(
        prompt, statement="Add one.", history=[attempt], remarks=["x is returned"], lessons=known
    )


def test_the_summariser_sees_attempts_and_lessons() -> None:
    text = render_user_prompt(make_lessons_prompt(["Add before you return."]))
    for part in ("Add one.", "sample 1: 1 of 3", "x is returned", "Add before you return.", "at most 5"):
        assert part in text
    assert "Lessons so far" not in render_user_prompt(make_lessons_prompt())


async def test_lessons_are_few_and_unique() -> None:
    replies = ['{"lessons": ["Add one!", "add ONE", "Return it."]}', '{"lessons": []}']
    model = ScriptedModel(replies, repeat_last=True)
    answer = await ask_structured(
        model.complete, render_messages(make_lessons_prompt()), LessonsReply, Sampling()
    )
    assert answer.unique() == ("Add one!", "Return it.")
    with pytest.raises(MalformedReply):
        await ask_structured(model.complete, render_messages(make_lessons_prompt()), LessonsReply, Sampling())


def test_advice_is_added_to_the_coders_prompt() -> None:
    prompt = packaged_prompt("coder")
    plain_brief = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT])
    advised_brief = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT], advice=["add\n1"])
    advised_prompt, plain_prompt = (
        render_user_prompt(draft_coder_prompt(advised_brief, prompt)),
        render_user_prompt(draft_coder_prompt(plain_brief, prompt)),
    )
    advice = "\nAdvice that may help:\n- add 1\n"

    assert advised_prompt.replace(advice, "") == plain_prompt
    assert advice in advised_prompt
