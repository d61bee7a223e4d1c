"""A reply that was cut within its code is asked for once more, with a higher limit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from suture.api import WriteOptions, replay, solve
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import BudgetSettings, LoopSettings, ModelSettings, Settings
from suture.errors import ModelTimeout
from suture.models import Message, Reply, Sampling
from suture.models.scripted_model import ScriptedCall
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
WHOLE = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = WHOLE.replace("+", "-")
MOST = 100


class Wordy(ScriptedModel):
    """Uses all the room it has where its script says that the reply was cut."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        reply = await super().complete(messages, sampling)
        tokens = sampling.max_tokens if reply.finish == "length" else 20
        return Reply(**{**vars(reply), "prompt_tokens": 50, "completion_tokens": tokens})


def cut(text: str) -> Reply:
    return Reply(text=text, finish="length")


TORN = cut("Sure.\n\n```python\ndef add(a, b):\n    total = a")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """One greedy reply."""
    return settings.model_copy(
        update={"loop": LoopSettings(recipe="greedy"), "model": ModelSettings(max_tokens=MOST)}
    )


def reply_limits(calls: Sequence[ScriptedCall]) -> list[int]:
    return [call.sampling.max_tokens for call in calls]


def events_of(settings: Settings, kind: str) -> list[Any]:
    events = read_ledger(find_run(settings.paths.home, "last").ledger_path).events
    return [event.data for event in events if event.kind == kind]


async def test_it_is_asked_for_again_with_twice_the_limit_and_is_one_attempt(settings: Settings) -> None:
    model = Wordy([TORN, WHOLE])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert result.outcome == "healed"
    assert reply_limits(model.calls) == [MOST, 2 * MOST]
    first, second = model.calls
    assert first.messages == second.messages
    assert first.sampling.index == second.sampling.index
    spend = result.spend
    assert (spend.attempts, spend.model_calls, spend.completion_tokens) == (1, 2, MOST + 20)
    (noted,) = events_of(settings, "reply.truncated")
    assert noted["retry_max_tokens"] == 2 * MOST
    assert noted["call"] == events_of(settings, "model.called")[0]["call"]


