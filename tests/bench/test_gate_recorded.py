"""The committed baselines and replies, which the gate workflow uses on every push and every Monday."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from requirements import Require
from suture.bench.datasets import load_problems
from suture.bench.gate.gate_decision import GateBaseline, measure_until_decided, read_baseline
from suture.bench.gate.sequential_test import compute_chances, decide, design_sequential_test
from suture.bench.replies.reply_pool import read_recording
from suture.bench.running.bench_folder import BenchFolder
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.sandbox import BubblewrapSandbox

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())["jobs"]["gate"]
RECORDING = ROOT / WORKFLOW["env"]["RECORDING"]
PUSHED_BASELINE = ROOT / WORKFLOW["env"]["PUSHED_BASELINE"]
PUSHED_MARGIN = float(WORKFLOW["env"]["PUSHED_MARGIN"])
LIVE_BASELINE = ROOT / WORKFLOW["env"]["LIVE_BASELINE"]
LIVE_MARGIN = 0.15
REPLAYED_TASKS = 6
"""The number of replayed tasks; the whole list takes a minute."""


@pytest.fixture
def baseline() -> GateBaseline:
    """Return the baseline that the workflow uses for pushes."""
    return read_baseline(PUSHED_BASELINE)


def test_the_recording_covers_the_model_and_tasks_of_the_baseline(baseline: GateBaseline) -> None:
    draws = list(read_recording(RECORDING))
    assert {draw.model for draw in draws} == {baseline.model}
    assert {task.problem for task in baseline.tasks} <= {draw.problem for draw in draws}
    assert RECORDING.stat().st_size < 100_000


@pytest.mark.heavy
async def test_replaying_the_first_tasks_gives_the_recorded_results(
    tmp_path: Path, baseline: GateBaseline, sandbox: BubblewrapSandbox, require: Require
) -> None:
    try:
        load_problems(baseline.dataset)
    except PrerequisiteError as error:
        require("data", False, str(error))
    first_tasks = replace(baseline, tasks=baseline.tasks[:REPLAYED_TASKS])

    result = await measure_until_decided(
        first_tasks,
        design_sequential_test(baseline.rate, PUSHED_MARGIN, 0.95, REPLAYED_TASKS),
        BenchFolder(tmp_path / "bench"),
        Settings(),
        model=baseline.model,
        recordings=[RECORDING],
        replayed=True,
    )

    assert result.decision.tasks == REPLAYED_TASKS
    assert result.decision.solved == sum(task.solved for task in first_tasks.tasks)
    assert (result.skipped, result.lost, result.won) == ((), (), ())


def test_the_recorded_results_pass_the_gate(baseline: GateBaseline) -> None:
    design = design_sequential_test(baseline.rate, PUSHED_MARGIN, 0.95, len(baseline.tasks))
    assert decide(design, (task.solved for task in baseline.tasks)).standing == "passed"


def test_the_live_baseline_detects_a_model_that_solves_15_points_less(require: Require) -> None:
    live_baseline = read_baseline(LIVE_BASELINE)
    listed_ids = (ROOT / "benchmarks" / "ids" / "humaneval-80.txt").read_text().splitlines()
    assert {task.problem for task in live_baseline.tasks} == {
        line for line in listed_ids if not line.startswith("#")
    }
    assert f"'{LIVE_MARGIN:.2f}'" in WORKFLOW["env"]["LIVE_MARGIN"]

    for minimum_rate in (0.8, live_baseline.rate):
        poor_chances = compute_chances(
            design_sequential_test(minimum_rate, LIVE_MARGIN, 0.95, len(live_baseline.tasks)),
            minimum_rate - LIVE_MARGIN,
        )
        assert (poor_chances.passed <= 0.05, poor_chances.failed >= 0.75) == (True, True)
    try:
        problems = load_problems(live_baseline.dataset)
    except PrerequisiteError as error:
        require("data", False, str(error))
    hashes = {problem.id: problem.content_hash for problem in problems}
    assert [task.problem for task in live_baseline.tasks if hashes[task.problem] != task.problem_hash] == []


def test_the_documented_error_rates_are_correct() -> None:
    """Each row of the table is recomputed; `recorded` is the rate of the baseline with that many tasks."""
    page = (ROOT / "docs" / "benchmark.md").read_text()
    documented_rows = [
        line for line in page.splitlines() if re.match(r"\| (recorded, )?\d\d(\.\d)?% \|", line)
    ]
    assert len(documented_rows) >= 6
    assert documented_rows == [render_error_rates(line) for line in documented_rows]


def render_error_rates(line: str) -> str:
    """Return a row with the chances that follow from its first four cells: rate, margin, tasks, true rate."""
    first_tasks, margin, tasks, true_rate, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    minimum_rate, rate = (
        float(cell.removeprefix("recorded, ").rstrip("%")) / 100 for cell in (first_tasks, true_rate)
    )
    if first_tasks.startswith("recorded"):
        (minimum_rate,) = {
            recorded_baseline.rate
            for recorded_baseline in map(read_baseline, (PUSHED_BASELINE, LIVE_BASELINE))
            if len(recorded_baseline.tasks) == int(tasks)
        }
        assert first_tasks == f"recorded, {minimum_rate:.1%}"
    result = compute_chances(
        design_sequential_test(minimum_rate, float(margin.rstrip("%")) / 100, 0.95, int(tasks)), rate
    )
    chances = f"{result.passed:.1%} | {result.failed:.1%} | {result.undecided:.1%} | {result.tasks:.0f}"
    return f"| {first_tasks} | {margin} | {tasks} | {true_rate} | {chances} |"


@pytest.mark.parametrize(
    ("event", "gate_exit_code", "exit_code"),
    [
        ("push", 0, 0),
        ("push", 6, 6),
        ("schedule", 1, 1),
        ("schedule", 3, 3),
        ("schedule", 6, 6),
        ("push", 4, 0),
        ("workflow_dispatch", 4, 0),
    ],
)
def test_the_workflow_exits_as_the_gate_and_only_warns_if_undecided(
    tmp_path: Path, event: str, gate_exit_code: int, exit_code: int
) -> None:
    suture = tmp_path / ".venv" / "bin" / "suture"
    suture.parent.mkdir(parents=True)
    suture.write_text(f'#!/bin/sh\necho "$@"\nexit {gate_exit_code}\n')
    suture.chmod(0o755)
    environ = {name: value for name, value in WORKFLOW["env"].items() if "${{" not in value}
    environ |= {"MODEL": "local:m", "MIN": "0.80", "CONFIDENCE": "0.95", "LIVE_MARGIN": "0.15"}
    process = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", WORKFLOW["steps"][-1]["run"]],
        cwd=tmp_path,
        env={**environ, "GITHUB_EVENT_NAME": event, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert process.returncode == exit_code, process.stderr
    assert ("::warning::" in process.stdout) == (gate_exit_code == 4)

    is_push = event == "push"
    assert process.stdout.startswith(
        f"bench gate {(PUSHED_BASELINE if is_push else LIVE_BASELINE).relative_to(ROOT)} ./gate-run"
    )
    assert f"--margin {WORKFLOW['env']['PUSHED_MARGIN'] if is_push else LIVE_MARGIN} " in process.stdout
    assert ("--replayed --recording" in process.stdout) == is_push
    assert "--min 0.80" in process.stdout
