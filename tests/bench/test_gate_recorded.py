"""The committed baselines and replies, of which the workflow makes a gate on every push and every Monday."""

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
from suture.bench.gate.gate_decision import GateBaseline, read_baseline
from suture.bench.gate.live_gate import measure_until_decided
from suture.bench.gate.sequential_test import compute_chances, decide, design_sequential_test
from suture.bench.replies.recordings import read_recording
from suture.bench.running.bench_folder import BenchFolder
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.sandbox import BubblewrapSandbox

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())["jobs"]["gate"]
RECORDING = ROOT / WORKFLOW["env"]["RECORDING"]
PUSHED = ROOT / WORKFLOW["env"]["PUSHED_BASELINE"]
PUSHED_MARGIN = float(WORKFLOW["env"]["PUSHED_MARGIN"])
LIVE = ROOT / WORKFLOW["env"]["LIVE_BASELINE"]
LIVE_MARGIN = 0.15
TRIED = 6
"""Tasks; the whole list takes a minute."""


@pytest.fixture
def baseline() -> GateBaseline:
    return read_baseline(PUSHED)


def test_the_recording_is_of_the_baselines_model_and_tasks(baseline: GateBaseline) -> None:
    draws = list(read_recording(RECORDING))
    assert {draw.model for draw in draws} == {baseline.model}
    assert {task.problem for task in baseline.tasks} <= {draw.problem for draw in draws}
    assert RECORDING.stat().st_size < 100_000


@pytest.mark.heavy
async def test_replayed_the_first_tasks_come_out_as_they_were_recorded(
    tmp_path: Path, baseline: GateBaseline, sandbox: BubblewrapSandbox, require: Require
) -> None:
    try:
        load_problems(baseline.dataset)
    except PrerequisiteError as missing:
        require("data", False, str(missing))
    first = replace(baseline, tasks=baseline.tasks[:TRIED])
    found = await measure_until_decided(
        first,
        design_sequential_test(baseline.rate, PUSHED_MARGIN, 0.95, TRIED),
        BenchFolder(tmp_path / "bench"),
        Settings(),
        model=baseline.model,
        recordings=[RECORDING],
        replayed=True,
    )
    assert found.decision.tasks == TRIED
    assert found.decision.solved == sum(task.solved for task in first.tasks)
    assert (found.skipped, found.lost, found.won) == ((), (), ())


def test_the_recorded_results_pass(baseline: GateBaseline) -> None:
    design = design_sequential_test(baseline.rate, PUSHED_MARGIN, 0.95, len(baseline.tasks))
    assert decide(design, (task.solved for task in baseline.tasks)).standing == "passed"


def test_the_live_list_can_tell_a_model_that_solves_15_points_less(require: Require) -> None:
    live = read_baseline(LIVE)
    fixed = (ROOT / "benchmarks" / "ids" / "humaneval-80.txt").read_text().splitlines()
    assert {task.problem for task in live.tasks} == {line for line in fixed if not line.startswith("#")}
    assert f"'{LIVE_MARGIN:.2f}'" in WORKFLOW["env"]["LIVE_MARGIN"]
    for least in (0.8, live.rate):
        poor = compute_chances(
            design_sequential_test(least, LIVE_MARGIN, 0.95, len(live.tasks)), least - LIVE_MARGIN
        )
        assert (poor.passed <= 0.05, poor.failed >= 0.75) == (True, True)
    try:
        problems = load_problems(live.dataset)
    except PrerequisiteError as missing:
        require("data", False, str(missing))
    hashes = {problem.id: problem.content_hash for problem in problems}
    assert [task.problem for task in live.tasks if hashes[task.problem] != task.problem_hash] == []


def test_the_error_rates_in_the_docs_are_those_of_the_program() -> None:
    """Each line of the table is computed anew; `recorded` is the rate of the baseline with so many tasks."""
    page = (ROOT / "docs" / "reports.md").read_text()
    told = [line for line in page.splitlines() if re.match(r"\| (recorded, )?\d\d(\.\d)?% \|", line)]
    assert len(told) > 15
    assert told == [error_rates(line) for line in told]


def error_rates(line: str) -> str:
    """The line with its chances computed from its first four cells: rate, margin, tasks, true rate."""
    first, margin, tasks, true, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    least, rate = (float(cell.removeprefix("recorded, ").rstrip("%")) / 100 for cell in (first, true))
    if first.startswith("recorded"):
        (least,) = {b.rate for b in map(read_baseline, (PUSHED, LIVE)) if len(b.tasks) == int(tasks)}
        assert first == f"recorded, {least:.1%}"
    found = compute_chances(
        design_sequential_test(least, float(margin.rstrip("%")) / 100, 0.95, int(tasks)), rate
    )
    chances = f"{found.passed:.1%} | {found.failed:.1%} | {found.undecided:.1%} | {found.tasks:.0f}"
    return f"| {first} | {margin} | {tasks} | {true} | {chances} |"


@pytest.mark.parametrize(
    ("event", "gate", "ends"),
    [
        *(("push", 0, 0), ("push", 6, 6), ("schedule", 1, 1), ("schedule", 3, 3), ("schedule", 6, 6)),
        *(("push", 4, 0), ("workflow_dispatch", 4, 0)),
    ],
)
def test_the_workflow_ends_as_the_gate_does_and_only_warns_of_an_open_one(
    tmp_path: Path, event: str, gate: int, ends: int
) -> None:
    suture = tmp_path / ".venv" / "bin" / "suture"
    suture.parent.mkdir(parents=True)
    suture.write_text(f'#!/bin/sh\necho "$@"\nexit {gate}\n')
    suture.chmod(0o755)
    environ = {name: value for name, value in WORKFLOW["env"].items() if "${{" not in value}
    environ |= {"MODEL": "local:m", "MIN": "0.80", "CONFIDENCE": "0.95", "LIVE_MARGIN": "0.15"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", WORKFLOW["steps"][-1]["run"]],
        cwd=tmp_path,
        env={**environ, "GITHUB_EVENT_NAME": event, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == ends, done.stderr
    assert ("::warning::" in done.stdout) == (gate == 4)
    pushed = event == "push"
    assert done.stdout.startswith(f"bench gate {(PUSHED if pushed else LIVE).relative_to(ROOT)} ./gate-run")
    assert f"--margin {WORKFLOW['env']['PUSHED_MARGIN'] if pushed else LIVE_MARGIN} " in done.stdout
    assert ("--replayed --recording" in done.stdout) == pushed
    assert "--min 0.80" in done.stdout
