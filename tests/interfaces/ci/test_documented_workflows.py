"""The workflows of docs/ci.md parse, use what exists, and give no code of strangers a token that may write."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from interfaces.ci.action_steps import ACTION, ROOT, job_variables, run_action
from suture.interfaces.ci.judgement_reports import JUDGE_MARK
from suture.interfaces.cli.app import app

WORKFLOWS: list[dict[Any, Any]] = [
    yaml.safe_load(block)
    for block in re.findall(
        r"^```yaml\n((?:name|on): .*?)^```", (ROOT / "docs" / "ci.md").read_text(), re.MULTILINE | re.DOTALL
    )
]
OWN_ACTION = "OWNER/suture@v1"
IS_OURS = ("head.repo.full_name == github.repository", "steps.check.outputs.reply == 'ready'")
"""Conditions that exclude the code of forks; the second one is decided by `suture ci respond`."""


def list_jobs() -> list[tuple[dict[Any, Any], dict[str, Any]]]:
    """Return each documented job with its workflow."""
    return [(workflow, job) for workflow in WORKFLOWS for job in workflow["jobs"].values()]


def list_own_steps() -> list[dict[str, Any]]:
    """Return the documented steps that use the action."""
    return [step for _, job in list_jobs() for step in job["steps"] if step.get("uses") == OWN_ACTION]


def test_every_documented_input_and_output_exists_in_the_action() -> None:
    steps = list_own_steps()

    tasks = [step["with"].get("do", "heal") for step in steps]

    assert tasks == ["judge", "heal", "deliver", "respond", "respond", "heal", "issue"]
    for step in steps:
        assert step["with"].keys() <= ACTION["inputs"].keys()
    outputs = re.findall(r"steps\.(?:suture|check)\.outputs\.([\w-]+)", (ROOT / "docs" / "ci.md").read_text())
    assert {*outputs} <= ACTION["outputs"].keys()
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])


def test_no_workflow_gives_code_of_strangers_a_token_that_may_write() -> None:
    for workflow, job in list_jobs():
        triggers = workflow["on"] if "on" in workflow else workflow[True]  # YAML 1.1 reads `on` as a boolean
        assert "pull_request_target" not in triggers
        assert "workflow_run" not in triggers
        permissions = job.get("permissions", workflow["permissions"])
        if "write" not in permissions.values():
            continue
        has_strangers = {"pull_request", "issue_comment"} & {*triggers}
        for step in job["steps"]:
            if has_strangers and "checkout" in step.get("uses", ""):
                condition = f"{job.get('if', '')} {step.get('if', '')}"
                assert any(text in condition for text in IS_OURS), step
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_a_folder_left_by_an_earlier_job_is_not_read_before_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "suture-heal").mkdir()
    program = tmp_path / "suture"
    program.write_text('#!/bin/sh\nprintf "<%s>\\n" "$@"\n')
    program.chmod(0o755)
    check, apply = (step["with"] for step in list_own_steps() if step["with"].get("do") == "respond")

    outputs = [
        run_action({**inputs, "suture": str(program)}, job_variables(tmp_path), tmp_path, tmp_path / "runner")
        for inputs in (check, apply)
    ]

    assert ["<suture-heal>" in result.output for result in outputs] == [False, True]


def test_the_documented_job_updates_only_the_comment_of_an_earlier_judgement() -> None:
    (script,) = (step["run"] for step in WORKFLOWS[0]["jobs"]["comment"]["steps"])
    assert f'startswith("{JUDGE_MARK}")' in script
    assert "--edit-last" not in script


def test_templates_do_not_use_dangerous_triggers() -> None:
    texts = [
        path.read_text()
        for folder in ("templates", ".github/workflows")
        for path in (ROOT / folder).iterdir()
    ]
    assert not [text for text in texts if "pull_request_target" in text]


def find_commands() -> list[str]:
    """Return the command lines of Suture in the action, the templates and the how-to."""
    page = (ROOT / "docs" / "ci.md").read_text()
    texts = [step["run"] for step in ACTION["runs"]["steps"]]
    texts += [path.read_text() for path in sorted((ROOT / "templates").iterdir())]
    texts += re.findall(r"^    (suture .*)$", page, re.MULTILINE)
    joined = "\n".join(texts).replace("\\\n", " ")
    return re.findall(r'(?:bin/suture}"|^\s*-? ?suture) ((?:ci|judge|verify)\b.*)$', joined, re.MULTILINE)


@pytest.mark.parametrize("line", find_commands())
def test_a_documented_command_and_its_options_exist(line: str) -> None:
    words = line.split()
    name = words[:2] if words[0] == "ci" else words[:1]

    result = CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})

    assert result.exit_code == 0, result.output
    for option in {*re.findall(r"(?<![\w-])--[a-z][\w-]*", line.partition(" || ")[0])}:
        assert option in result.output, f"{shlex.join(name)} has no {option}"


def test_the_commands_are_found() -> None:
    names = {" ".join(line.split()[:2]) for line in find_commands() if line.startswith("ci ")}
    assert names == {"ci heal", "ci deliver", "ci respond", "ci issue"}
