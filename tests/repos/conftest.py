"""Small projects with seeded faults; their own tests are run behind the wall, never by this suite."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from requirements import Require

collect_ignore = ["projects"]

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HERE / "expected.toml").read_text())


def project(name: str) -> dict[str, Any]:
    """What must come of one project, and where it lies."""
    return {"root": HERE / "projects" / name, "name": name, **EXPECTED[name]}


def _installed(name: str, require: Require) -> dict[str, Any]:
    told = project(name)
    if tool := told.get("needs"):
        require(tool, shutil.which(tool) is not None, "it is not on PATH")
    return told


@pytest.fixture(params=sorted(EXPECTED))
def expected(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """One project after the other."""
    return _installed(request.param, require)


@pytest.fixture(params=["go_wrong_code", "js_wrong_code"])
def foreign(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """One for each language that is not Python."""
    return _installed(request.param, require)


@pytest.fixture(params=sorted(name for name, told in EXPECTED.items() if told["triage"] == "code"))
def mendable(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """Those whose code is at fault."""
    return _installed(request.param, require)
