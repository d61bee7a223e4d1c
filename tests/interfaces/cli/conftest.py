"""Fixtures: each test gets its own home, so that no run of the developer is read or changed."""

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

from bare_pytest import bare_environment
from interfaces.cli.forked_suture import ForkedSuture, forked_suture
from suture.interfaces.cli.app import app

ROOT = Path(__file__).parents[3]

Cli = Callable[..., Result]
Suture = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where runs are kept."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a command: nothing of the tester's but PATH."""
    return {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "SUTURE_HOME": str(home),
        "SUTURE_REPAIR_ENABLED": "false",  # the models are what is tested here
        "SUTURE_PATHS_CACHE": str(tmp_path / "cache"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def cli(environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Call a command in this process: `cli("show", "last")`."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name not in environ:
            monkeypatch.delenv(name)

    def call(*arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, env={**environ, **(env or {})})

    return call


@pytest.fixture(scope="session")
def forked() -> Iterator[ForkedSuture]:
    """A process that has imported the program, for all tests."""
    with forked_suture() as opened:
        yield opened


@pytest.fixture
def suture(environ: dict[str, str], tmp_path: Path, forked: ForkedSuture, self_tested_cache: Path) -> Suture:
    """Call a command as a process of its own."""
    shutil.copytree(self_tested_cache, environ["SUTURE_PATHS_CACHE"], dirs_exist_ok=True)

    def call(
        *arguments: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return forked(
            arguments,
            stdin=stdin or "",
            env={**environ, **(env or {})},
            cwd=cwd or tmp_path,
            timeout_s=300,  # the time limit of the test is the limit
        )

    return call


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pytest and no more."""
    return bare_environment(tmp_path_factory.mktemp("bare") / "environment")


@pytest.fixture(scope="session")
def diagnosis() -> list[str]:
    """What is missing for a sandbox."""
    from requirements import find_bubblewrap

    finding = find_bubblewrap()
    return [] if finding.ok else [f"{finding.name}: {finding.detail}"]


@pytest.fixture
def sandbox(require: Callable[[str, bool, str], None], diagnosis: list[str]) -> None:
    """Skip where there is no sandbox."""
    require("bubblewrap", not diagnosis, "; ".join(diagnosis))


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Write a script; answers the name of its model."""

    def write(*replies: Any) -> str:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(list(replies)))
        return f"scripted:{path}"

    return write


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A copy of `examples/broken`."""
    project = tmp_path / "broken"
    shutil.copytree(ROOT / "examples" / "broken", project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return project


@pytest.fixture
def fixing_reply() -> str:
    """The reply that fixes `broken`."""
    fix = tomllib.loads((ROOT / "tests" / "examples" / "fixes.toml").read_text())["broken"]
    text = (ROOT / "examples" / "broken" / fix["file"]).read_text()
    return f"```python\n{text.replace(fix['wrong'], fix['right'])}```"


@pytest.fixture
def files_of() -> Callable[[Path], dict[str, bytes]]:
    """`files_of(folder)`: every file in it, for comparing before and after."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    return read
