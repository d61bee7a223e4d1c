"""`benchmarks/inspect_task.py` in inspect_ai itself, with its own mock model."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from suture.sandbox import BubblewrapSandbox

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROGRAM = """
import json, sys

from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_task import suture_task

from suture.bench import load_problems


def output(text):
    made = ModelOutput.from_content("mock", text)
    made.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)
    return made


right, wrong = load_problems("suture", first=1)[0].reference, "def nothing():\\n    pass\\n"
outputs = [output(f"```python\\n{code}\\n```") for code in (right, *[wrong] * 40)]
model = get_model("mockllm/model", custom_outputs=outputs)
(log,) = eval(suture_task(first=2), model=model, log_dir="logs", display="none", max_samples=1)
events = [[event.event, getattr(event, "source", "")] for event in log.samples[0].events]
print(json.dumps({
    "status": log.status,
    "scores": [sample.scores["suture_verdict"].value for sample in log.samples],
    "outcomes": [sample.metadata["outcome"] for sample in log.samples],
    "events": events,
    "tokens": log.stats.model_usage["mockllm/model"].total_tokens,
}))
"""


@pytest.mark.heavy
def test_suture_is_a_solver_and_its_verdict_the_score(
    tmp_path: Path, require: Require, sandbox: BubblewrapSandbox
) -> None:
    is_installed = importlib.util.find_spec("inspect_ai") is not None
    require(
        "inspect_ai", is_installed, "pip install inspect-ai; its requirements conflict with the locked ones"
    )
    done = subprocess.run(
        (sys.executable, "-c", PROGRAM),
        cwd=tmp_path,
        env={"PYTHONPATH": str(BENCHMARKS), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    log = json.loads(done.stdout.strip().splitlines()[-1])
    assert log["status"] == "success"
    assert log["scores"] == ["C", "I"]
    assert log["outcomes"][0] == "healed"
    assert log["events"].count(["model", ""]) == 1
    assert ["info", "suture"] in log["events"]
    assert log["tokens"] > 120
