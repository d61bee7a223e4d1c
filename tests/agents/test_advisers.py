"""Critic and summariser: their prompts and their answers."""

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


def shown(draft: PromptDraft) -> str:
    return draft.messages(draft.full_counts())[-1].content


def prompt_of(draft: PromptDraft) -> Sequence[Message]:
    return draft.messages(draft.full_counts())


def critique(**more: int) -> PromptDraft:
    brief = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT])
    return draft_critique_prompt(brief, packaged_prompt("critic"), **more)


def test_the_critic_sees_task_code_and_facts() -> None:
    text = shown(critique(passed=1, total=3))
    for part in ("Add one.", "### m.py", "return x", "1 of 3 tests passed", "`f(1)` gave 1", '"approved"'):
        assert part in text
    assert "line by line" in text


def test_for_passing_code_the_critic_looks_for_gaps_in_the_tests() -> None:
    assert "The tests may miss something" in shown(critique(passed=3, total=3))
    assert "It was not tested" in shown(critique())


async def test_a_critique_is_a_record() -> None:
    model = ScriptedModel(['{"issues": ["returns x itself"], "score": 0.2, "approved": false}'])
    answer = await ask_structured(model.complete, prompt_of(critique()), CritiqueReply, Sampling())
    record = answer.value.record()
    assert record == Critique(issues=("returns x itself",), score=0.2, approved=False)
    assert decode_record(Critique, encode_record(record)) == record


@pytest.mark.parametrize("reply", ["Looks good to me!", '{"score": 1, "approved": true}', "{}"])
async def test_an_unusable_critique_is_malformed(reply: str) -> None:
    model = ScriptedModel([reply], repeat_last=True)
    with pytest.raises(MalformedReply):
        await ask_structured(model.complete, prompt_of(critique()), CritiqueReply, Sampling())


def lessons(known: Sequence[str] = ()) -> PromptDraft:
    tried = EarlierAttempt(label="sample 1", passed=1, total=3, first_failure="`f(1)` gave 1")
    prompt = packaged_prompt("summariser")
    return draft_lessons_prompt(
        prompt, statement="Add one.", history=[tried], remarks=["x is returned"], lessons=known
    )


def test_the_summariser_sees_attempts_and_lessons() -> None:
    text = shown(lessons(["Add before you return."]))
    for part in ("Add one.", "sample 1: 1 of 3", "x is returned", "Add before you return.", "at most 5"):
        assert part in text
    assert "Lessons so far" not in shown(lessons())


async def test_lessons_are_few_and_unique() -> None:
    replies = ['{"lessons": ["Add one!", "add ONE", "Return it."]}', '{"lessons": []}']
    model = ScriptedModel(replies, repeat_last=True)
    answer = await ask_structured(model.complete, prompt_of(lessons()), LessonsReply, Sampling())
    assert answer.value.unique() == ("Add one!", "Return it.")
    with pytest.raises(MalformedReply):
        await ask_structured(model.complete, prompt_of(lessons()), LessonsReply, Sampling())


def test_advice_reaches_the_coder_and_without_any_its_prompt_stays_as_it_was() -> None:
    prompt = packaged_prompt("coder")
    silent = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT])
    advised = RepairBrief(statement="Add one.", files={"m.py": CODE}, facts=[FACT], advice=["add\n1"])
    with_advice, without = (
        shown(draft_coder_prompt(advised, prompt)),
        shown(draft_coder_prompt(silent, prompt)),
    )
    said = "\nAdvice that may help:\n- add 1\n"
    assert with_advice.replace(said, "") == without
    assert said in with_advice
