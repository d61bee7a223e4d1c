"""A reply that was truncated inside its code is requested once more, with a higher token limit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from run_events import read_event_data
from suture.api import WriteOptions, replay, solve
from suture.core.records import render_reason
from suture.core.settings import BudgetSettings, LoopSettings, ModelSettings, ProfileSettings, Settings
from suture.errors import ModelTimeout
from suture.models import Message, Reply, Sampling
from suture.models.scripted_model import ScriptedCall
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
WHOLE = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = WHOLE.replace("+", "-")
MAX_TOKENS = 100


class CountingModel(ScriptedModel):
    """Report as many tokens as the limit allows for each reply that is truncated."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        reply = await super().complete(messages, sampling)
        tokens = sampling.max_tokens if reply.finish == "length" else 20
        return Reply(**{**vars(reply), "prompt_tokens": 50, "completion_tokens": tokens})


def truncated_reply(text: str) -> Reply:
    return Reply(text=text, finish="length")


TRUNCATED = truncated_reply("Sure.\n\n```python\ndef add(a, b):\n    total = a")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings for one greedy reply."""
    return settings.model_copy(
        update={"loop": LoopSettings(recipe="greedy"), "model": ModelSettings(max_tokens=MAX_TOKENS)}
    )


def reply_limits(calls: Sequence[ScriptedCall]) -> list[int]:
    return [call.sampling.max_tokens for call in calls]


async def test_a_truncated_reply_is_requested_again_with_twice_the_limit(settings: Settings) -> None:
    model = CountingModel([TRUNCATED, WHOLE])

    result = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert result.outcome == "healed"
    assert reply_limits(model.calls) == [MAX_TOKENS, 2 * MAX_TOKENS]
    first, second = model.calls
    assert first.messages == second.messages
    assert first.sampling.index == second.sampling.index
    spend = result.spend
    assert (spend.attempts, spend.model_calls, spend.completion_tokens) == (1, 2, MAX_TOKENS + 20)
    (truncated,) = read_event_data(settings.paths.home, "reply.truncated")
    assert truncated["retry_max_tokens"] == 2 * MAX_TOKENS
    assert truncated["call"] == read_event_data(settings.paths.home, "model.called")[0]["call"]


async def test_a_truncated_reply_is_requested_again_only_once(settings: Settings) -> None:
    model = CountingModel([TRUNCATED], repeat_last=True)
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert reply_limits(model.calls) == [MAX_TOKENS, 2 * MAX_TOKENS]
    assert (result.candidate, result.spend.attempts) == (None, 1)
    assert (
        "was cut short before the code was complete"
        in read_event_data(settings.paths.home, "move.failed")[0]["message"]
    )


@pytest.mark.parametrize(
    "text", [f"{WHOLE}\n\nThis function adds its two", f"{WHOLE}\n\n```text\nadd(1, 2) is", WHOLE]
)
async def test_complete_code_is_used_when_only_prose_is_truncated(settings: Settings, text: str) -> None:
    model = CountingModel([truncated_reply(text)])
    result = await solve(TASK, WriteOptions(settings=settings, model=model))
    assert (result.outcome, len(model.calls)) == ("healed", 1)


async def test_a_run_that_a_limit_ends_says_which_and_how_much_is_used(settings: Settings) -> None:
    budget = BudgetSettings(attempts=1, seconds=100, tokens=20)
    model = ScriptedModel([""])

    result = await solve(
        TASK, WriteOptions(settings=settings.model_copy(update={"budget": budget}), model=model)
    )

    assert result.outcome == "budget_exhausted"
    assert (result.reason.fault, result.reason.limit) == ("tokens", 20)
    text = "the next call could exceed the limit of 20 tokens, 0 are used"
    assert render_reason(result.reason) == text
    assert model.calls == []


@pytest.mark.parametrize(
    ("max_completion_tokens", "limits"),
    [
        (MAX_TOKENS, [MAX_TOKENS]),
        (2 * MAX_TOKENS, [MAX_TOKENS]),
        (2 * MAX_TOKENS + 50, [MAX_TOKENS, MAX_TOKENS + 50]),
        (MAX_TOKENS // 2 + 20, [MAX_TOKENS // 2 + 20]),
    ],
)
async def test_the_retry_respects_the_completion_token_budget(
    settings: Settings, max_completion_tokens: int, limits: list[int]
) -> None:
    budget = BudgetSettings(attempts=1, seconds=100, completion_tokens=max_completion_tokens)
    model = CountingModel([TRUNCATED], repeat_last=True)

    result = await solve(
        TASK, WriteOptions(settings=settings.model_copy(update={"budget": budget}), model=model)
    )

    assert reply_limits(model.calls) == limits
    assert result.spend.completion_tokens == sum(limits) <= max_completion_tokens


async def test_no_retry_is_made_without_tokens_left(settings: Settings) -> None:
    model = CountingModel([TRUNCATED], repeat_last=True)
    unlimited = await solve(TASK, WriteOptions(settings=settings, model=model))
    reserved = read_event_data(settings.paths.home, "budget.reserved")[0]["tokens"]
    budget = BudgetSettings(attempts=1, seconds=100, tokens=reserved + 50)
    limited_model = CountingModel([TRUNCATED], repeat_last=True)

    limited = await solve(
        TASK, WriteOptions(settings=settings.model_copy(update={"budget": budget}), model=limited_model)
    )

    assert (len(model.calls), len(limited_model.calls)) == (2, 1)
    assert limited.spend.tokens < unlimited.spend.tokens


async def test_the_retry_is_replayed_from_disk(settings: Settings) -> None:
    result = await solve(TASK, WriteOptions(settings=settings, model=CountingModel([TRUNCATED, WHOLE])))
    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference
    assert replayed.result.outcome == "healed"


class SlowFirstSample(CountingModel):
    """The greedy reply is wrong. The first sample is right, but arrives after the second, truncated one."""

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
        return Reply(
            text=TRUNCATED.text, finish="length", prompt_tokens=50, completion_tokens=sampling.max_tokens
        )


@pytest.mark.parametrize(("spare_tokens", "retry_limits"), [(0, []), (210, [160])])
async def test_a_replay_repeats_the_retries_of_its_run_only(
    settings: Settings, spare_tokens: int, retry_limits: list[int]
) -> None:
    sampling = LoopSettings(recipe="best_of_k", samples=2)
    budget = BudgetSettings(attempts=3, seconds=100)
    unlimited = settings.model_copy(update={"loop": sampling, "budget": budget})
    await solve(TASK, WriteOptions(settings=unlimited, model=SlowFirstSample()))
    reserved_tokens = sum(
        reserved["tokens"] for reserved in read_event_data(unlimited.paths.home, "budget.reserved")[1:3]
    )
    limited_budget = budget.model_copy(update={"tokens": 70 + reserved_tokens + spare_tokens})
    limited = unlimited.model_copy(update={"budget": limited_budget})

    run = await solve(TASK, WriteOptions(settings=limited, model=SlowFirstSample()))

    truncated = read_event_data(limited.paths.home, "reply.truncated")
    assert [event["retry_max_tokens"] for event in truncated] == retry_limits

    replayed = await replay(run.run_id, settings=limited)
    assert replayed.same, replayed.difference


async def test_complete_code_of_a_truncated_reply_is_used_when_the_retry_fails(settings: Settings) -> None:
    partly_complete = truncated_reply(WHOLE.removesuffix("```") + "\n\ndef double(n):\n    twice = n")
    model = CountingModel([partly_complete, ModelTimeout("too slow")])

    result = await solve(TASK, WriteOptions(settings=settings, model=model))

    assert reply_limits(model.calls) == [MAX_TOKENS, 2 * MAX_TOKENS]
    assert (result.outcome, result.spend.attempts) == ("healed", 1)

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference


def prefilled_settings(settings: Settings) -> Settings:
    model = ModelSettings(max_tokens=MAX_TOKENS, profile=ProfileSettings(prefill=True))
    return settings.model_copy(update={"loop": LoopSettings(recipe="lean_best_of_k"), "model": model})


async def test_a_prefilled_reply_continues_where_it_was_truncated(settings: Settings) -> None:
    model = CountingModel([truncated_reply("a, b):\n    total = a"), " + b\n    return total"])

    result = await solve(TASK, WriteOptions(settings=prefilled_settings(settings), model=model))

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert list(result.candidate.files.values()) == ["def add(a, b):\n    total = a + b\n    return total\n"]
    prefills = [call.messages[-1].content for call in model.calls]
    assert prefills == ["```python\ndef add(", "```python\ndef add(a, b):\n    total = a"]
    assert (result.spend.attempts, result.spend.model_calls) == (1, 2)

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.result.candidate == result.candidate


async def test_a_repetitive_truncated_reply_is_not_continued(settings: Settings) -> None:
    model = CountingModel(
        [truncated_reply("a, b):\n" + "    total = a\n" * 9), "a, b):\n    return a + b"], repeat_last=True
    )
    result = await solve(TASK, WriteOptions(settings=prefilled_settings(settings), model=model))
    assert result.outcome == "healed"
    assert {call.messages[-1].content for call in model.calls} == {"```python\ndef add("}
    assert read_event_data(settings.paths.home, "reply.truncated") == []
