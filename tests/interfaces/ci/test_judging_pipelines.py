"""Where a pipeline meets `suture judge`: the action, the GitLab component, and a git hook, with real runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bare_pytest import BARE_PYTEST
from interfaces.ci.action_steps import ROOT, SHELL_COMMAND, ActionResult, job_variables, run_action
from interfaces.ci.failing_pipelines import ADA, FAILING_PIPELINES, commit, find_suture, git, github_variables
from requirements import Require
from suture.sandbox import Requirement

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
CODE = "def total(prices):\n    return sum(prices) + 1\n"
RIGHT = CODE.replace(" + 1", "")
TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([3, 4]) == 7\n"


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A clone with a change, and what a job has around it."""

    root: Path
    base: str
    home: Path


@pytest.fixture
def checkout(
    tmp_path: Path, require: Require, sandbox_requirement: Requirement, self_tested_cache: Path
) -> Checkout:
    """Commit a shop whose total is wrong."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    root, home = tmp_path / "checkout", tmp_path / "home"
    root.mkdir()
    shutil.copytree(self_tested_cache, home / ".cache" / "suture")
    git(root, "init", "-q", "-b", "main")
    write(root, {"shop.py": CODE, "test_shop.py": TESTS})
    return Checkout(root=root, base=commit(root, ADA, "The shop"), home=home)


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).write_text(text)


def run_judge_action(
    checkout: Checkout, tmp_path: Path, event: Mapping[str, str], **inputs: str
) -> ActionResult:
    shas = (checkout.base, git(checkout.root, "rev-parse", "HEAD"))
    variables = github_variables(FAILING_PIPELINES[0], shas, tmp_path / "runner", "http://127.0.0.1:9")
    return run_action(
        {"do": "judge", "suture": find_suture(), "test": BARE_PYTEST, "folder": "suture-judge", **inputs},
        job_variables(checkout.home, **variables),
        checkout.root,
        tmp_path / "runner",
        event,
    )


def test_the_action_rejects_a_loosened_test_and_points_at_its_line(
    checkout: Checkout, tmp_path: Path
) -> None:
    write(checkout.root, {"test_shop.py": TESTS.replace(" == 7", " == 8")})
    commit(checkout.root, ADA, "::error::done")
    result = run_judge_action(checkout, tmp_path, {"pull_request.base.sha": checkout.base})
    assert (result.status, result.outputs["verdict"]) == (1, "rejected"), result.output
    _, headline, *_ = result.outputs["summary"].splitlines()
    assert headline.startswith("**Rejected:** `test_shop.py:")
    assert "test_total now expects another result" in headline
    assert result.outputs["summary"].count("test_total now expects another result") == 1
    assert "**Rejected:**" in result.summary
    silenced, word, after = split_at_commands(result.output)
    assert "Rejected: " in silenced
    commands = [line for line in after.splitlines() if line]
    assert commands
    assert all(line.startswith("::error file=test_shop.py,line=5,title=suture ") for line in commands)
    assert word not in silenced
    log = json.loads((checkout.root / "suture-judge" / "judge.sarif").read_text())
    assert log["runs"][0]["results"][0]["ruleId"] == "expectation_follows_code"
    assert (checkout.root / "suture-judge" / "judge.xml").is_file()


def split_at_commands(output: str) -> tuple[str, str, str]:
    """Return what is printed while commands are off, the word that turns them on, and the rest."""
    first, _, rest = output.partition("\n")
    word = first.removeprefix("::stop-commands::")
    silenced, _, after = rest.partition(f"::{word}::\n")
    return silenced, word, after


def test_the_action_accepts_a_correction_against_the_commit_before_the_push(
    checkout: Checkout, tmp_path: Path
) -> None:
    write(checkout.root, {"shop.py": RIGHT})
    commit(checkout.root, ADA, "The total")
    result = run_judge_action(checkout, tmp_path, {"before": checkout.base})
    assert (result.status, result.outputs["verdict"]) == (0, "accepted"), result.output


def test_a_forced_push_is_compared_with_the_default_branch(checkout: Checkout, tmp_path: Path) -> None:
    git(checkout.root, "checkout", "-q", "-b", "work")
    write(checkout.root, {"shop.py": RIGHT})
    commit(checkout.root, ADA, "The total")
    result = run_judge_action(checkout, tmp_path, {"before": "1" * 40})
    assert (result.status, result.outputs["verdict"]) == (0, "accepted"), result.output


def test_the_gitlab_component_judges_against_the_base_of_the_merge_request(checkout: Checkout) -> None:
    write(checkout.root, {"test_shop.py": TESTS.replace(" == 7", " == 8")})
    commit(checkout.root, ADA, "The total")
    _, jobs = yaml.safe_load_all((ROOT / "templates" / "judge.yml").read_text())
    job = jobs["suture-judge"]
    variables = {"TEST": BARE_PYTEST, "INSTALL": "none", "CI_MERGE_REQUEST_DIFF_BASE_SHA": checkout.base}
    assert {name for name, value in job["variables"].items() if "inputs" in value} == {"TEST", "INSTALL"}
    process = subprocess.run(
        [*SHELL_COMMAND, "-c", "\n".join([*job["before_script"], *job["script"]])],
        cwd=checkout.root,
        env=job_variables(
            checkout.home, GITLAB_CI="true", CI_JOB_URL="https://gitlab.example/7", **variables
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1, process.stderr
    assert process.stdout.startswith("Rejected: ")
    assert 'failures="1"' in (checkout.root / job["artifacts"]["reports"]["junit"]).read_text()
    predicate = json.loads((checkout.root / "suture-judge" / "judge.json").read_text())["predicate"]
    assert (predicate["result"], predicate["url"]) == ("FAILED", "https://gitlab.example/7")


def test_the_documented_hook_stops_a_push_until_the_change_is_honest(
    checkout: Checkout, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "judge.md").read_text()
    (hook,) = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = checkout.root / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    path.write_text(hook)
    path.chmod(0o755)
    git(tmp_path, "init", "-q", "--bare", "remote")
    git(checkout.root, "remote", "add", "origin", str(tmp_path / "remote"))
    git(checkout.root, "push", "-q", "--no-verify", "origin", "main")

    def push() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "push", "-q", "origin", "main"],
            cwd=checkout.root,
            env=job_variables(checkout.home, SUTURE_PROJECT_TEST=BARE_PYTEST),
            capture_output=True,
            text=True,
            check=False,
        )

    write(checkout.root, {"test_shop.py": TESTS.replace(" == 7", " == 8")})
    commit(checkout.root, ADA, "Done")
    stopped = push()
    assert stopped.returncode != 0
    assert "Rejected: " in stopped.stdout + stopped.stderr
    write(checkout.root, {"test_shop.py": TESTS, "shop.py": RIGHT})
    commit(checkout.root, ADA, "The total")
    accepted = push()
    assert accepted.returncode == 0, accepted.stderr
