"""A project with passing tests is not changed and costs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from project_files import read_tree
from suture.api import HealOptions, heal
from suture.core.settings import PathSettings, Settings
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, RunRequest
from suture.testing import ScriptedModel

HEALTHY = Path(__file__).parent / "projects" / "healthy"
RUNS = 10


@pytest.mark.heavy
@pytest.mark.timeout(600)  # pytest runs ten times in the sandbox
async def test_healing_a_healthy_project_ten_times_changes_nothing(
    tmp_path: Path, require: Callable[[str, bool, str], None]
) -> None:
    project = tmp_path / "project"
    shutil.copytree(HEALTHY, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    before = read_tree(project)
    settings = Settings(paths=PathSettings(home=tmp_path / "home"))
    sandbox = BubblewrapSandbox()
    try:
        await sandbox.run(RunRequest(argv=("true",)))
        for _ in range(RUNS):
            result = await heal(
                project,
                HealOptions(
                    test="python -m pytest -q -p no:hypothesispytest",
                    apply=True,
                    settings=settings,
                    model=ScriptedModel([]),
                    sandbox=sandbox,
                ),
            )
            assert (result.outcome, result.diff, result.spend.attempts) == ("nothing_to_heal", "", 0)
            assert read_tree(project) == before
    except SandboxUnavailable as fault:
        require("bubblewrap", False, str(fault))
    finally:
        await sandbox.close()
