"""Structured output: validation, corrections, and the limit of calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from models.bad_replies import BAD_REPLIES, JSON, MEANING, Triage
from suture.core.settings.schema import Settings
from suture.errors import BudgetExceeded, MalformedReply, ModelError, ModelTimeout
from suture.models import Message, RecordedModel, Reply, Sampling, call_hash, open_model
from suture.models.structured_output import ask_structured, describe_schema
from suture.models.structured_output.reply_parsing import UnreadableReply, parse_reply
from suture.models.structured_output.reply_schemas import strict_schema
from suture.testing import ScriptedModel

PROMPT = (Message(role="user", content="What is wrong?"),)
SAMPLING = Sampling(max_tokens=64)


def cut_reply(text: str, tokens: int = 64) -> Reply:
    """Return a reply that the token limit cut."""
    return Reply(text=text, finish="length", completion_tokens=tokens)


async def test_a_good_reply_is_the_answer() -> None:
    model = ScriptedModel([JSON])
    answer = await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert (answer, len(model.calls)) == (MEANING, 1)
    assert model.calls[0].sampling.schema == strict_schema(Triage)
    assert model.calls[0].messages == PROMPT


async def test_an_invalid_reply_is_retried_with_the_reason() -> None:
    model = ScriptedModel([JSON.replace("off_by_one", "runtime"), JSON])
    answer = await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert (answer, len(model.calls)) == (MEANING, 2)

    second_call = model.calls[1]
    assert second_call.sampling.temperature > model.calls[0].sampling.temperature
    assert [message.role for message in second_call.messages] == ["user", "assistant", "user"]
    assert "category must be one of syntax, off_by_one" in second_call.messages[-1].content


@pytest.mark.parametrize("bad", [bad for bad in BAD_REPLIES if bad.expected is None], ids=lambda bad: bad.id)
async def test_unreadable_replies_end_as_malformed(bad: object) -> None:
    assert isinstance(bad, type(BAD_REPLIES[0]))
    model = ScriptedModel([bad.text], repeat_last=True)
    with pytest.raises(MalformedReply, match="in 3 replies"):
        await ask_structured(model.complete, PROMPT, bad.type_, SAMPLING)
    assert len(model.calls) == 3


async def test_a_reply_cut_at_the_limit_is_repeated_with_higher_temperatures() -> None:
    model = ScriptedModel([cut_reply(JSON)], repeat_last=True)
    with pytest.raises(MalformedReply, match="cut at 64 tokens") as caught:
        await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert caught.value.remedy == "raise model.max_tokens"
    assert [call.sampling.temperature for call in model.calls] == [0.0, 0.2, 0.4]


async def test_a_reply_cut_before_its_limit_is_not_repeated() -> None:
    model = ScriptedModel([cut_reply(JSON, 40), JSON])  # as when the budget allows no more tokens
    with pytest.raises(MalformedReply, match="cut at 40 tokens, before its limit of 64") as caught:
        await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert "budget.completion_tokens" in str(caught.value.remedy)
    assert len(model.calls) == 1


async def test_a_cut_reply_with_an_estimated_count_is_repeated() -> None:
    model = ScriptedModel([replace(cut_reply(JSON, 40), counted_by="bound"), JSON])
    await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert len(model.calls) == 2


async def test_a_reply_with_another_ending_is_read_only_if_it_is_plain_json() -> None:
    model = ScriptedModel([Reply(text=JSON[:-1], finish="other"), Reply(text=JSON, finish="other")])
    await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert len(model.calls) == 2


@pytest.mark.parametrize("fault", [ModelTimeout("late"), ModelError("HTTP 500"), MalformedReply("no JSON")])
async def test_a_model_error_ends_structured_asking(fault: ModelError) -> None:
    model = ScriptedModel([fault, JSON])
    with pytest.raises(type(fault)):
        await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    assert len(model.calls) == 1


async def test_every_repetition_is_charged_to_the_budget() -> None:
    model = ScriptedModel(["rubbish"], repeat_last=True)
    charged_calls = 0

    async def complete(messages: Sequence[Message], sampling: Sampling) -> Reply:
        nonlocal charged_calls
        if charged_calls == 2:
            raise BudgetExceeded("tokens", 2, 2)
        charged_calls += 1
        return await model.complete(messages, sampling)

    with pytest.raises(BudgetExceeded):
        await ask_structured(complete, PROMPT, Triage, SAMPLING, tries=5)
    assert len(model.calls) == 2


async def test_the_schema_is_part_of_the_call(tmp_path: Path) -> None:
    model = RecordedModel(ScriptedModel(["prose", JSON]), tmp_path)
    assert (await model.complete(PROMPT, SAMPLING)).text == "prose"

    answer = await ask_structured(model.complete, PROMPT, Triage, SAMPLING)
    key = call_hash(model.name, PROMPT, replace(SAMPLING, schema=strict_schema(Triage)))
    stored = json.loads((tmp_path / f"{key}.json").read_text("ascii"))
    assert stored["sampling"]["schema"]["title"] == "Triage"

    replayed = await ask_structured(
        RecordedModel(ScriptedModel([]), tmp_path).complete, PROMPT, Triage, SAMPLING
    )
    assert replayed == answer


def test_a_type_with_a_default_is_refused() -> None:
    class Lenient(BaseModel):
        approved: bool = True

    with pytest.raises(TypeError, match="approved"):
        strict_schema(Lenient)

    class Outer(BaseModel):
        inner: Lenient

    with pytest.raises(TypeError, match="approved"):
        strict_schema(Outer)


def test_a_type_is_described_in_words() -> None:
    class Part(BaseModel):
        kind: Literal["a"]
        lines: list[int]

    class Whole(BaseModel):
        part: Part
        sure: bool

    assert describe_schema(Whole) == (
        '{\n  "part": {\n    "kind": "a",\n    "lines": [a whole number, ...]\n  },\n'
        '  "sure": true or false\n}'
    )

    described = describe_schema(Triage)
    assert '"root_cause": a text of at most 300 characters' in described
    assert '"category": one of "syntax", "off_by_one", "wrong_type", "wrong_logic"' in described
    assert '"confidence": a number from 0 to 1' in described or "from 0.0 to 1.0" in described


@given(st.text())
def test_any_text_is_refused_as_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply):
        parse_reply(text, Triage)


@pytest.mark.live
@pytest.mark.timeout(600)
async def test_the_embedded_model_follows_the_schema(
    local_settings: Settings,
) -> None:
    model = open_model(local_settings)
    question = "def f(n): return range(1, n)\n\nf(3) should be 1, 2, 3. What is wrong?"
    prompt = (Message(role="user", content=question),)
    await ask_structured(model.complete, prompt, Triage, Sampling(max_tokens=200), tries=1)
    await model.close()
