"""Whole runs: the real graph, the real sandbox, a real SQLite; only the model is scripted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from scenario.projects import EXAMPLES, FIXES
from suture.core.settings import BudgetSettings, PathSettings, RepairSettings, Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings that store the runs in the test's own folder."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        repair=RepairSettings(enabled=False),  # these tests are about the models
        budget=BudgetSettings(attempts=8, seconds=100),
    )


@pytest.fixture(params=sorted(FIXES))
def broken_project(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of each broken example, and the repair that it needs."""
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / request.param, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return project, FIXES[request.param]
