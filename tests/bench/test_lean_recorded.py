"""Replaying the committed replies gives the measured results without calling a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from suture.bench.datasets import load_problems
from suture.errors import PrerequisiteError

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "benchmarks" / "recordings"
MEASURED_RESULTS = {"HumanEval/0": True, "HumanEval/2": True, "HumanEval/4": True, "HumanEval/32": False}
"""Task -> whether `lean_best_of_k` solves it within 500 tokens."""


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", ["0.5b"])
def test_replaying_gives_the_measured_results(tmp_path: Path, require: Require, size: str) -> None:
    try:
        load_problems("humaneval")
    except PrerequisiteError as error:
        require("data", False, str(error))
    model = f"qwen2.5-coder-{size}"
    recording = RECORDINGS / f"humaneval-lean-{model}.jsonl.gz"
    command = [
        sys.executable,
        "-m",
        "suture.interfaces.cli",
        "bench",
        "run",
        str(tmp_path / "bench"),
        "--replayed",
    ]
    command += ["--dataset", "humaneval", "--arm", "lean_best_of_k", "--cap", "500"]
    command += [argument for task in MEASURED_RESULTS for argument in ("--task", task)]
    command += ["--model", f"local:{model}", "--recording", str(recording)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr

    rows = [json.loads(line) for line in (tmp_path / "bench" / "rows.jsonl").read_text().splitlines()]
    best_steps = {
        row["problem"]: [step for step in row["steps"] if step["is_best_so_far"]][-1] for row in rows
    }
    results = {problem: step["grade"]["status"] == "right" for problem, step in best_steps.items()}
    assert results == MEASURED_RESULTS
