"""Structured questions and malformed replies spend the budget and are bounded by it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from suture.agents import DiagnosisReply
from suture.api import WriteOptions, solve
from suture.core.ledger import Budget, Ledger, Limits
from suture.core.ledger.kinds import BudgetReserved
from suture.core.settings import Settings
from suture.errors import BudgetExceeded, MalformedReply
from suture.models import Message, Reply, Sampling, prompt_token_upper_bound
from suture.models.structured_output import ask_structured
from suture.models.structured_output.ask import Complete
from suture.testing import FakeClock, ScriptedModel

PROMPT = (Message(role="user", content="What is wrong?"),)
RUBBISH = "I would say that the loop is wrong."
GOOD = '{"root_cause": "stops early", "category": "boundary", "strategy": "minimal", "confidence": 0.5}'


def complete_within(model: ScriptedModel, budget: Budget) -> Complete:
    """Return a function that reserves budget before each call and settles it afterwards, as the loop does."""

    async def complete(messages: Sequence[Message], sampling: Sampling) -> Reply:
        tokens = prompt_token_upper_bound(messages) + sampling.max_tokens
        reservation = budget.reserve(BudgetReserved(purpose="diagnose", attempts=1, tokens=tokens))
        reply = await model.complete(messages, sampling)
        budget.settle(
            reservation,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            model_calls=1,
        )
        return reply

    return complete


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl", FakeClock())


async def test_every_retry_of_a_structured_question_is_paid(ledger: Ledger) -> None:
    with ledger:
        budget = Budget(ledger, Limits(attempts=9), FakeClock())
        answer = await ask_structured(
            complete_within(ScriptedModel([RUBBISH, GOOD]), budget),
            PROMPT,
            DiagnosisReply,
            Sampling(max_tokens=64),
        )
        assert answer.record().category == "boundary"
        assert budget.spend().attempts == 2
        with pytest.raises(MalformedReply):
            await ask_structured(
                complete_within(ScriptedModel([RUBBISH] * 9), budget),
                PROMPT,
                DiagnosisReply,
                Sampling(max_tokens=64),
            )
        assert budget.spend().attempts == 5
        assert [event.kind for event in ledger.events].count("budget.reserved") == 5


@pytest.mark.parametrize("limits", [Limits(attempts=2), Limits(tokens=500)])
async def test_the_budget_limits_the_retries(ledger: Ledger, limits: Limits) -> None:
    model = ScriptedModel([RUBBISH] * 99)
    with ledger:
        budget = Budget(ledger, limits, FakeClock())
        with pytest.raises(BudgetExceeded):
            await ask_structured(
                complete_within(model, budget), PROMPT, DiagnosisReply, Sampling(max_tokens=150), tries=99
            )
    assert 0 < len(model.calls) < 5


async def test_unreadable_replies_spend_the_attempts_of_a_run(settings: Settings) -> None:
    model = ScriptedModel([MalformedReply("no choices in the answer")], repeat_last=True)
    result = await solve("Write f(x).\n\n>>> f(1)\n2\n", WriteOptions(settings=settings, model=model))
    assert result.outcome in ("stuck", "budget_exhausted")
    assert result.candidate is None
    assert result.spend.attempts == len(model.calls) <= settings.budget.attempts
