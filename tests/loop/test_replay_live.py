"""A run of the real embedded model is replayed without weights and calls, with the same ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from requirements import Require
from run_events import read_events
from suture.api import WriteOptions, replay, solve
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, RepairSettings, Settings
from suture.errors import SutureError
from suture.models import pull_model

SMALL = "qwen2.5-coder-0.5b"
TASK = "Write sign(text), which returns the text in upper case with a `!` behind it.\n\n>>> sign('a')\n'B?'\n"
"""Its example contradicts it, so that the model is asked again; and a reply is short."""

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("sandbox"),
]


async def test_a_run_of_the_embedded_model_is_replayable(tmp_path: Path, require: Require) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    home, cache = tmp_path / "home", PathSettings().cache
    try:
        pull_model(SMALL, cache)
    except SutureError as fault:
        require("local-model", False, str(fault))
    settings = Settings(
        model=ModelSettings(name=f"local:{SMALL}", max_tokens=40, context_tokens=4096, threads=1),
        budget=BudgetSettings(attempts=2, seconds=500),
        paths=PathSettings(home=home, cache=cache),
        repair=RepairSettings(enabled=False),  # this test is about the model
    )

    recorded = await solve(TASK, WriteOptions(settings=settings))

    events = read_events(home, recorded.run_id)
    assert [event for event in events if event.kind == "model.called"], recorded.reason
    without_weights = settings.model_copy(
        update={"paths": PathSettings(home=home, cache=tmp_path / "no-weights")}
    )
    replayed = await replay(recorded.run_id, settings=without_weights)
    assert replayed.same, str(replayed.difference)
    assert (replayed.result.outcome, replayed.result.spend.model_calls) == (recorded.outcome, 0)
