"""The budget decides once about each call, also after a kill and in a replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loop.test_model_call import ANSWER, BOUND, PRICES, Setting, question
from suture.agents.calling.budgeted_call import BudgetedCall, find_prior_decision, reserve
from suture.agents.calling.call_context import CallContext
from suture.agents.calling.model_call import ask
from suture.agents.calling.role_call import list_degraded_roles
from suture.core.ledger import Budget, Ledger, Limits, RawPayload, in_round_branch, open_reservations
from suture.core.ledger.kinds import BudgetReserved
from suture.errors import BudgetExceeded
from suture.models import RecordedModel, RoleModel, RoleModels
from suture.testing import FakeClock, ScriptedModel

LIMITS = Limits(attempts=3, tokens=BOUND + 80)
"""Room for one call, whose reply may be less long than the role's setting allows."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.ledger.close()


def recording(run: Setting, model: ScriptedModel, limits: Limits = LIMITS) -> CallContext:
    context = run.context(model, limits=limits)
    role_model = RoleModel(
        chain=(RecordedModel(model, run.folder.replies_path),), temperature=0.8, max_tokens=200
    )
    return replace(context, models=RoleModels({"coder": role_model}, PRICES))


async def test_a_call_that_was_booked_before_a_kill_is_found_and_booked_no_more(run: Setting) -> None:
    model = ScriptedModel([ANSWER])
    context = recording(run, model)
    with in_round_branch(0, 0):
        first = await ask(question(), context)
    before = context.budget.spend()
    run.ledger.append(RawPayload(kind="run.resumed"))
    with in_round_branch(0, 0):
        again = await ask(question(), context)
    assert (again.text, again.replayed, len(model.calls)) == (first.text, True, 1)
    after = context.budget.spend()
    assert (after.attempts, after.tokens) == (before.attempts, before.tokens) == (1, 30)


async def test_another_round_that_draws_the_very_same_is_an_attempt_of_its_own(run: Setting) -> None:
    context = recording(run, ScriptedModel([ANSWER]), Limits(attempts=2))
    for number in range(2):
        with in_round_branch(number, 0):
            await ask(question(), context)
    assert context.budget.spend().attempts == 2


async def test_a_reply_that_was_received_but_not_booked_is_found_though_nothing_is_left(run: Setting) -> None:
    model = ScriptedModel([ANSWER])
    with in_round_branch(0, 0):
        await ask(question(), recording(run, model))
    lines = run.folder.ledger_path.read_bytes().splitlines(keepends=True)
    reserved = next(n for n, line in enumerate(lines) if b"budget.reserved" in line)
    killed = run.folder.path / "killed.jsonl"
    killed.write_bytes(b"".join(lines[: reserved + 1]))
    with Ledger(killed, FakeClock()) as ledger:
        budget = Budget(ledger, LIMITS, FakeClock())
        for reservation in open_reservations(ledger.events):
            budget.write_off(reservation)
        ledger.append(RawPayload(kind="run.resumed"))
        assert budget.remaining_tokens() == 0
        context = replace(recording(run, model), ledger=ledger, budget=budget)
        with in_round_branch(0, 0):
            assert (await ask(question(), context)).replayed
        assert budget.spend().attempts == 1
    assert len(model.calls) == 1


async def test_what_was_refused_before_a_kill_is_refused_again(run: Setting) -> None:
    context = recording(run, ScriptedModel([ANSWER]), Limits(tokens=BOUND))
    for _ in range(2):
        with in_round_branch(0, 0), pytest.raises(BudgetExceeded, match="tokens"):
            await ask(question(), context)
        run.ledger.append(RawPayload(kind="run.resumed"))
        context.budget.limits = Limits()


async def test_a_replay_grants_and_refuses_as_the_run_did_whatever_is_left(run: Setting) -> None:
    model = ScriptedModel([ANSWER, ANSWER])
    context = recording(run, model)
    with in_round_branch(0, 0):
        await ask(question(), context)
    with in_round_branch(0, 1), pytest.raises(BudgetExceeded) as refused:
        await ask(question(index=1), context)
    recorded_events = run.ledger.events
    with Ledger(run.folder.path / "replay.jsonl", FakeClock()) as ledger:
        budget = Budget(ledger, LIMITS, FakeClock())
        again = replace(context, ledger=ledger, budget=budget, replayed_events=recorded_events)
        with in_round_branch(0, 1), pytest.raises(BudgetExceeded) as refused_again:
            await ask(question(index=1), again)
        assert str(refused_again.value) == str(refused.value)
        slower_branch = BudgetReserved(purpose="a branch that was slower then", attempts=0, tokens=BOUND)
        budget.settle(budget.reserve(slower_branch), prompt_tokens=BOUND)
        with in_round_branch(0, 0):
            assert (await ask(question(), again)).replayed
    assert len(model.calls) == 1


async def test_the_same_act_twice_in_a_branch_is_two_attempts_before_a_kill_and_after(run: Setting) -> None:
    context = recording(run, ScriptedModel([ANSWER]), Limits(attempts=2))
    for _ in range(2):
        with in_round_branch(0, 0):
            await ask(question(), context)
            await ask(question(), context)
        assert context.budget.spend().attempts == 2
        run.ledger.append(RawPayload(kind="run.resumed"))


async def test_what_was_granted_is_known_though_the_last_process_did_not_come_to_it(run: Setting) -> None:
    context = recording(run, ScriptedModel([]))
    act = BudgetedCall(key="again", description="again", is_attempt=True)
    for granted in ((40, 90), (40,)):
        with in_round_branch(0, 0):
            for most in granted:
                reserve(act, context, find_prior_decision(act, context), reply_tokens=most)
        run.ledger.append(RawPayload(kind="run.resumed"))
    with in_round_branch(0, 0):
        assert find_prior_decision(act, context).max_reply_tokens == 40
        run.ledger.append(RawPayload(kind="budget.reserved", data={**run.ledger.events[0].data}))
        assert find_prior_decision(act, context).max_reply_tokens == 90
        run.ledger.append(RawPayload(kind="budget.reserved", data={**run.ledger.events[0].data}))
        assert find_prior_decision(act, context).max_reply_tokens is None


async def test_a_helper_that_fails_again_because_a_kill_made_it_has_failed_once(run: Setting) -> None:
    context = recording(run, ScriptedModel([]))
    for act in ("critic 1", "critic 1", "critic 2"):
        run.ledger.append(RawPayload(kind="role.degraded", data={"role": "critic", "act": act}))
    assert list_degraded_roles(context.ledger.events) == ("critic", "critic")
