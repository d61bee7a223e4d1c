"""The gate that measures as it goes, through the real runner; only the model is made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, calls_in, write_set
from suture.bench.datasets import load_problems
from suture.bench.gate.gate_decision import GateBaseline, GateTask
from suture.bench.gate.live_gate import TASKS_PER_BATCH, measure_until_decided
from suture.bench.gate.sequential_test import design_sequential_test
from suture.bench.running.bench_folder import BenchFolder
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.models import Model
from suture.sandbox import BubblewrapSandbox


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox) -> GateBaseline:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    write_set(tmp_path / "data", 24)
    tasks = tuple(
        GateTask(problem=problem.id, problem_hash=problem.content_hash, solved=True)
        for problem in load_problems("mbpp")
    )
    return GateBaseline(
        dataset="mbpp", regime="visible", arm="greedy", model="lucky:model", cap=700, tasks=tasks
    )


async def test_it_stops_measuring_when_it_is_decided(tmp_path: Path, baseline: GateBaseline) -> None:
    """A model that is right one time in three, where nine in ten would be good enough."""
    log, folder = tmp_path / "log", BenchFolder(tmp_path / "bench")
    design = design_sequential_test(0.9, 0.4, 0.95, len(baseline.tasks))

    def opener(settings: Settings, name: str) -> Model:
        return LuckyModel(log)

    found = await measure_until_decided(
        baseline, design, folder, Settings(), model="lucky:model", opener=opener, environment={"date": "today"}
    )
    assert found.decision.standing == "failed"
    assert found.decision.tasks <= len(folder.rows()) <= found.decision.tasks + TASKS_PER_BATCH < 24
    assert len(found.lost) == found.decision.tasks - found.decision.solved > 0
    assert folder.plan().sessions == ({"date": "today"},)
    asked = calls_in(log)
    again = await measure_until_decided(
        baseline, design, folder, Settings(), model="lucky:model", opener=opener
    )
    assert again == found
    assert calls_in(log) == asked


async def test_replies_that_are_not_recorded_are_no_failures(tmp_path: Path, baseline: GateBaseline) -> None:
    folder = BenchFolder(tmp_path / "bench")
    few = replace(baseline, tasks=baseline.tasks[:1])
    design = design_sequential_test(0.9, 0.4, 0.95, 1)
    with pytest.raises(UsageError):
        await measure_until_decided(few, design, folder, Settings(), model="lucky:model", replayed=True)
    assert folder.rows() == []
