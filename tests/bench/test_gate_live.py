"""The live gate measures until it is decided, with the real runner and a scripted model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, read_calls, write_mbpp_tasks
from suture.bench.datasets import load_problems
from suture.bench.gate.gate_decision import TASKS_PER_BATCH, GateBaseline, GateTask, measure_until_decided
from suture.bench.gate.sequential_test import design_sequential_test
from suture.bench.running.bench_folder import BenchFolder
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.models import Model
from suture.sandbox import BubblewrapSandbox


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox) -> GateBaseline:
    """Write 24 tasks, and return a baseline that has solved all of them."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    write_mbpp_tasks(tmp_path / "data", 24)
    tasks = tuple(
        GateTask(problem=problem.id, problem_hash=problem.content_hash, solved=True)
        for problem in load_problems("mbpp")
    )
    return GateBaseline(
        dataset="mbpp", regime="visible", arm="greedy", model="lucky:model", cap=700, tasks=tasks
    )


async def test_measuring_stops_when_the_gate_is_decided(tmp_path: Path, baseline: GateBaseline) -> None:
    """The model is right for one task in three, where the gate requires nine in ten."""
    log, folder = tmp_path / "log", BenchFolder(tmp_path / "bench")
    design = design_sequential_test(0.9, 0.4, 0.95, len(baseline.tasks))

    def opener(settings: Settings, name: str) -> Model:
        return LuckyModel(log)

    result = await measure_until_decided(
        baseline,
        design,
        folder,
        Settings(),
        model="lucky:model",
        opener=opener,
        environment={"date": "today"},
    )
    assert result.decision.standing == "failed"
    assert result.decision.tasks <= len(folder.rows()) <= result.decision.tasks + TASKS_PER_BATCH < 24
    assert len(result.lost) == result.decision.tasks - result.decision.solved > 0
    assert folder.plan().sessions == ({"date": "today"},)

    calls = read_calls(log)
    second_result = await measure_until_decided(
        baseline, design, folder, Settings(), model="lucky:model", opener=opener
    )
    assert second_result == result
    assert read_calls(log) == calls


async def test_replies_that_are_not_recorded_are_an_error(tmp_path: Path, baseline: GateBaseline) -> None:
    folder = BenchFolder(tmp_path / "bench")
    one_task = replace(baseline, tasks=baseline.tasks[:1])
    design = design_sequential_test(0.9, 0.4, 0.95, 1)
    with pytest.raises(UsageError):
        await measure_until_decided(one_task, design, folder, Settings(), model="lucky:model", replayed=True)
    assert folder.rows() == []
