"""`action.yml` on ten pipelines, with the real graph and sandbox, and delivery to a fake code host."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from bare_pytest import BARE_PYTEST
from interfaces.ci.action_steps import ACTION, ROOT, SHELL_COMMAND, ActionResult, job_variables, run_action
from interfaces.ci.failing_pipelines import (
    FAILING_PIPELINES,
    FailingPipeline,
    find_suture,
    git,
    github_variables,
    heal,
)
from interfaces.ci.fake_code_host import TOKEN, CodeHost, run_code_host
from requirements import Require
from suture.sandbox import Requirement

pytestmark = pytest.mark.heavy

BRANCH = "work/$(touch no);`touch no`"
"""The branch of `github_variables`; a shell that expands it would create the file `no`."""


@pytest.fixture(scope="module", autouse=True)
def require_sandbox(require: Require, sandbox_requirement: Requirement) -> None:
    """Skip these tests where no sandbox can start."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


@pytest.fixture(scope="module")
def host() -> Iterator[CodeHost]:
    """Run a fake code host for all tests."""
    with run_code_host() as code_host:
        yield code_host


@pytest.fixture(scope="module")
def healed_pipeline(
    tmp_path_factory: pytest.TempPathFactory, host: CodeHost, self_tested_cache: Path
) -> tuple[Path, ActionResult]:
    """Heal the pipeline with faulty code once for all tests."""
    folder = tmp_path_factory.mktemp("code")
    return folder, heal(FAILING_PIPELINES[0], folder / "job", host.url, self_tested_cache)


@pytest.mark.parametrize("pipeline", FAILING_PIPELINES, ids=lambda item: item.name)
def test_each_pipeline_ends_with_its_expected_result(
    pipeline: FailingPipeline,
    tmp_path: Path,
    host: CodeHost,
    healed_pipeline: tuple[Path, ActionResult],
    self_tested_cache: Path,
) -> None:
    before = len(host.calls)
    folder, result = healed_pipeline
    if pipeline is not FAILING_PIPELINES[0]:
        folder, result = tmp_path, heal(pipeline, tmp_path / "job", host.url, self_tested_cache)
    actual = (result.outputs["outcome"], result.outputs["reason"], result.status)
    assert actual == (pipeline.outcome, pipeline.reason, pipeline.status), result.output

    report_folder = folder / "job" / "heal"
    assert (report_folder / "certificate.json").exists() == (pipeline.outcome == "healed")
    assert result.summary.startswith(f"## Suture: {pipeline.outcome}")
    assert json.loads((report_folder / "report.json").read_text())["exit_code"] == pipeline.status
    assert len(host.calls) == before, "a job without rights must not call the code host"
    assert git(folder / "job" / "checkout", "status", "--porcelain") == ""
    assert not (folder / "job" / "checkout" / "no").exists()

    if pipeline.reason in ("bot_commit", "fork_with_secrets"):
        assert not (folder / "job" / "home" / ".local").exists(), "a refused pipeline must not start a run"


def test_the_summary_contains_the_change_and_no_token(healed_pipeline: tuple[Path, ActionResult]) -> None:
    _, result = healed_pipeline
    assert "+        goods += price\n" in result.summary
    assert TOKEN not in result.summary + result.output


def test_the_junit_report_can_be_parsed(healed_pipeline: tuple[Path, ActionResult]) -> None:
    root = ElementTree.parse(healed_pipeline[0] / "job" / "heal" / "junit.xml").getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"test_nothing": [], "test_two": ["failure"], "test_three": ["failure"], "heal": []}
    suites = [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root]
    assert suites == [("tests", "3", "2"), ("heal", "1", "0")]


def deliver(
    healed_pipeline: tuple[Path, ActionResult],
    target: Path,
    host: CodeHost,
    token: str = TOKEN,
    **inputs: str,
) -> ActionResult:
    """Run the delivering half of the action on a fresh clone with another home."""
    folder = healed_pipeline[0] / "job"
    checkout = target / "checkout"
    git(folder, "clone", "-q", str(folder / "checkout"), str(checkout))
    shas = (git(checkout, "rev-parse", "HEAD^"), git(checkout, "rev-parse", "HEAD"))
    job = job_variables(
        target / "home", **github_variables(FAILING_PIPELINES[0], shas, target / "runner", host.url)
    )
    (target / "home").mkdir()
    default_inputs = {"do": "deliver", "suture": find_suture(), "test": BARE_PYTEST, "token": token}
    return run_action(
        {**default_inputs, "folder": str(folder / "heal"), **inputs}, job, checkout, target / "runner"
    )


