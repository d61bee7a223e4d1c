"""GitHub's workflows: audited by zizmor, and what they name is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS: dict[str, dict[str, Any]] = {
    path.name: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yml")
}
ZIZMOR = Path(sys.executable).with_name("zizmor")


def audited(place: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ZIZMOR), "--offline", "--quiet", "--no-progress", str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_auditor_has_nothing_to_say() -> None:
    done = audited(FOLDER)
    assert done.returncode == 0, done.stdout


def test_the_auditor_says_what_is_wrong(tmp_path: Path) -> None:
    wrong = re.sub(r"@[0-9a-f]{40} #", "@v4 #", (FOLDER / "ci.yml").read_text())
    (tmp_path / "ci.yml").write_text(wrong)
    done = audited(tmp_path / "ci.yml")
    assert done.returncode != 0
    assert "unpinned-uses" in done.stdout


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_a_job_is_bounded_and_may_do_no_more_than_it_says(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert set((workflow["permissions"] or {}).values()) <= {"read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 180
        writes = {what for what, how in (job.get("permissions") or {}).items() if how == "write"}
        assert not writes or "environment" in job


def test_an_action_is_one_commit_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for path in FOLDER.glob("*.yml"):
        for action, pin in re.findall(r"uses: ([\w./-]+)@(\S+ # v[\d.]+)$", path.read_text(), re.MULTILINE):
            pins.setdefault(action, set()).add(pin)
    assert {"actions/checkout", "pypa/gh-action-pypi-publish"} <= set(pins)
    assert all(len(found) == 1 for found in pins.values()), pins


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_each_python_that_the_package_claims_is_tried(name: str) -> None:
    claimed = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()
    )
    matrices = [job["strategy"]["matrix"] for job in WORKFLOWS[name]["jobs"].values() if "strategy" in job]
    assert [matrix["python"] for matrix in matrices] == [claimed]
    assert any("arm" in machine for machine in matrices[0]["machine"])


def test_only_what_was_tried_is_published() -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert jobs["publish"]["needs"] == "try"
    assert jobs["try"]["needs"] == "build"
    assert any("self-check" in str(step.get("run")) for step in jobs["try"]["steps"])
