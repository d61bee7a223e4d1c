"""Run the steps of `action.yml` as GitHub's runner does: expressions into variables, then bash on a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
CONDITION = re.compile(r"inputs\.([\w-]+) == '(\w*)'")
SHELL = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
"""What the runner starts for `shell: bash`, with the script's file behind it."""
ACTION: Mapping[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the action ended: its first failing step's status, its outputs, its summary, and all it printed."""

    status: int
    outputs: Mapping[str, str]
    summary: str
    said: str


def run_action(inputs: Mapping[str, str], job: Mapping[str, str], workspace: Path, place: Path) -> Ended:
    """Run every step whose condition holds, until one fails.

    Args:
        inputs: What a workflow gives; the others have their defaults.
        job: The job's variables, with what the runner sets.
        workspace: The checkout.
        place: The runner's folder for files of one job.
    """
    assert inputs.keys() <= ACTION["inputs"].keys()
    place.mkdir(parents=True, exist_ok=True)
    known = {f"inputs.{name}": str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {"github.action_path": str(ROOT), "runner.temp": str(place)}
    said, summary = "", place / "summary"
    summary.touch()
    status = 0
    for number, step in enumerate(ACTION["runs"]["steps"]):
        condition = CONDITION.fullmatch(step.get("if", ""))
        assert ("if" in step) == bool(condition), "the runner here reads no other conditions"
        if condition and known[f"inputs.{condition[1]}"] != condition[2]:
            continue
        assert not EXPRESSION.search(step["run"]), "an expression in a script is an injection"
        script, output = place / f"step-{number}.sh", place / f"output-{number}"
        script.write_text(step["run"])
        output.touch()
        variables = {name: _filled(str(value), known) for name, value in step.get("env", {}).items()}
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        done = subprocess.run(
            [*SHELL, str(script)],
            cwd=workspace,
            env={**job, **files, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        said += done.stdout
        lines = output.read_text().splitlines()
        known |= {
            f"steps.{step.get('id', number)}.outputs.{line.partition('=')[0]}": line.partition("=")[2]
            for line in lines
        }
        status = done.returncode
        if status:
            break
    outputs = {name: _filled(one["value"], known) for name, one in ACTION["outputs"].items()}
    return Ended(status=status, outputs=outputs, summary=summary.read_text(), said=said)


def _filled(text: str, known: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known.get(found[1], ""), text)


def job_variables(home: Path, **more: str) -> dict[str, str]:
    """The variables of a job on a bare runner: nothing of the tester's but PATH."""
    python = Path(sys.executable).parent
    return {
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "VIRTUAL_ENV": sys.prefix,
        "CI": "true",
        **more,
    }
