"""GitHub workflows: they pass zizmor's audit, are bounded and publish only what was tested."""

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


def run_zizmor(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ZIZMOR), "--offline", "--quiet", "--no-progress", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_zizmor_finds_nothing() -> None:
    completed = run_zizmor(FOLDER)
    assert completed.returncode == 0, completed.stdout


def test_zizmor_reports_an_unpinned_action(tmp_path: Path) -> None:
    wrong = re.sub(r"@[0-9a-f]{40} #", "@v4 #", (FOLDER / "ci.yml").read_text())
    (tmp_path / "ci.yml").write_text(wrong)
    completed = run_zizmor(tmp_path / "ci.yml")
    assert completed.returncode != 0
    assert "unpinned-uses" in completed.stdout


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_a_job_is_bounded_and_has_few_permissions(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert set((workflow["permissions"] or {}).values()) <= {"read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 180
        writes = {scope for scope, access in (job.get("permissions") or {}).items() if access == "write"}
        assert not writes or "environment" in job


def test_an_action_is_pinned_to_one_commit() -> None:
    pins: dict[str, set[str]] = {}
    for path in FOLDER.glob("*.yml"):
        for action, pin in re.findall(r"uses: ([\w./-]+)@(\S+ # v[\d.]+)$", path.read_text(), re.MULTILINE):
            pins.setdefault(action, set()).add(pin)
    assert {"actions/checkout", "pypa/gh-action-pypi-publish"} <= set(pins)
    assert all(len(commits) == 1 for commits in pins.values()), pins


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_every_supported_python_is_tested(name: str) -> None:
    supported = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text()
    )
    matrices = [job["strategy"]["matrix"] for job in WORKFLOWS[name]["jobs"].values() if "strategy" in job]
    assert [matrix["python"] for matrix in matrices] == [supported]
    assert any("arm" in machine for machine in matrices[0]["machine"])


def test_only_a_tested_package_is_published() -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert jobs["publish"]["needs"] == "try"
    assert jobs["try"]["needs"] == "build"
    assert any("self-check" in str(step.get("run")) for step in jobs["try"]["steps"])
