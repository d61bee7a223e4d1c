"""Whole runs: the real graph, the real sandbox, a real SQLite; only the model is scripted."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from suture.settings import BudgetSettings, PathSettings, Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FIXES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests" / "examples" / "fixes.toml").read_text())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose runs lie in the test's own folder."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"), budget=BudgetSettings(attempts=8, seconds=100)
    )


@pytest.fixture(params=sorted(FIXES))
def broken_project(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of each example that ships, and the fix it needs."""
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / request.param, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return project, FIXES[request.param]


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder, as bytes."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