def respond(
    healed_pipeline: tuple[Path, ActionResult], target: Path, host: CodeHost, **inputs: str
) -> ActionResult:
    """Run the action for the comment `/suture apply` of Ada, on a fresh clone with another home."""
    folder, checkout = healed_pipeline[0] / "job", target / "checkout"
    git(folder, "clone", "-q", str(folder / "checkout"), str(checkout))
    shas = (git(checkout, "rev-parse", "HEAD^"), git(checkout, "rev-parse", "HEAD"))
    variables = github_variables(FAILING_PIPELINES[0], shas, target / "runner", host.url)
    event = {
        "action": "created",
        "issue": {"number": 7, "pull_request": {"url": "..."}},
        "comment": {"id": 9, "body": "/suture apply", "user": {"login": "ada"}},
    }
    (target / "runner" / "event.json").write_text(json.dumps(event))
    job = job_variables(target / "home", **{**variables, "GITHUB_EVENT_NAME": "issue_comment"})
    (target / "home").mkdir()
    default_inputs = {"do": "respond", "suture": find_suture(), "test": BARE_PYTEST, "token": TOKEN}
    return run_action(
        {**default_inputs, "folder": str(folder / "heal"), **inputs}, job, checkout, target / "runner"
    )


def test_a_branch_and_a_draft_pull_request_are_created_once(
    healed_pipeline: tuple[Path, ActionResult], tmp_path: Path, host: CodeHost
) -> None:
    host.calls.clear()
    host.add_pull("0" * 40, BRANCH)
    result = deliver(healed_pipeline, tmp_path / "first", host, delivery="pull_request")
    assert result.status == 0, result.output
    assert host.posts() == ["git/blobs", "git/trees", "git/commits", "git/refs", "pulls"]
    assert host.body("pulls")["draft"] is True
    assert host.body("pulls")["base"] == BRANCH

    name = host.body("git/refs")["ref"]
    assert re.fullmatch(r"refs/heads/suture/heal-[\w-]+-[0-9a-f]{8}-[0-9a-f]{40}", name)
    assert "Healed-by: suture" in host.body("git/commits")["message"]
    assert TOKEN not in result.output
    assert "verified mutation" in result.output

    # Another way of delivery is refused too, because the heal of this commit is delivered already.
    result = deliver(healed_pipeline, tmp_path / "second", host, delivery="comment")
    assert (result.status, "already_delivered" in result.output) == (7, True), result.output
    assert len(host.posts()) == 5

    host.refs.clear()


def test_a_comment_is_applied_by_a_command(
    healed_pipeline: tuple[Path, ActionResult], tmp_path: Path, host: CodeHost
) -> None:
    checkout = healed_pipeline[0] / "job" / "checkout"
    host.add_pull(git(checkout, "rev-parse", "HEAD"), BRANCH, base=git(checkout, "rev-parse", "HEAD^"))
    host.calls.clear()
    result = deliver(healed_pipeline, tmp_path / "deliver", host, delivery="comment")
    assert result.status == 0, result.output
    assert host.posts() == ["issues/7/comments"]
    assert "deliberate mistakes here.**" in host.body("issues/7/comments")["body"]

    nothing = str(tmp_path / "no folder yet")
    result = respond(healed_pipeline, tmp_path / "check", host, folder=nothing)
    assert (result.status, result.outputs["reply"]) == (0, "ready"), result.output
    assert result.outputs["commit"] == host.pull["head"]["sha"]

    result = respond(healed_pipeline, tmp_path / "apply", host)
    assert (result.status, result.outputs["reply"]) == (0, "applied"), result.output
    assert host.pull["head"]["sha"] == host.body("check-runs")["head_sha"]
    assert "verified mutation" in result.output
    assert TOKEN not in result.output

    host.refs.clear()
    host.comments.clear()


