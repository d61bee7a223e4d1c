"""How long a reply may be, what a call reserves, and replies that have no answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loop.test_model_call import ANSWER, CallEnvironment
from suture.agents.calling.coder_call import prompt_room_tokens
from suture.agents.calling.model_call import ModelQuestion, ask
from suture.core.ledger import Limits
from suture.core.ledger.kinds import MovesDecided
from suture.core.records import Move
from suture.core.settings import Settings
from suture.errors import MissingAnswer, ModelError
from suture.models import Message, Reply, RoleModel, Sampling, ToolDeclaration
from suture.testing import ScriptedModel

SMALL = "local:qwen2.5-coder-1.5b"
CAPABLE = "openai:gpt-4o"
THINKING = "openai:gpt-5"
THOUGHT = Reply(text="", finish="thinking", prompt_tokens=20, completion_tokens=9_000)
REFUSAL = Reply(text="I cannot help with that.", finish="refusal", prompt_tokens=20, completion_tokens=6)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[CallEnvironment]:
    environment = CallEnvironment(tmp_path)
    yield environment
    environment.ledger.close()


def make_question(text: str = "Repair it.", **values: Any) -> ModelQuestion:
    return ModelQuestion(
        role="coder",
        messages=(Message(role="user", content=text),),
        prompt="p" * 64,
        sampling=Sampling(max_tokens=100_000, **values),
        move="sample",
    )


def decide_moves(run: CallEnvironment, count: int) -> None:
    run.ledger.append(MovesDecided(moves=tuple(Move(kind="sample", index=index) for index in range(count))))


async def test_thinking_has_room_besides_the_answer(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER], name=THINKING)
    await ask(make_question(), run.context(model, max_tokens=1_000))
    assert model.calls[0].sampling.max_tokens == 1_000 + 8_192


async def test_a_reply_that_was_spent_on_thinking_is_asked_for_once_with_much_more_room(
    run: CallEnvironment,
) -> None:
    model = ScriptedModel([THOUGHT, ANSWER], name=THINKING)
    context = run.context(model, max_tokens=1_000, limits=Limits(attempts=1))

    reply = await ask(make_question(), context)

    assert reply.text == "yes"
    assert [call.sampling.max_tokens for call in model.calls] == [9_192, 36_000]
    assert context.budget.spend().attempts == 1
    assert [event["retry_max_tokens"] for event in run.events("reply.truncated")] == [36_000]


async def test_a_model_that_only_thinks_is_named_after_two_calls(run: CallEnvironment) -> None:
    model = ScriptedModel([THOUGHT, replace(THOUGHT, completion_tokens=36_000)], name=THINKING)
    with pytest.raises(MissingAnswer, match="36000 tokens of its reply on thinking") as caught:
        await ask(make_question(), run.context(model))
    assert caught.value.reason == "thinking"
    assert "thinking_tokens" in caught.value.remedy
    assert len(model.calls) == 2


async def test_a_thinking_model_without_room_for_more_is_asked_once(run: CallEnvironment) -> None:
    model = ScriptedModel([THOUGHT], name=THINKING)
    with pytest.raises(MissingAnswer):
        await ask(make_question(), run.context(model, limits=Limits(tokens=12_000)))
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("reply", "reason", "message"),
    [
        (REFUSAL, "refusal", "refused to answer: 'I cannot help with that.'"),
        (replace(REFUSAL, text="", finish="content_filter"), "content_filter", "content filter"),
    ],
)
async def test_a_refusal_is_named_and_not_asked_again(
    run: CallEnvironment, reply: Reply, reason: str, message: str
) -> None:
    model = ScriptedModel([reply], name=CAPABLE)
    with pytest.raises(MissingAnswer, match=message) as caught:
        await ask(make_question(), run.context(model))
    assert caught.value.reason == reason
    assert "model.fallbacks" in caught.value.remedy


async def test_a_fallback_answers_what_another_model_refuses(run: CallEnvironment) -> None:
    first, second = ScriptedModel([REFUSAL], name=CAPABLE), ScriptedModel([ANSWER], name="openai:other")
    assert (await ask(make_question(), run.context(first, second))).text == "yes"
    assert [event["error_type"] for event in run.events("model.fell_back")] == ["MissingAnswer"]


async def test_the_length_of_tokens_is_learnt_from_the_providers_counts(run: CallEnvironment) -> None:
    text = "def f(a, b): return a + b\n" * 400
    first_reply = replace(ANSWER, prompt_tokens=len(text) // 4)
    context = run.context(ScriptedModel([first_reply, ANSWER], name=CAPABLE), max_tokens=200)

    await ask(make_question(text), context)
    await ask(make_question(text, index=1), context)

    first, second = (event["tokens"] - 200 for event in run.events("budget.reserved"))
    assert first > len(text) / 2.6  # on the high side, as long as nothing is known
    assert len(text) / 4 < second < len(text) / 3.5


async def test_counts_of_another_model_and_our_own_bounds_teach_nothing(run: CallEnvironment) -> None:
    text = "x" * 10_000
    odd = replace(ANSWER, prompt_tokens=10)
    await ask(make_question(text), run.context(ScriptedModel([odd], name="openai:other"), max_tokens=200))
    own_bound = replace(odd, counted_by="bound")
    context = run.context(ScriptedModel([own_bound, ANSWER], name=CAPABLE), max_tokens=200)
    for index in range(2):
        await ask(make_question(text, index=index), context)
    assert all(event["tokens"] > 4_000 for event in run.events("budget.reserved"))


async def test_a_reservation_counts_the_declared_tools(run: CallEnvironment) -> None:
    tool = ToolDeclaration(name="read", description="x" * 2_000, inputs={"path": "y" * 500})
    context = run.context(ScriptedModel([ANSWER, ANSWER], name=CAPABLE), max_tokens=200)
    await ask(make_question(), context)
    await ask(replace(make_question(), tools=(tool,)), context)
    without, with_tool = (event["tokens"] for event in run.events("budget.reserved"))
    assert with_tool - without >= 1_000


async def test_long_replies_of_parallel_branches_share_the_remaining_tokens(run: CallEnvironment) -> None:
    decide_moves(run, 4)
    model = ScriptedModel([ANSWER], name=CAPABLE)
    await ask(make_question(), run.context(model, max_tokens=16_384, limits=Limits(tokens=40_000)))
    assert model.calls[0].sampling.max_tokens == 10_000


async def test_a_single_branch_may_use_all_remaining_tokens(run: CallEnvironment) -> None:
    decide_moves(run, 1)
    model = ScriptedModel([ANSWER], name=CAPABLE)
    await ask(make_question(), run.context(model, max_tokens=16_384, limits=Limits(tokens=16_600)))
    assert model.calls[0].sampling.max_tokens == 16_384


async def test_tokens_from_the_cache_are_recorded_at_their_own_price(run: CallEnvironment) -> None:
    reply = Reply(text="yes", prompt_tokens=10_000, completion_tokens=0, cached_tokens=8_000)
    await ask(make_question("x" * 30_000), run.context(ScriptedModel([reply], name=CAPABLE)))
    (called,) = run.events("model.called")
    assert called["cached_tokens"] == 8_000
    assert called["money"] == pytest.approx(2_000 * 2.5e-6 + 8_000 * 1.25e-6)


@pytest.mark.parametrize(
    ("names", "max_tokens", "room_tokens"),
    [
        ([SMALL], 1_024, 7_168),
        (["ollama:qwen3:8b"], 1_024, 4_096),
        ([CAPABLE], 16_384, 111_616),
        ([CAPABLE, SMALL], 1_024, 7_168),
        (["openai:unknown"], 4_096, None),
    ],
)
def test_a_prompt_leaves_room_for_the_reply_in_the_smallest_context(
    names: list[str], max_tokens: int, room_tokens: int | None
) -> None:
    chain = tuple(ScriptedModel([], name=name) for name in names)
    role_model = RoleModel(chain=chain, temperature=0.8, max_tokens=max_tokens)
    assert prompt_room_tokens(role_model, Settings()) == room_tokens


async def test_an_ordinary_error_of_a_model_is_no_missing_answer(run: CallEnvironment) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(make_question(), run.context(ScriptedModel([ModelError("down")], name=CAPABLE)))
    assert not isinstance(caught.value, MissingAnswer)
