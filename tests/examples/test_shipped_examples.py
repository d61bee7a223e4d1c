"""Each example fails as shipped and passes with its reference fix."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.heavy

EXAMPLES = Path(__file__).parents[2] / "examples"
FIXES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("fixes.toml").read_text())


def run_suite(project: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env=environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def read_count(word: str, output: str) -> int:
    found = re.search(rf"(\d+) {word}", output)
    return int(found[1]) if found else 0


@pytest.fixture(params=sorted(FIXES))
def example(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    project = tmp_path / request.param
    shutil.copytree(EXAMPLES / request.param, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return project, FIXES[request.param]


def test_an_example_fails_as_shipped(example: tuple[Path, dict[str, Any]]) -> None:
    project, fix = example
    result = run_suite(project)

    assert result.returncode in (1, 2), result.stdout + result.stderr
    assert (read_count("passed", result.stdout), read_count("failed", result.stdout)) == (
        fix["passing"],
        fix["failing"],
    )


def test_the_reference_fix_repairs_an_example(example: tuple[Path, dict[str, Any]]) -> None:
    project, fix = example
    broken = project / fix["file"]
    text = broken.read_text()

    assert text.count(fix["wrong"]) == 1
    broken.write_text(text.replace(fix["wrong"], fix["right"]))
    result = run_suite(project)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_example_has_a_page_that_names_its_command() -> None:
    pages = {path.parent.name: path.read_text() for path in EXAMPLES.glob("*/README.md")}
    assert pages.keys() == FIXES.keys() | {"merge_intervals"}
    assert all(f"examples/{name}/" in page for name, page in pages.items())
