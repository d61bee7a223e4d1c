"""Small projects with seeded faults; their own tests are run behind the wall, never by this suite."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

collect_ignore = ["projects"]

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "expected.toml").read_text())


def project(name: str) -> dict[str, Any]:
    """What must come of one project, and where it lies."""
    return {"root": HERE / "projects" / name, "name": name, **EXPECTED[name]}


@pytest.fixture(params=sorted(EXPECTED))
def expected(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One project after the other."""
    return project(request.param)


@pytest.fixture(params=sorted(name for name, told in EXPECTED.items() if told["triage"] == "code"))
def mendable(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Those whose code is at fault."""
    return project(request.param)
