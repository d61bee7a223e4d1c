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
from interfaces.ci.action_steps import ACTION, ROOT, SHELL, Ended, job_variables, run_action
from interfaces.ci.failing_pipelines import RED, RedPipeline, git, github_variables, heal, suture
from interfaces.ci.fake_code_host import TOKEN, CodeHost, serving
from requirements import Require
from suture.sandbox import Requirement

pytestmark = pytest.mark.heavy

BRANCH = "work/$(touch no);`touch no`"
"""The branch of `github_variables`: what a shell would make of it lies nowhere afterwards."""


@pytest.fixture(scope="module", autouse=True)
def needs_wall(require: Require, sandbox_requirement: Requirement) -> None:
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


@pytest.fixture(scope="module")
def host() -> Iterator[CodeHost]:
    with serving() as opened:
        yield opened


@pytest.fixture(scope="module")
def healed(
    tmp_path_factory: pytest.TempPathFactory, host: CodeHost, self_tested_cache: Path
) -> tuple[Path, Ended]:
    """The pipeline whose code is at fault, healed once for all tests."""
    folder = tmp_path_factory.mktemp("code")
    return folder, heal(RED[0], folder / "job", host.url, self_tested_cache)


@pytest.mark.parametrize("pipeline", RED, ids=lambda one: one.name)
def test_each_pipeline_ends_as_its_table_says(
    pipeline: RedPipeline, tmp_path: Path, host: CodeHost, healed: tuple[Path, Ended], self_tested_cache: Path
) -> None:
    before = len(host.calls)
    folder, ended = healed
    if pipeline is not RED[0]:
        folder, ended = tmp_path, heal(pipeline, tmp_path / "job", host.url, self_tested_cache)
    found = (ended.outputs["outcome"], ended.outputs["reason"], ended.status)
    assert found == (pipeline.outcome, pipeline.reason, pipeline.status), ended.said
    delivered = folder / "job" / "heal"
    assert (delivered / "certificate.json").exists() == (pipeline.outcome == "healed")
    assert ended.summary.startswith(f"## Suture: {pipeline.outcome}")
    assert json.loads((delivered / "report.json").read_text())["exit_code"] == pipeline.status
    assert len(host.calls) == before, "the job without rights asks nobody"
    assert git(folder / "job" / "checkout", "status", "--porcelain") == ""
    assert not (folder / "job" / "checkout" / "no").exists()
    if pipeline.reason in ("bot_commit", "fork_with_secrets"):
        assert not (folder / "job" / "home" / ".local").exists(), "nothing ran"


def test_the_summary_holds_the_change_and_no_token(healed: tuple[Path, Ended]) -> None:
    _, ended = healed
    assert "+        goods += price\n" in ended.summary
    assert TOKEN not in ended.summary + ended.said


def test_junit_is_read_by_an_ordinary_parser(healed: tuple[Path, Ended]) -> None:
    root = ElementTree.parse(healed[0] / "job" / "heal" / "junit.xml").getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"test_nothing": [], "test_two": ["failure"], "test_three": ["failure"], "heal": []}
    suites = [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root]
    assert suites == [("tests", "3", "2"), ("heal", "1", "0")]


def deliver(
    healed: tuple[Path, Ended], place: Path, host: CodeHost, token: str = TOKEN, **inputs: str
) -> Ended:
    """The action's second half, on a fresh clone with another home."""
    folder = healed[0] / "job"
    checkout = place / "checkout"
    git(folder, "clone", "-q", str(folder / "checkout"), str(checkout))
    shas = (git(checkout, "rev-parse", "HEAD^"), git(checkout, "rev-parse", "HEAD"))
    job = job_variables(place / "home", **github_variables(RED[0], shas, place / "runner", host.url))
    (place / "home").mkdir()
    given = {"do": "deliver", "suture": suture(), "test": BARE_PYTEST, "token": token}
    return run_action({**given, "folder": str(folder / "heal"), **inputs}, job, checkout, place / "runner")


def test_a_branch_and_a_draft_are_made_once(
    healed: tuple[Path, Ended], tmp_path: Path, host: CodeHost
) -> None:
    host.calls.clear()
    ended = deliver(healed, tmp_path / "first", host, **{"delivery": "pull_request"})
    assert ended.status == 0, ended.said
    assert host.posts() == ["git/blobs", "git/trees", "git/commits", "git/refs", "pulls"]
    assert host.body("pulls")["draft"] is True
    assert host.body("pulls")["base"] == BRANCH
    name = host.body("git/refs")["ref"]
    assert re.fullmatch(r"refs/heads/suture/heal-[\w-]+-[0-9a-f]{8}-[0-9a-f]{40}", name)
    assert "Healed-by: suture" in host.body("git/commits")["message"]
    assert TOKEN not in ended.said
    assert "verified mutation" in ended.said
    # A second time, and another way: this commit's heal is there.
    ended = deliver(healed, tmp_path / "second", host, **{"delivery": "comment"})
    assert (ended.status, "already_delivered" in ended.said) == (7, True), ended.said
    assert len(host.posts()) == 5
    host.refs.clear()


def test_a_comment_suggests_where_it_can(healed: tuple[Path, Ended], tmp_path: Path, host: CodeHost) -> None:
    host.calls.clear()
    host.lines_in_diff = False
    ended = deliver(healed, tmp_path, host, **{"delivery": "comment"})
    assert ended.status == 0, ended.said
    assert host.posts() == ["pulls/7/reviews", "issues/7/comments"]
    (suggestion,) = host.body("pulls/7/reviews")["comments"]
    assert suggestion["body"] == "```suggestion\n        goods += price\n```\n"
    assert (suggestion["path"], suggestion["line"], suggestion["side"]) == ("shop.py", 4, "RIGHT")
    assert "```diff\n" in host.body("issues/7/comments")["body"]
    host.bodies.clear()


