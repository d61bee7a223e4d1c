"""No round begins after the run's time is spent, and a run that its limit ended is not called stuck."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from project_files import write_files
from suture.api import HealOptions, heal
from suture.core.clock import SystemClock
from suture.core.ledger import Ledger
from suture.core.records import Move
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, Settings
from suture.errors import BudgetExceeded
from suture.loop.nodes import decide
from suture.models import NO_MODEL
from suture.sandbox import BubblewrapSandbox, RunRequest
from suture.testing import FakeClock


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


CODE = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
TEST = "import unittest\nfrom sums import add, double\n\n\nclass SumsTest(unittest.TestCase):\n{body}"
BODY = (
    "    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n\n"
    "    def test_double(self):\n        self.assertEqual(double(2), 4)\n"
)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("last_event", "outcome"),
    [
        ("moves.decided", "budget_exhausted"),
        ("search.finished", "budget_exhausted"),
        ("candidate.checked", "healed"),
    ],
)
async def test_nothing_runs_any_more_when_the_time_is_spent(
    last_event: str, outcome: str, tmp_path: Path, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps when a stage has ended; the first run of the tests is one of `candidate.checked`, too."""
    clock = FakeClock()
    late_runs: list[object] = []
    append, run_with, open_channel = Ledger.append, BubblewrapSandbox.run_with, BubblewrapSandbox.open
    is_late = False

    def append_and_jump(ledger: Ledger, payload: Any) -> Any:
        nonlocal is_late
        event = append(ledger, payload)
        is_repair = last_event != "candidate.checked" or getattr(payload, "label", "").startswith("mutation")
        if event.kind == last_event and is_repair:
            is_late = True
            clock.advance(1000.0)
        return event

    def note(request: RunRequest) -> None:
        if is_late:
            late_runs.append(request.argv)

    async def run_noted(self: BubblewrapSandbox, request: RunRequest, start_run: Any) -> Any:
        note(request)
        return await run_with(self, request, start_run)

    def open_noted(self: BubblewrapSandbox, request: RunRequest) -> Any:
        note(request)
        return open_channel(self, request)

    monkeypatch.setattr(SystemClock, "now", lambda self: clock.now())
    monkeypatch.setattr(Ledger, "append", append_and_jump)
    monkeypatch.setattr(BubblewrapSandbox, "run_with", run_noted)
    monkeypatch.setattr(BubblewrapSandbox, "open", open_noted)
    project = write_files(tmp_path / "p", {"sums.py": CODE, "test_sums.py": TEST.format(body=BODY)})
    settings = Settings(
        model=ModelSettings(name=NO_MODEL),
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "cache"),
        budget=BudgetSettings(seconds=300),
    )
    options = HealOptions(test="python -m unittest -q", settings=settings, sandbox=sandbox)
    result = await heal(project, options)
    assert is_late
    assert (result.outcome, late_runs) == (outcome, [])


def test_a_clock_that_jumps_forward_spends_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before_s = clock.now()
    assert abs(before_s - time.time()) < 60
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + 86_400)
    assert clock.now() - before_s < 60
