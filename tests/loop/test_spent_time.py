"""No round begins after the run's time is spent, and a run that its limit ended is not called stuck."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from suture.core.records import Move
from suture.errors import BudgetExceeded
from suture.loop.nodes import decide


def spend_all() -> None:
    raise BudgetExceeded("seconds", 61.0, 60.0)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The surroundings of the node, in a run whose time is spent."""
    monkeypatch.setattr(decide, "summarise_progress", lambda *_: SimpleNamespace(escalated=0, best=None))
    monkeypatch.setattr(decide, "find_escalation", lambda *_: None)
    monkeypatch.setattr(decide, "_recipe_for_model", lambda *_, **__: None)
    monkeypatch.setattr(decide, "_warn_near_limit", lambda *_: None)
    budget = SimpleNamespace(require_time=spend_all)
    ledger = SimpleNamespace(append=lambda event: None)
    return SimpleNamespace(context=SimpleNamespace(budget=budget, ledger=ledger, recipe=None))


@pytest.mark.parametrize("move", [Move(kind="sample"), Move(kind="stop", outcome="stuck")])
async def test_spent_time_ends_the_run_by_its_limit(
    move: Move, runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "decide", lambda *_: (move,))
    state: Any = {"decisions": 3, "round": 2}
    with pytest.raises(BudgetExceeded):
        await decide.decide_moves(state, runtime)


async def test_spent_time_takes_nothing_from_a_run_that_is_healed(
    runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "decide", lambda *_: (Move(kind="stop", outcome="healed"),))
    state: Any = {"decisions": 3, "round": 2}
    assert (await decide.decide_moves(state, runtime))["outcome"] == "healed"