def test_gitlab_gets_a_commit_and_a_draft(healed: tuple[Path, Ended], tmp_path: Path, host: CodeHost) -> None:
    """The component's own script, as GitLab's runner starts it."""
    host.calls.clear()
    folder = healed[0] / "job"
    git(folder, "clone", "-q", str(folder / "checkout"), str(tmp_path / "checkout"))
    text = (ROOT / "templates" / "heal.yml").read_text()
    spec, jobs = yaml.safe_load_all(text)
    given = {"delivery": "pull_request", "test": BARE_PYTEST, "install": "none", "after": "test"}
    inputs = {name: given.get(name, one.get("default")) for name, one in spec["spec"]["inputs"].items()}
    variables = {
        name: re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda found: str(inputs[found[1]]), value)
        for name, value in jobs[".suture"]["variables"].items()
    }
    shutil.copytree(folder / "heal", tmp_path / "checkout" / "suture-heal")
    lines = [*jobs[".suture"]["before_script"], *jobs["suture-deliver"]["script"]]
    done = subprocess.run(
        [*SHELL, "-c", "\n".join(lines)],
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
    assert done.returncode == 0, done.stdout + done.stderr
    assert host.posts() == ["repository/commits", "merge_requests"]
    (action,) = host.body("repository/commits")["actions"]
    assert (action["action"], action["file_path"]) == ("update", "shop.py")
    assert host.body("merge_requests")["title"] == "Draft: Heal shop.py"
    assert TOKEN not in done.stdout + done.stderr
    host.refs.clear()


def test_a_forged_certificate_and_a_weak_token_send_nothing(
    healed: tuple[Path, Ended], tmp_path: Path, host: CodeHost
) -> None:
    host.calls.clear()
    forged = tmp_path / "forged"
    shutil.copytree(healed[0] / "job" / "heal", forged)
    text = (forged / "certificate.json").read_text()
    (forged / "certificate.json").write_text(text.replace("goods += price", "goods += 9999"))
    ended = deliver(healed, tmp_path / "one", host, folder=str(forged), **{"delivery": "pull_request"})
    assert (ended.status, "not_verified" in ended.said) == (7, True), ended.said
    ended = deliver(healed, tmp_path / "two", host, folder=str(forged), test="python -m pytest test_shop.py")
    assert ended.status == 7, ended.said
    assert host.posts() == []


def test_the_shell_recipe_says_what_to_do(healed: tuple[Path, Ended], tmp_path: Path) -> None:
    folder = healed[0] / "job"
    git(folder, "clone", "-q", str(folder / "checkout"), str(tmp_path / "checkout"))
    done = subprocess.run(
        [str(ROOT / "deploy" / "heal.sh"), BARE_PYTEST],
        cwd=tmp_path / "checkout",
        env=job_variables(tmp_path, SUTURE=suture(), SUTURE_CI_NEW_ONLY="false"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified; apply it with" in done.stdout
    git(tmp_path / "checkout", "apply", "suture-heal/fix.patch")
    assert "goods += price" in (tmp_path / "checkout" / "shop.py").read_text()


def test_the_step_that_installs_makes_a_program(tmp_path: Path) -> None:
    """Of a wheel that needs no index: what pip makes of ours is the package's own test."""
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
    ended = run_action(step, job, checkout, tmp_path / "runner")
    assert ended.status == 0, ended.said
    program = tmp_path / "runner" / "suture" / "bin" / "suture"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "here\n"


def test_no_python_of_a_step_takes_modules_of_the_checkout() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"]]
    text = "\n".join([*scripts, (ROOT / "templates" / "heal.yml").read_text()])
    options = re.findall(r"python3?\"? (-\S+)", text)
    assert len(options) == 5
    assert set(options) <= {"-I", "-P"}, "the checkout is where they are started"


def test_zizmor_has_nothing_to_say(tmp_path: Path) -> None:
    """Of the action, and of the workflow that the page shows, but that its actions are named by tags."""
    page = (ROOT / "docs" / "ci.md").read_text()
    (workflow,) = re.findall(r"^```yaml\n(name: .*?)^```", page, re.MULTILINE | re.DOTALL)
    place = tmp_path / ".github" / "workflows"
    place.mkdir(parents=True)
    (place / "tests.yml").write_text(workflow)
    program = Path(sys.executable).with_name("zizmor")
    for given in (str(ROOT / "action.yml"), str(place / "tests.yml")):
        done = subprocess.run(
            [program, "--offline", "--no-progress", "--format", "json", given],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        found = [(one["ident"], one["determinations"]["severity"]) for one in json.loads(done.stdout)]
        assert [one for one in found if one[0] != "unpinned-uses"] == []


def test_every_input_of_the_page_is_one_of_the_action() -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    (workflow,) = re.findall(r"^```yaml\n(name: .*?)^```", page, re.MULTILINE | re.DOTALL)
    jobs = yaml.safe_load(workflow)["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "suture@" in step.get("uses", "")]
    assert len(steps) == 2
    for step in steps:
        assert step["with"].keys() <= ACTION["inputs"].keys()
    assert ACTION["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])
