"""Calls of a role's model: their reservation, their events, and the fallback when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suture.agents.calling.call_context import CallContext
from suture.agents.calling.model_call import ModelQuestion, ask
from suture.agents.prompting.fitting import Prefill
from suture.core.ledger import Budget, Ledger, Limits, new_run, spend_by_group
from suture.core.settings import Settings
from suture.errors import (
    BudgetExceeded,
    ContextTooLong,
    MalformedReply,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRequestRejected,
    ModelTimeout,
    ModelUnreachable,
    PrerequisiteError,
    StorageError,
)
from suture.models import (
    Message,
    Reply,
    ReplyRecording,
    Role,
    RoleModel,
    RoleModels,
    Sampling,
    ToolDeclaration,
)
from suture.models.pricing import Price, PriceTable
from suture.models.reply_recordings import ReplyNotRecorded
from suture.testing import FakeClock, ScriptedModel

PROMPT = (Message(role="user", content="x" * 52),)
BOUND = 100  # bytes of the prompt, and the allowances for a message and a chat template
PRICES = PriceTable({"paid:a": Price(input=1000, output=10_000), "paid:b": Price(input=1000, output=10_000)})
ANSWER = Reply(text="yes", prompt_tokens=20, completion_tokens=10)
Context = CallContext


class Setting:
    """A run with scripted models, without anything that would run code."""

    def __init__(self, folder: Path) -> None:
        self.folder = new_run(folder)
        self.ledger = Ledger(self.folder.ledger_path, FakeClock())

    def context(self, *chain: ScriptedModel, limits: Limits | None = None, max_tokens: int = 200) -> Context:
        role_model = RoleModel(chain=chain, temperature=0.8, max_tokens=max_tokens)
        roles: Mapping[Role, RoleModel] = {"coder": role_model, "critic": role_model}
        settings = Settings()
        models = RoleModels(roles, PRICES)
        return CallContext(
            settings=settings,
            folder=self.folder,
            ledger=self.ledger,
            budget=Budget(self.ledger, limits or Limits(), FakeClock()),
            models=models,
        )

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        return [event.data for event in self.ledger.events if event.kind == kind]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.ledger.close()


def question(role: Role = "coder", index: int = 0) -> ModelQuestion:
    sampling = Sampling(temperature=0.5, max_tokens=9999, index=index)
    return ModelQuestion(role=role, messages=PROMPT, prompt="p" * 64, sampling=sampling, move="sample")


async def test_a_call_is_reserved_in_full_and_settled_at_what_it_cost(run: Setting) -> None:
    context = run.context(ScriptedModel([ANSWER], name="paid:a"), limits=Limits(money=5))
    reply = await ask(question(), context)
    (reserved,) = run.events("budget.reserved")
    assert (reserved["tokens"], reserved["role"], reserved["move"]) == (BOUND + 200, "coder", "sample")
    assert reserved["money"] == pytest.approx(BOUND * 0.001 + 200 * 0.01)
    (called,) = run.events("model.called")
    assert (called["role"], called["move"], called["index"], called["token_count_source"]) == (
        "coder",
        "sample",
        0,
        "provider",
    )
    assert called["money"] == pytest.approx(0.02 + 0.1)
    assert context.budget.spend().money == called["money"]
    assert reply.text == "yes"


async def test_a_reply_is_no_longer_than_what_is_left_for_replies(run: Setting) -> None:
    model = ScriptedModel([ANSWER, ANSWER, ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=80))
    for index in range(2):
        await ask(question(index=index), context)
    assert [call.sampling.max_tokens for call in model.calls] == [80, 70]
    with pytest.raises(BudgetExceeded, match=r"budget\.completion_tokens"):
        await ask(question(index=2), context)


async def test_a_helper_leaves_most_of_what_is_left_for_replies_to_the_coder(run: Setting) -> None:
    rambling = Reply(text="no", prompt_tokens=20, completion_tokens=200)
    model = ScriptedModel([rambling, ANSWER, ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=1000), max_tokens=900)
    await ask(question("critic"), context)
    await ask(question("critic", index=1), context)
    await ask(question("coder"), context)
    granted = [event["max_reply_tokens"] for event in run.events("budget.reserved")]
    assert granted == [250, 200, 790]


async def test_a_helper_is_not_asked_where_its_part_is_not_worth_it(run: Setting) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=255))
    with pytest.raises(BudgetExceeded, match="completion_tokens"):
        await ask(question("critic"), context)
    await ask(question("coder"), context)
    (granted,) = run.events("budget.reserved")
    assert (granted["role"], granted["max_reply_tokens"]) == ("coder", 200)
    (refused,) = run.events("budget.refused")
    assert (refused["limit_kind"], refused["used"], refused["limit"]) == ("completion_tokens", 0, 255)


async def test_a_reply_is_no_longer_than_the_money_pays_for(run: Setting) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    await ask(question(), run.context(model, limits=Limits(money=1.1)))
    assert model.calls[0].sampling.max_tokens == 100


async def test_without_the_money_for_a_useful_reply_nobody_is_asked(run: Setting) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    with pytest.raises(BudgetExceeded, match=r"budget\.money"):
        await ask(question(), run.context(model, limits=Limits(money=0.5)))
    assert model.calls == []


async def test_a_model_of_unknown_price_is_used_and_its_calls_are_counted(run: Setting) -> None:
    context = run.context(ScriptedModel([ANSWER], name="new:model"))
    await ask(question(), context)
    spend = context.budget.spend()
    assert (spend.money, spend.unpriced_calls) == (0, 1)
    assert run.events("model.called")[0]["money"] is None
    with pytest.raises(PrerequisiteError, match=r"the price of 'new:model' is unknown.*model\.prices"):
        context.models.require_prices()


async def test_each_step_down_is_an_event_before_the_next_is_asked(run: Setting) -> None:
    first = ScriptedModel([ModelError("gone")], name="paid:a")
    seen: list[str] = []

    class Watching(ScriptedModel):
        async def complete(self, *asked: Any) -> Reply:
            seen.extend(event.kind for event in run.ledger.events)
            return await super().complete(*asked)

    context = run.context(first, Watching([ANSWER], name="paid:b"))
    assert (await ask(question(), context)).model == "paid:b"
    assert seen == ["budget.reserved", "budget.settled", "model.fell_back", "budget.reserved"]
    (stepped,) = run.events("model.fell_back")
    assert (stepped["from"], stepped["to"], stepped["error_type"]) == ("paid:a", "paid:b", "ModelError")
    assert stepped["message"] == "gone"
    spend = context.budget.spend()
    assert (spend.attempts, spend.model_calls, spend.tokens) == (1, 1, 30)


async def test_the_last_of_the_chain_has_the_last_word(run: Setting) -> None:
    chain = [ScriptedModel([ModelError(name)], name=name) for name in ("paid:a", "paid:b")]
    with pytest.raises(ModelError, match="paid:b"):
        await ask(question(), run.context(*chain))
    assert len(run.events("model.fell_back")) == 1
    assert run.events("model.called") == []


async def test_a_lost_reply_is_booked_in_full_and_takes_no_attempt(run: Setting) -> None:
    context = run.context(ScriptedModel([ModelTimeout("late")], name="paid:a"))
    with pytest.raises(ModelTimeout):
        await ask(question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens) == (0, BOUND + 200)
    assert spend.money == run.events("budget.reserved")[0]["money"]


async def test_an_unreadable_reply_is_a_spent_attempt_and_nobody_else_is_asked(run: Setting) -> None:
    second = ScriptedModel([ANSWER], name="paid:b")
    context = run.context(ScriptedModel([MalformedReply("<html>")], name="paid:a"), second)
    with pytest.raises(MalformedReply):
        await ask(question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, second.calls) == (1, BOUND + 200, [])


async def test_a_refused_call_costs_nothing(run: Setting) -> None:
    context = run.context(ScriptedModel([ModelError("no")], name="paid:a"))
    with pytest.raises(ModelError):
        await ask(question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.money) == (0, 0, 0)


async def test_a_call_that_is_stopped_in_flight_is_booked_in_full(run: Setting) -> None:
    begun = asyncio.Event()

    class Slow(ScriptedModel):
        async def complete(self, *asked: Any) -> Reply:
            begun.set()
            await asyncio.Event().wait()
            return ANSWER

    context = run.context(Slow([], name="paid:a"))
    call = asyncio.create_task(ask(question(), context))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.model_calls) == (0, BOUND + 200, 1)
    assert spend.money == run.events("budget.reserved")[0]["money"] > 0


class Raising(ScriptedModel):
    """A model that raises any exception, also those that a script cannot raise."""

    def __init__(self, fault: BaseException) -> None:
        super().__init__([], name="paid:a")
        self.fault = fault

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        raise self.fault


@pytest.mark.parametrize("fault", [StorageError("disk full"), RuntimeError("odd")], ids=repr)
async def test_a_reply_that_came_and_could_not_be_kept_is_booked_in_full(
    run: Setting, fault: Exception
) -> None:
    context = run.context(Raising(fault))
    with pytest.raises(type(fault)):
        await ask(question(), context)
    assert context.budget.spend().tokens == BOUND + 200


@pytest.mark.parametrize(
    "fault",
    [
        PrerequisiteError("no weights"),
        ModelUnreachable("nobody listens"),
        ModelAuthError("no"),
        ModelRateLimited("slow down"),
        ContextTooLong("too long"),
        ReplyNotRecorded(ReplyRecording(name="r", models=frozenset(), entries={}), "paid:a", Sampling()),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_what_was_never_begun_costs_nothing(run: Setting, fault: Exception) -> None:
    context = run.context(Raising(fault))
    with pytest.raises(type(fault)):
        await ask(question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.money, spend.model_calls) == (0, 0, 0, 0)


async def test_spend_is_split_by_role_and_by_move_and_adds_up(run: Setting) -> None:
    context = run.context(ScriptedModel([ANSWER, ANSWER, ModelTimeout("late")], name="paid:a"))
    await ask(question("coder"), context)
    await ask(question("critic"), context)
    with pytest.raises(ModelTimeout):
        await ask(question("critic", index=1), context)
    by_role = spend_by_group(run.ledger.events, "role")
    assert list(by_role) == ["coder", "critic"]
    assert by_role["coder"].tokens == 30
    assert by_role["critic"].tokens == 30 + BOUND + 200
    assert sum(spend.money for spend in by_role.values()) == pytest.approx(context.budget.spend().money)
    (sampled,) = spend_by_group(run.ledger.events, "move").values()
    assert sampled.tokens == context.budget.spend().tokens


PREFILL = Prefill(text="```python\ndef f(x):", stop=("\n```",))
BODY = Reply(text="\n    return x", prompt_tokens=20, completion_tokens=10)


async def test_a_reply_is_begun_where_the_model_continues_and_its_text_is_whole(run: Setting) -> None:
    model = ScriptedModel([BODY], name="local:a")
    reply = await ask(replace(question(), prefill=PREFILL), run.context(model))
    assert reply.text == "```python\ndef f(x):\n    return x"
    assert reply.prefill == PREFILL.text
    (call,) = model.calls
    assert call.messages == (*PROMPT, Message(role="assistant", content=PREFILL.text))
    assert call.sampling.stop == PREFILL.stop
    assert [data["prefilled"] for data in run.events("model.called")] == [True]


async def test_a_model_that_does_not_go_on_begins_by_itself(run: Setting) -> None:
    model = ScriptedModel([ANSWER], name="openai:a")
    reply = await ask(replace(question(), prefill=PREFILL), run.context(model))
    assert (reply.text, reply.prefill) == ("yes", "")
    (call,) = model.calls
    assert (call.messages, call.sampling.stop) == (PROMPT, ())


async def test_a_model_that_refuses_a_beginning_is_asked_without(run: Setting) -> None:
    model = ScriptedModel([ModelRequestRejected("no prefill here"), ANSWER], name="ollama:a")
    context = run.context(model)
    reply = await ask(replace(question(), prefill=PREFILL), context)
    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.messages[-1].role for call in model.calls] == ["assistant", "user"]
    spent = context.budget.spend()
    assert (spent.model_calls, spent.attempts) == (1, 1)


async def test_a_model_that_calls_tools_gets_their_declarations_and_one_that_refuses_is_not(
    run: Setting,
) -> None:
    tools = (ToolDeclaration(name="look", description="looks", inputs={}),)
    model = ScriptedModel([ANSWER, ModelRequestRejected("no tools here"), ANSWER], name="openai:a")
    context = run.context(model)
    await ask(replace(question(), tools=tools), context)
    other = (*PROMPT, Message(role="user", content="go on"))
    reply = await ask(replace(question(), messages=other, tools=tools), context)
    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.sampling.tools for call in model.calls] == [tools, tools, ()]


async def test_a_refusal_of_the_plain_question_is_one(run: Setting) -> None:
    model = ScriptedModel([ModelRequestRejected("no"), ModelRequestRejected("no")], name="ollama:a")
    with pytest.raises(ModelRequestRejected):
        await ask(replace(question(), prefill=PREFILL), run.context(model))
    assert len(model.calls) == 2


async def test_who_stands_in_for_a_model_is_asked_in_its_own_way(run: Setting) -> None:
    first = ScriptedModel([ModelTimeout("late")], name="local:a")
    second = ScriptedModel([ANSWER], name="openai:b")
    reply = await ask(replace(question(), prefill=PREFILL), run.context(first, second))
    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.messages[-1].role for call in (*first.calls, *second.calls)] == ["assistant", "user"]
