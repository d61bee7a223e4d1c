"""Fixtures: each test gets its own home, so that no test reads or changes a run of the developer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from interfaces.cli.forked_suture import ForkedSuture, forked_suture
from suture.interfaces.cli.app import app

ROOT = Path(__file__).parents[3]

Cli = Callable[..., Result]
Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
ReadFiles = Callable[[Path], dict[str, bytes]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Create the folder in which Suture stores its runs."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a command, which takes only PATH from the developer."""
    return {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "SUTURE_HOME": str(home),
        "SUTURE_REPAIR_ENABLED": "false",  # these tests need the model's replies to decide
        "SUTURE_PATHS_CACHE": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def commands_with_bare_python(environ: dict[str, str], bare_python: Path) -> None:
    """Let commands run the tests of projects with only pytest, whose plugins take longer to load than such tests."""
    environ["VIRTUAL_ENV"] = str(bare_python)


@pytest.fixture
def cli(environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Return a function that runs a command in this process: `cli("show", "last")`."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name not in environ:
            monkeypatch.delenv(name)

    def call(*arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, env={**environ, **(env or {})})

    return call


@pytest.fixture(scope="session")
def forked_program() -> Iterator[ForkedSuture]:
    """Start the process that has imported the program and is forked for each command."""
    with forked_suture() as program:
        yield program


@pytest.fixture
def suture(
    environ: dict[str, str], tmp_path: Path, forked_program: ForkedSuture, self_tested_cache: Path
) -> Suture:
    """Return a function that runs a command in its own process."""
    shutil.copytree(self_tested_cache, environ["SUTURE_PATHS_CACHE"], dirs_exist_ok=True)

    def call(
        *arguments: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return forked_program(
            arguments,
            stdin=stdin or "",
            env={**environ, **(env or {})},
            cwd=cwd or tmp_path,
            timeout_s=300,  # the time limit of the test ends a command earlier
        )

    return call


@pytest.fixture(scope="session")
def sandbox_problems() -> list[str]:
    """Return the reasons why this machine cannot start a sandbox."""
    from requirements import find_bubblewrap

    finding = find_bubblewrap()
    return [] if finding.ok else [f"{finding.name}: {finding.detail}"]


@pytest.fixture
def sandbox(require: Callable[[str, bool, str], None], sandbox_problems: list[str]) -> None:
    """Skip the test where no sandbox can start."""
    require("bubblewrap", not sandbox_problems, "; ".join(sandbox_problems))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a function that writes scripted replies and returns the name of their model."""

    def write(*replies: Any) -> str:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(list(replies)))
        return f"scripted:{path}"

    return write


@pytest.fixture
def broken_project(tmp_path: Path) -> Path:
    """Copy `examples/broken` into the test's folder."""
    project = tmp_path / "broken"
    shutil.copytree(ROOT / "examples" / "broken", project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return project


@pytest.fixture
def fixing_reply() -> str:
    """Return the model reply that fixes `broken_project`."""
    fix = tomllib.loads((ROOT / "tests" / "examples" / "fixes.toml").read_text())["broken"]
    text = (ROOT / "examples" / "broken" / fix["file"]).read_text()
    return f"```python\n{text.replace(fix['wrong'], fix['right'])}```"


@pytest.fixture
def read_files() -> ReadFiles:
    """Return a function that reads every file of a folder, to compare it before and after."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    return read
