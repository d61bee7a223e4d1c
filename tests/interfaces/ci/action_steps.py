"""Run the steps of `action.yml` as GitHub's runner does: fill in expressions, then run bash on a file."""

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
SHELL_COMMAND = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
"""The command that the runner starts for `shell: bash`, before the path of the script."""
ACTION: Mapping[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


@dataclass(frozen=True, kw_only=True)
class ActionResult:
    """The result of the action.

    Attributes:
        status: The exit code of the first failing step, or 0.
        outputs: The outputs of the action.
        summary: The job summary in Markdown.
        output: Everything that the steps printed.
    """

    status: int
    outputs: Mapping[str, str]
    summary: str
    output: str


def run_action(
    inputs: Mapping[str, str],
    job: Mapping[str, str],
    workspace: Path,
    runner_folder: Path,
    event: Mapping[str, str] | None = None,
) -> ActionResult:
    """Run every step whose condition holds, until one fails.

    Args:
        inputs: The inputs that a workflow sets; others have their defaults.
        job: The environment variables of the job.
        workspace: The folder of the checkout.
        runner_folder: The runner's folder for the files of one job.
        event: Values of `github.event`, such as `before`; others are empty.
    """
    assert inputs.keys() <= ACTION["inputs"].keys()
    runner_folder.mkdir(parents=True, exist_ok=True)
    expressions = {
        f"inputs.{name}": str(description.get("default", ""))
        for name, description in ACTION["inputs"].items()
    }
    expressions |= {f"inputs.{name}": value for name, value in inputs.items()}
    expressions |= {"github.action_path": str(ROOT), "runner.temp": str(runner_folder)}
    expressions |= {f"github.event.{name}": value for name, value in (event or {}).items()}
    output_text, summary = "", runner_folder / "summary"
    summary.touch()
    status = 0
    for number, step in enumerate(ACTION["runs"]["steps"]):
        condition = CONDITION.fullmatch(step.get("if", ""))
        assert ("if" in step) == bool(condition), "this runner supports no other conditions"
        if condition and expressions[f"inputs.{condition[1]}"] != condition[2]:
            continue
        assert not EXPRESSION.search(step["run"]), "an expression in a script is an injection"
        script, output_file = runner_folder / f"step-{number}.sh", runner_folder / f"output-{number}"
        script.write_text(step["run"])
        output_file.touch()
        variables = {
            name: fill_expressions(str(value), expressions) for name, value in step.get("env", {}).items()
        }
        files = {"GITHUB_OUTPUT": str(output_file), "GITHUB_STEP_SUMMARY": str(summary)}
        result = subprocess.run(
            [*SHELL_COMMAND, str(script)],
            cwd=workspace,
            env={**job, **files, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        output_text += result.stdout
        step_outputs = read_outputs(output_file.read_text())
        expressions |= {
            f"steps.{step.get('id', number)}.outputs.{name}": value for name, value in step_outputs.items()
        }
        status = result.returncode
        if status:
            break
    outputs = {
        name: fill_expressions(description["value"], expressions)
        for name, description in ACTION["outputs"].items()
    }
    return ActionResult(status=status, outputs=outputs, summary=summary.read_text(), output=output_text)


def read_outputs(text: str) -> dict[str, str]:
    """Return the outputs of a step: `NAME=VALUE`, or `NAME<<WORD` and lines up to the word."""
    outputs: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, separator, word = line.partition("<<")
        if separator and "=" not in name:
            outputs[name] = "\n".join(iter(lines.__next__, word))
        else:
            name, _, value = line.partition("=")
            outputs[name] = value
    return outputs


def fill_expressions(text: str, expressions: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda match: expressions.get(match[1], ""), text)


def job_variables(home: Path, **extra_variables: str) -> dict[str, str]:
    """Return the variables of a job on a bare runner, which take only PATH from the developer."""
    python = Path(sys.executable).parent
    return {
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "VIRTUAL_ENV": sys.prefix,
        "CI": "true",
        **extra_variables,
    }
