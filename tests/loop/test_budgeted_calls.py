"""The budget decides about each call once, even after a kill and in a replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loop.test_model_call import ANSWER, PRICES, PROMPT_TOKENS, CallEnvironment, make_question
from suture.agents.calling.budgeted_call import BudgetedCall, CallContext, find_prior_decision, reserve
from suture.agents.calling.model_call import ask
from suture.agents.calling.role_call import list_degraded_roles
from suture.core.ledger import Budget, Ledger, Limits, RawPayload, in_round_branch, open_reservations
from suture.core.ledger.kinds import BudgetReserved
from suture.errors import BudgetExceeded
from suture.models import RecordedModel, RoleModel, RoleModels
from suture.testing import FakeClock, ScriptedModel

LIMITS = Limits(attempts=3, tokens=PROMPT_TOKENS + 80)
"""Enough tokens for one call, whose reply must be shorter than the role's setting allows."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[CallEnvironment]:
    environment = CallEnvironment(tmp_path)
    yield environment
    environment.ledger.close()


def make_recording_context(
    run: CallEnvironment, model: ScriptedModel, limits: Limits = LIMITS
) -> CallContext:
    context = run.context(model, limits=limits)
    role_model = RoleModel(
        chain=(RecordedModel(model, run.folder.replies_path),), temperature=0.8, max_tokens=200
    )
    return replace(context, models=RoleModels({"coder": role_model}, PRICES))


async def test_a_call_settled_before_a_kill_is_not_paid_again(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER])
    context = make_recording_context(run, model)
    with in_round_branch(0, 0):
        first = await ask(make_question(), context)
    spend_before = context.budget.spend()
    run.ledger.append(RawPayload(kind="run.resumed"))

    with in_round_branch(0, 0):
        repeated = await ask(make_question(), context)

    assert (repeated.text, repeated.replayed, len(model.calls)) == (first.text, True, 1)
    spend_after = context.budget.spend()
    assert (
        (spend_after.attempts, spend_after.tokens) == (spend_before.attempts, spend_before.tokens) == (1, 30)
    )


async def test_the_same_call_in_another_round_is_another_attempt(run: CallEnvironment) -> None:
    context = make_recording_context(run, ScriptedModel([ANSWER]), Limits(attempts=2))
    for number in range(2):
        with in_round_branch(number, 0):
            await ask(make_question(), context)
    assert context.budget.spend().attempts == 2


async def test_an_unsettled_reply_is_reused_after_a_kill_without_budget_left(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER])
    with in_round_branch(0, 0):
        await ask(make_question(), make_recording_context(run, model))
    lines = run.folder.ledger_path.read_bytes().splitlines(keepends=True)
    reserved_index = next(n for n, line in enumerate(lines) if b"budget.reserved" in line)
    killed_path = run.folder.path / "killed.jsonl"
    killed_path.write_bytes(b"".join(lines[: reserved_index + 1]))

    with Ledger(killed_path, FakeClock()) as ledger:
        budget = Budget(ledger, LIMITS, FakeClock())
        for reservation in open_reservations(ledger.events):
            budget.write_off(reservation)
        ledger.append(RawPayload(kind="run.resumed"))
        assert budget.remaining_tokens() == 0
        context = replace(make_recording_context(run, model), ledger=ledger, budget=budget)
        with in_round_branch(0, 0):
            assert (await ask(make_question(), context)).replayed
        assert budget.spend().attempts == 1

    assert len(model.calls) == 1


async def test_a_call_refused_before_a_kill_is_refused_again(run: CallEnvironment) -> None:
    context = make_recording_context(run, ScriptedModel([ANSWER]), Limits(tokens=PROMPT_TOKENS))
    for _ in range(2):
        with in_round_branch(0, 0), pytest.raises(BudgetExceeded, match="tokens"):
            await ask(make_question(), context)
        run.ledger.append(RawPayload(kind="run.resumed"))
        context.budget.limits = Limits()


async def test_a_replay_grants_and_refuses_the_same_calls_as_its_run(run: CallEnvironment) -> None:
    model = ScriptedModel([ANSWER, ANSWER])
    context = make_recording_context(run, model)
    with in_round_branch(0, 0):
        await ask(make_question(), context)
    with in_round_branch(0, 1), pytest.raises(BudgetExceeded) as refusal:
        await ask(make_question(index=1), context)
    recorded_events = run.ledger.events

    with Ledger(run.folder.path / "replay.jsonl", FakeClock()) as ledger:
        budget = Budget(ledger, LIMITS, FakeClock())
        replaying = replace(context, ledger=ledger, budget=budget, replayed_events=recorded_events)
        with in_round_branch(0, 1), pytest.raises(BudgetExceeded) as repeated_refusal:
            await ask(make_question(index=1), replaying)
        assert str(repeated_refusal.value) == str(refusal.value)
        slower_branch = BudgetReserved(
            purpose="a branch that was slower then", attempts=0, tokens=PROMPT_TOKENS
        )
        budget.settle(budget.reserve(slower_branch), prompt_tokens=PROMPT_TOKENS)
        with in_round_branch(0, 0):
            assert (await ask(make_question(), replaying)).replayed

    assert len(model.calls) == 1


async def test_a_call_made_twice_in_a_branch_is_two_attempts_also_after_a_kill(run: CallEnvironment) -> None:
    context = make_recording_context(run, ScriptedModel([ANSWER]), Limits(attempts=2))
    for _ in range(2):
        with in_round_branch(0, 0):
            await ask(make_question(), context)
            await ask(make_question(), context)
        assert context.budget.spend().attempts == 2
        run.ledger.append(RawPayload(kind="run.resumed"))


async def test_granted_limits_are_known_after_several_kills(run: CallEnvironment) -> None:
    context = make_recording_context(run, ScriptedModel([]))
    call = BudgetedCall(key="again", description="again", is_attempt=True)
    for limits in ((40, 90), (40,)):
        with in_round_branch(0, 0):
            for limit in limits:
                reserve(call, context, find_prior_decision(call, context), reply_tokens=limit)
        run.ledger.append(RawPayload(kind="run.resumed"))
    with in_round_branch(0, 0):
        assert find_prior_decision(call, context).max_reply_tokens == 40
        run.ledger.append(RawPayload(kind="budget.reserved", data={**run.ledger.events[0].data}))
        assert find_prior_decision(call, context).max_reply_tokens == 90
        run.ledger.append(RawPayload(kind="budget.reserved", data={**run.ledger.events[0].data}))
        assert find_prior_decision(call, context).max_reply_tokens is None


async def test_a_failure_repeated_after_a_kill_counts_once(run: CallEnvironment) -> None:
    context = make_recording_context(run, ScriptedModel([]))
    for act in ("critic 1", "critic 1", "critic 2"):
        run.ledger.append(RawPayload(kind="role.degraded", data={"role": "critic", "act": act}))
    assert list_degraded_roles(context.ledger.events) == ("critic", "critic")