async def test_once_only_and_what_is_torn_is_never_code(settings: Settings) -> None:
    model = Wordy([TORN], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert reply_limits(model.calls) == [MOST, 2 * MOST]
    assert (result.candidate, result.spend.attempts) == (None, 1)
    assert "was cut short before the code was complete" in events_of(settings, "move.failed")[0]["message"]


@pytest.mark.parametrize(
    "text", [f"{WHOLE}\n\nThis function adds its two", f"{WHOLE}\n\n```text\nadd(1, 2) is", WHOLE]
)
async def test_whole_code_is_used_where_only_words_are_missing(settings: Settings, text: str) -> None:
    model = Wordy([cut(text)])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert (result.outcome, len(model.calls)) == ("healed", 1)


@pytest.mark.parametrize(
    ("replies", "asked"),
    [
        (MOST, [MOST]),
        (2 * MOST, [MOST]),
        (2 * MOST + 50, [MOST, MOST + 50]),
        (MOST // 2 + 20, [MOST // 2 + 20]),
    ],
)
async def test_a_cap_of_the_replies_is_kept(settings: Settings, replies: int, asked: list[int]) -> None:
    budget = BudgetSettings(attempts=1, seconds=100, completion_tokens=replies)
    model = Wordy([TORN], repeat_last=True)
    result = await solve(
        TASK, WriteOptions(settings=settings.model_copy(update={"budget": budget}), model=model)
    )
    assert reply_limits(model.calls) == asked
    assert result.spend.completion_tokens == sum(asked) <= replies


async def test_tokens_that_are_not_there_are_not_spent(settings: Settings) -> None:
    model = Wordy([TORN], repeat_last=True)
    whole = await solve(TASK, WriteOptions(settings=settings, model=model))
    reserved = events_of(settings, "budget.reserved")[0]["tokens"]
    budget = BudgetSettings(attempts=1, seconds=100, tokens=reserved + 50)
    short = Wordy([TORN], repeat_last=True)
    result = await solve(
        TASK, WriteOptions(settings=settings.model_copy(update={"budget": budget}), model=short)
    )
    assert (len(model.calls), len(short.calls)) == (2, 1)
    assert result.spend.tokens < whole.spend.tokens


async def test_the_second_draw_is_on_disk_too(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=Wordy([TORN, WHOLE])))
    again = await replay(result.run_id, settings=settings)
    assert again.same, again.difference
    assert again.result.outcome == "healed"


class SlowFirst(Wordy):
    """Greedy it is wrong; then the first sample is right, and comes when the second has been there, cut."""

    def __init__(self) -> None:
        super().__init__([])
        self._second = asyncio.Event()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        if sampling.index == 0:
            return Reply(text=WRONG, prompt_tokens=50, completion_tokens=20)
        if sampling.index == 1:
            await asyncio.wait_for(self._second.wait(), 10)
            return Reply(text=WHOLE, prompt_tokens=50, completion_tokens=20)
        self._second.set()
        return Reply(text=TORN.text, finish="length", prompt_tokens=50, completion_tokens=sampling.max_tokens)


@pytest.mark.parametrize(("spare", "again_with"), [(0, []), (210, [160])])
async def test_a_replay_draws_again_what_the_run_did_and_nothing_else(
    settings: Settings, spare: int, again_with: list[int]
) -> None:
    two = LoopSettings(recipe="best_of_k", samples=2)
    budget = BudgetSettings(attempts=3, seconds=100)
    wide = settings.model_copy(update={"loop": two, "budget": budget})
    await solve(TASK, WriteOptions(settings=wide, model=SlowFirst()))
    both = sum(reserved["tokens"] for reserved in events_of(wide, "budget.reserved")[1:3])
    limited = budget.model_copy(update={"tokens": 70 + both + spare})
    tight = wide.model_copy(update={"budget": limited})
    run = await solve(TASK, WriteOptions(settings=tight, model=SlowFirst()))
    assert [cut["retry_max_tokens"] for cut in events_of(tight, "reply.truncated")] == again_with
    again = await replay(run.run_id, settings=tight)
    assert again.same, again.difference


async def test_what_is_whole_in_a_cut_reply_counts_where_the_second_draw_fails(settings: Settings) -> None:
    partly = cut(WHOLE.removesuffix("```") + "\n\ndef double(n):\n    twice = n")
    model = Wordy([partly, ModelTimeout("too slow")])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert reply_limits(model.calls) == [MOST, 2 * MOST]
    assert (result.outcome, result.spend.attempts) == ("healed", 1)
    again = await replay(result.run_id, settings=settings)
    assert again.same, again.difference


def begun_settings(settings: Settings) -> Settings:
    model = ModelSettings(max_tokens=MOST, prefill=True)
    return settings.model_copy(update={"loop": LoopSettings(recipe="lean_best_of_k"), "model": model})


async def test_a_reply_that_was_begun_is_gone_on_with_where_it_was_cut(settings: Settings) -> None:
    model = Wordy([cut("a, b):\n    total = a"), " + b\n    return total"])
    result = await solve(TASK, WriteOptions(settings=begun_settings(settings), model=model))
    assert result.outcome == "healed"
    assert result.candidate is not None
    assert list(result.candidate.files.values()) == ["def add(a, b):\n    total = a + b\n    return total\n"]
    begun = [call.messages[-1].content for call in model.calls]
    assert begun == ["```python\ndef add(", "```python\ndef add(a, b):\n    total = a"]
    assert (result.spend.attempts, result.spend.model_calls) == (1, 2)
    again = await replay(result.run_id, settings=settings)
    assert again.result.candidate == result.candidate


async def test_a_reply_that_goes_in_circles_is_left(settings: Settings) -> None:
    model = Wordy([cut("a, b):\n" + "    total = a\n" * 9), "a, b):\n    return a + b"], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=begun_settings(settings), model=model))
    assert result.outcome == "healed"
    assert {call.messages[-1].content for call in model.calls} == {"```python\ndef add("}
    assert events_of(settings, "reply.truncated") == []
