"""Small projects with seeded faults, whose own tests run only in the sandbox."""

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
    """Return the expected result of a project, and its folder."""
    return {"root": HERE / "projects" / name, "name": name, **EXPECTED[name]}


def load_project(name: str, require: Require) -> dict[str, Any]:
    expectation = project(name)
    if tool := expectation.get("needs"):
        require(tool, shutil.which(tool) is not None, "it is not on PATH")
    return expectation


@pytest.fixture(params=sorted(EXPECTED))
def expected(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """Each project in turn."""
    return load_project(request.param, require)


@pytest.fixture(params=["go_wrong_code", "js_wrong_code"])
def foreign_project(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """One project for each language other than Python."""
    return load_project(request.param, require)


@pytest.fixture(
    params=sorted(name for name, expectation in EXPECTED.items() if expectation["triage"] == "code")
)
def repairable(request: pytest.FixtureRequest, require: Require) -> dict[str, Any]:
    """Each project whose code is at fault."""
    return load_project(request.param, require)