def test_gitlab_receives_a_commit_and_a_draft_merge_request(
    healed_pipeline: tuple[Path, ActionResult], tmp_path: Path, host: CodeHost
) -> None:
    """The test runs the script of the GitLab component as GitLab's runner does."""
    host.calls.clear()
    folder = healed_pipeline[0] / "job"
    git(folder, "clone", "-q", str(folder / "checkout"), str(tmp_path / "checkout"))
    text = (ROOT / "templates" / "heal.yml").read_text()
    spec, jobs = yaml.safe_load_all(text)
    default_inputs = {"delivery": "pull_request", "test": BARE_PYTEST, "install": "none", "after": "test"}
    inputs = {
        name: default_inputs.get(name, description.get("default"))
        for name, description in spec["spec"]["inputs"].items()
    }
    variables = {
        name: re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda actual: str(inputs[actual[1]]), value)
        for name, value in jobs[".suture"]["variables"].items()
    }
    shutil.copytree(folder / "heal", tmp_path / "checkout" / "suture-heal")
    lines = [*jobs[".suture"]["before_script"], *jobs["suture-deliver"]["script"]]
    process = subprocess.run(
        [*SHELL_COMMAND, "-c", "\n".join(lines)],
        cwd=tmp_path / "checkout",
        env=job_variables(
            tmp_path,
            GITLAB_CI="true",
            CI_PROJECT_ID="42",
            CI_API_V4_URL=host.url,
            CI_COMMIT_BRANCH=BRANCH,
            CI_COMMIT_SHA=git(tmp_path / "checkout", "rev-parse", "HEAD"),
            CI_COMMIT_BEFORE_SHA="0" * 40,
            GITLAB_USER_LOGIN="ada",
            SUTURE_KEYS_CI=TOKEN,
            **variables,
        ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert host.posts() == ["repository/commits", "merge_requests"]

    (action,) = host.body("repository/commits")["actions"]
    assert (action["action"], action["file_path"]) == ("update", "shop.py")
    assert host.body("merge_requests")["title"] == "Draft: Heal shop.py"
    assert TOKEN not in process.stdout + process.stderr

    host.refs.clear()


def test_a_forged_certificate_is_not_delivered(
    healed_pipeline: tuple[Path, ActionResult], tmp_path: Path, host: CodeHost
) -> None:
    host.calls.clear()
    forged_report = tmp_path / "forged"
    shutil.copytree(healed_pipeline[0] / "job" / "heal", forged_report)
    text = (forged_report / "certificate.json").read_text()
    (forged_report / "certificate.json").write_text(text.replace("goods += price", "goods += 9999"))
    result = deliver(
        healed_pipeline, tmp_path / "one", host, folder=str(forged_report), delivery="pull_request"
    )
    assert (result.status, "not_verified" in result.output) == (7, True), result.output

    result = deliver(
        healed_pipeline,
        tmp_path / "two",
        host,
        folder=str(forged_report),
        test="python -m pytest test_shop.py",
    )
    assert result.status == 7, result.output
    assert host.posts() == []


def test_the_shell_script_names_the_command_that_applies_the_fix(
    healed_pipeline: tuple[Path, ActionResult], tmp_path: Path
) -> None:
    folder = healed_pipeline[0] / "job"
    git(folder, "clone", "-q", str(folder / "checkout"), str(tmp_path / "checkout"))
    process = subprocess.run(
        [str(ROOT / "deploy" / "heal.sh"), BARE_PYTEST],
        cwd=tmp_path / "checkout",
        env=job_variables(tmp_path, SUTURE=find_suture(), SUTURE_CI_NEW_ONLY="false"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "verified; apply it with" in process.stdout

    git(tmp_path / "checkout", "apply", "suture-heal/fix.patch")
    assert "goods += price" in (tmp_path / "checkout" / "shop.py").read_text()


def test_the_install_step_creates_a_program(tmp_path: Path) -> None:
    """The test installs a small wheel that needs no package index."""
    wheel = tmp_path / "suture-9-py3-none-any.whl"
    files = {
        "suture_here.py": "def main():\n    print('here')\n",
        "suture-9.dist-info/METADATA": "Metadata-Version: 2.1\nName: suture\nVersion: 9\n",
        "suture-9.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "suture-9.dist-info/entry_points.txt": "[console_scripts]\nsuture = suture_here:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, "suture-9.dist-info/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, "suture-9.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    step = {"do": "neither", "install": str(wheel)}
    job = {**job_variables(tmp_path), "PIP_NO_INDEX": "1"}
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("venv", "pip", "secrets"):
        (checkout / f"{name}.py").write_text("raise SystemExit('the checkout has run')\n")
    result = run_action(step, job, checkout, tmp_path / "runner")
    assert result.status == 0, result.output

    program = tmp_path / "runner" / "suture" / "bin" / "suture"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "here\n"


def test_no_step_imports_python_modules_of_the_checkout() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"]]
    text = "\n".join([*scripts, *(path.read_text() for path in sorted((ROOT / "templates").iterdir()))])
    options = re.findall(r"python3?\"? (-\S+)", text)
    assert len(options) == 9
    assert set(options) <= {"-I", "-P"}, "the current folder is the checkout"


def test_zizmor_finds_no_fault(tmp_path: Path) -> None:
    """The check covers the action and the documented workflow, except that it names actions by tags."""
    page = (ROOT / "docs" / "ci.md").read_text()
    documented = re.findall(r"^```yaml\n((?:name|on): .*?)^```", page, re.MULTILINE | re.DOTALL)
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    for number, workflow in enumerate(documented):
        (workflows / f"{number}.yml").write_text(workflow)
    program = Path(sys.executable).with_name("zizmor")
    for file in (
        str(ROOT / "action.yml"),
        *(str(workflows / f"{number}.yml") for number in range(len(documented))),
    ):
        process = subprocess.run(
            [program, "--offline", "--no-progress", "--format", "json", file],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        findings = [
            (finding["ident"], finding["determinations"]["severity"])
            for finding in json.loads(process.stdout)
        ]
        assert [finding for finding in findings if finding[0] != "unpinned-uses"] == []
