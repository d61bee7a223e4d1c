"""Settings of runs whose change is minimised."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings import BudgetSettings, CertificationSettings, PathSettings, RepairSettings, Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Runs in the test's own folder, and few mutants."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home"),
        budget=BudgetSettings(attempts=4, seconds=600),
        certification=CertificationSettings(mutants=4, seconds=300),
        repair=RepairSettings(enabled=False),
    )
