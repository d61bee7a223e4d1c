"""Calls of a role's model: the budget that they reserve, their events, and the fallback to another model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suture.agents.calling.budgeted_call import CallContext
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
PROMPT_TOKENS = 69  # estimated: 52 letters at 2.5 each, and the allowances for a message and a chat template
PRICES = PriceTable({"paid:a": Price(input=1000, output=10_000), "paid:b": Price(input=1000, output=10_000)})
ANSWER = Reply(text="yes", prompt_tokens=20, completion_tokens=10)


class CallEnvironment:
    """A run folder and a ledger, and contexts for calls of scripted models."""

    def __init__(self, folder: Path) -> None:
        self.folder = new_run(folder)
        self.ledger = Ledger(self.folder.ledger_path, FakeClock())

    def context(
        self, *chain: ScriptedModel, limits: Limits | None = None, max_tokens: int = 200
    ) -> CallContext:
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
def run(tmp_path: Path) -> Iterator[CallEnvironment]:
    environment = CallEnvironment(tmp_path)
    yield environment
    environment.ledger.close()


def make_question(role: Role = "coder", index: int = 0) -> ModelQuestion:
    sampling = Sampling(temperature=0.5, max_tokens=9999, index=index)
    return ModelQuestion(role=role, messages=PROMPT, prompt="p" * 64, sampling=sampling, move="sample")


async def test_a_call_reserves_its_maximum_and_settles_its_actual_cost(run: CallEnvironment) -> None:
    context = run.context(ScriptedModel([ANSWER], name="paid:a"), limits=Limits(money=5))

    reply = await ask(make_question(), context)

    (reserved,) = run.events("budget.reserved")
    assert (reserved["tokens"], reserved["role"], reserved["move"]) == (
        PROMPT_TOKENS + 200,
        "coder",
        "sample",
    )
    assert reserved["money"] == pytest.approx(PROMPT_TOKENS * 0.001 + 200 * 0.01)
    (call,) = run.events("model.called")
    assert (call["role"], call["move"], call["index"], call["token_count_source"]) == (
        "coder",
        "sample",
        0,
        "provider",
    )
    assert call["money"] == pytest.approx(0.02 + 0.1)
    assert context.budget.spend().money == call["money"]
    assert reply.text == "yes"


async def test_a_reply_is_limited_to_the_remaining_completion_tokens(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER, ANSWER, ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=80))

    for index in range(2):
        await ask(make_question(index=index), context)

    assert [call.sampling.max_tokens for call in model.calls] == [80, 70]

    with pytest.raises(BudgetExceeded, match=r"budget\.completion_tokens"):
        await ask(make_question(index=2), context)


async def test_a_helper_role_may_use_a_quarter_of_the_remaining_tokens(run: CallEnvironment) -> None:
    long_reply = Reply(text="no", prompt_tokens=20, completion_tokens=200)
    model = ScriptedModel([long_reply, ANSWER, ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=1000), max_tokens=900)
    await ask(make_question("critic"), context)
    await ask(make_question("critic", index=1), context)

    await ask(make_question("coder"), context)

    reply_limits = [event["max_reply_tokens"] for event in run.events("budget.reserved")]
    assert reply_limits == [250, 200, 790]


async def test_a_helper_role_is_not_called_when_its_share_is_too_small(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    context = run.context(model, limits=Limits(completion_tokens=255))

    with pytest.raises(BudgetExceeded, match="completion_tokens"):
        await ask(make_question("critic"), context)

    await ask(make_question("coder"), context)
    (reservation,) = run.events("budget.reserved")
    assert (reservation["role"], reservation["max_reply_tokens"]) == ("coder", 200)
    (refusal,) = run.events("budget.refused")
    assert (refusal["limit_kind"], refusal["used"], refusal["limit"]) == ("completion_tokens", 0, 255)


async def test_a_reply_is_limited_by_the_remaining_money(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    await ask(make_question(), run.context(model, limits=Limits(money=1.075)))
    assert model.calls[0].sampling.max_tokens == 100


async def test_no_call_is_made_without_money_for_a_useful_reply(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER], name="paid:a")
    with pytest.raises(BudgetExceeded, match=r"budget\.money"):
        await ask(make_question(), run.context(model, limits=Limits(money=0.5)))
    assert model.calls == []


async def test_calls_of_a_model_without_a_price_are_counted(run: CallEnvironment) -> None:
    context = run.context(ScriptedModel([ANSWER], name="new:model"))

    await ask(make_question(), context)

    spend = context.budget.spend()
    assert (spend.money, spend.unpriced_calls) == (0, 1)
    assert run.events("model.called")[0]["money"] is None

    with pytest.raises(PrerequisiteError, match=r"the price of 'new:model' is unknown.*model\.prices"):
        context.models.require_prices()


async def test_a_fallback_is_recorded_before_the_next_model_is_called(run: CallEnvironment) -> None:
    first = ScriptedModel([ModelError("gone")], name="paid:a")
    kinds_before_call: list[str] = []

    class WatchingModel(ScriptedModel):
        async def complete(self, *arguments: Any) -> Reply:
            kinds_before_call.extend(event.kind for event in run.ledger.events)
            return await super().complete(*arguments)

    context = run.context(first, WatchingModel([ANSWER], name="paid:b"))
    assert (await ask(make_question(), context)).model == "paid:b"
    assert kinds_before_call == ["budget.reserved", "budget.settled", "model.fell_back", "budget.reserved"]
    (fallback,) = run.events("model.fell_back")
    assert (fallback["from"], fallback["to"], fallback["error_type"]) == ("paid:a", "paid:b", "ModelError")
    assert fallback["message"] == "gone"
    spend = context.budget.spend()
    assert (spend.attempts, spend.model_calls, spend.tokens) == (1, 1, 30)


async def test_a_part_of_a_request_that_the_server_refuses_is_recorded(run: CallEnvironment) -> None:
    model = ScriptedModel([replace(ANSWER, refused=("temperature", "seed"))], name="paid:a")
    await ask(make_question(), run.context(model))
    refusals = [(event["model"], event["parameter"]) for event in run.events("model.parameter_refused")]
    assert refusals == [("paid:a", "temperature"), ("paid:a", "seed")]


async def test_the_error_of_the_last_model_in_the_chain_is_raised(run: CallEnvironment) -> None:
    chain = [ScriptedModel([ModelError(name)], name=name) for name in ("paid:a", "paid:b")]
    with pytest.raises(ModelError, match="paid:b"):
        await ask(make_question(), run.context(*chain))
    assert len(run.events("model.fell_back")) == 1
    assert run.events("model.called") == []


async def test_a_timed_out_call_costs_its_maximum_but_no_attempt(run: CallEnvironment) -> None:
    context = run.context(ScriptedModel([ModelTimeout("late")], name="paid:a"))
    with pytest.raises(ModelTimeout):
        await ask(make_question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens) == (0, PROMPT_TOKENS + 200)
    assert spend.money == run.events("budget.reserved")[0]["money"]


async def test_a_malformed_reply_spends_an_attempt_without_a_fallback(run: CallEnvironment) -> None:
    second = ScriptedModel([ANSWER], name="paid:b")
    context = run.context(ScriptedModel([MalformedReply("<html>")], name="paid:a"), second)
    with pytest.raises(MalformedReply):
        await ask(make_question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, second.calls) == (1, PROMPT_TOKENS + 200, [])


async def test_a_failed_call_costs_nothing(run: CallEnvironment) -> None:
    context = run.context(ScriptedModel([ModelError("no")], name="paid:a"))
    with pytest.raises(ModelError):
        await ask(make_question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.money) == (0, 0, 0)


async def test_a_cancelled_call_costs_its_maximum(run: CallEnvironment) -> None:
    started = asyncio.Event()

    class SlowModel(ScriptedModel):
        async def complete(self, *arguments: Any) -> Reply:
            started.set()
            await asyncio.Event().wait()
            return ANSWER

    context = run.context(SlowModel([], name="paid:a"))
    call = asyncio.create_task(ask(make_question(), context))
    await started.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.model_calls) == (0, PROMPT_TOKENS + 200, 1)
    assert spend.money == run.events("budget.reserved")[0]["money"] > 0


class RaisingModel(ScriptedModel):
    """A model that raises any exception, including those that a script cannot raise."""

    def __init__(self, fault: BaseException) -> None:
        super().__init__([], name="paid:a")
        self.fault = fault

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        raise self.fault


@pytest.mark.parametrize("fault", [StorageError("disk full"), RuntimeError("odd")], ids=repr)
async def test_a_call_that_fails_after_its_reply_costs_its_maximum(
    run: CallEnvironment, fault: Exception
) -> None:
    context = run.context(RaisingModel(fault))
    with pytest.raises(type(fault)):
        await ask(make_question(), context)
    assert context.budget.spend().tokens == PROMPT_TOKENS + 200


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
async def test_a_call_that_never_started_costs_nothing(run: CallEnvironment, fault: Exception) -> None:
    context = run.context(RaisingModel(fault))
    with pytest.raises(type(fault)):
        await ask(make_question(), context)
    spend = context.budget.spend()
    assert (spend.attempts, spend.tokens, spend.money, spend.model_calls) == (0, 0, 0, 0)


async def test_spend_is_grouped_by_role_and_by_move(run: CallEnvironment) -> None:
    context = run.context(ScriptedModel([ANSWER, ANSWER, ModelTimeout("late")], name="paid:a"))
    await ask(make_question("coder"), context)
    await ask(make_question("critic"), context)

    with pytest.raises(ModelTimeout):
        await ask(make_question("critic", index=1), context)
    by_role = spend_by_group(run.ledger.events, "role")
    assert list(by_role) == ["coder", "critic"]
    assert by_role["coder"].tokens == 30
    assert by_role["critic"].tokens == 30 + PROMPT_TOKENS + 200
    assert sum(spend.money for spend in by_role.values()) == pytest.approx(context.budget.spend().money)
    (sample_spend,) = spend_by_group(run.ledger.events, "move").values()
    assert sample_spend.tokens == context.budget.spend().tokens


PREFILL = Prefill(text="```python\ndef f(x):", stop=("\n```",))
BODY = Reply(text="\n    return x", prompt_tokens=20, completion_tokens=10)


async def test_a_prefilled_reply_contains_its_prefill(run: CallEnvironment) -> None:
    model = ScriptedModel([BODY], name="local:a")

    reply = await ask(replace(make_question(), prefill=PREFILL), run.context(model))

    assert reply.text == "```python\ndef f(x):\n    return x"
    assert reply.prefill == PREFILL.text
    (call,) = model.calls
    assert call.messages == (*PROMPT, Message(role="assistant", content=PREFILL.text))
    assert call.sampling.stop == PREFILL.stop
    assert [data["prefilled"] for data in run.events("model.called")] == [True]


async def test_a_model_without_prefill_support_gets_none(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER], name="openai:a")
    reply = await ask(replace(make_question(), prefill=PREFILL), run.context(model))
    assert (reply.text, reply.prefill) == ("yes", "")
    (call,) = model.calls
    assert (call.messages, call.sampling.stop) == (PROMPT, ())


async def test_a_call_is_repeated_without_a_refused_prefill(run: CallEnvironment) -> None:
    model = ScriptedModel([ModelRequestRejected("no prefill here"), ANSWER], name="ollama:a")
    context = run.context(model)

    reply = await ask(replace(make_question(), prefill=PREFILL), context)

    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.messages[-1].role for call in model.calls] == ["assistant", "user"]
    spend = context.budget.spend()
    assert (spend.model_calls, spend.attempts) == (1, 1)


async def test_a_call_is_repeated_without_refused_tool_declarations(
    run: CallEnvironment,
) -> None:
    tools = (ToolDeclaration(name="look", description="looks", inputs={}),)
    model = ScriptedModel([ANSWER, ModelRequestRejected("no tools here"), ANSWER], name="openai:a")
    context = run.context(model)
    await ask(replace(make_question(), tools=tools), context)
    next_messages = (*PROMPT, Message(role="user", content="go on"))

    reply = await ask(replace(make_question(), messages=next_messages, tools=tools), context)

    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.sampling.tools for call in model.calls] == [tools, tools, ()]


async def test_a_refusal_without_the_prefill_is_raised(run: CallEnvironment) -> None:
    model = ScriptedModel([ModelRequestRejected("no"), ModelRequestRejected("no")], name="ollama:a")
    with pytest.raises(ModelRequestRejected):
        await ask(replace(make_question(), prefill=PREFILL), run.context(model))
    assert len(model.calls) == 2


async def test_the_fallback_model_is_called_without_an_unsupported_prefill(run: CallEnvironment) -> None:
    first = ScriptedModel([ModelTimeout("late")], name="local:a")
    second = ScriptedModel([ANSWER], name="openai:b")
    reply = await ask(replace(make_question(), prefill=PREFILL), run.context(first, second))
    assert (reply.text, reply.prefill) == ("yes", "")
    assert [call.messages[-1].role for call in (*first.calls, *second.calls)] == ["assistant", "user"]
