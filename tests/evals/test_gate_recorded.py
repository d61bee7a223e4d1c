"""The committed baseline and the committed replies, of which the workflow makes a gate on every push."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from requirements import Require
from suture.errors import PrerequisiteError
from suture.evals.bench_folder import BenchFolder
from suture.evals.datasets import load_problems
from suture.evals.gate import Baseline, read_baseline
from suture.evals.gate_live import measure_until_decided
from suture.evals.recordings import read_recording
from suture.evals.sequential import decide, design_test
from suture.sandbox import BubblewrapSandbox
from suture.settings import Settings

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())["jobs"]["gate"]
RECORDING = ROOT / WORKFLOW["env"]["RECORDING"]
MARGIN = 0.3
TRIED = 6
"""Tasks; the whole list takes a minute."""


@pytest.fixture
def baseline() -> Baseline:
    return read_baseline(ROOT / WORKFLOW["env"]["BASELINE"])


def test_the_recording_is_of_the_baselines_model_and_tasks(baseline: Baseline) -> None:
    draws = list(read_recording(RECORDING))
    assert {draw.model for draw in draws} == {baseline.model}
    assert {task.problem for task in baseline.tasks} <= {draw.problem for draw in draws}
    assert RECORDING.stat().st_size < 100_000


async def test_replayed_the_first_tasks_come_out_as_they_were_recorded(
    tmp_path: Path, baseline: Baseline, sandbox: BubblewrapSandbox, require: Require
) -> None:
    try:
        load_problems(baseline.dataset)
    except PrerequisiteError as missing:
        require("data", False, str(missing))
    first = replace(baseline, tasks=baseline.tasks[:TRIED])
    found = await measure_until_decided(
        first,
        design_test(baseline.rate, MARGIN, 0.95, TRIED),
        BenchFolder(tmp_path / "bench"),
        Settings(),
        model=baseline.model,
        recordings=[RECORDING],
        replayed=True,
    )
    assert found.decision.tasks == TRIED
    assert found.decision.solved == sum(task.solved for task in first.tasks)
    assert (found.skipped, found.lost, found.won) == ((), (), ())


def test_the_recorded_results_pass(baseline: Baseline) -> None:
    design = design_test(baseline.rate, MARGIN, 0.95, len(baseline.tasks))
    assert decide(design, (task.solved for task in baseline.tasks)).standing == "passed"


def test_the_workflow_says_the_margin_that_is_tested_here() -> None:
    assert f"'{MARGIN:.2f}'" in WORKFLOW["env"]["MARGIN"]
    assert "suture bench gate" in WORKFLOW["steps"][-1]["run"]
