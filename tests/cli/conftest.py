"""A home of its own for each test, so that no run of the person who tests is seen or touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from suture.cli.app import app

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


@pytest.fixture
def suture(environ: dict[str, str], tmp_path: Path) -> Suture:
    """Call a command as a process of its own."""

    def call(
        *arguments: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "suture.cli", *arguments],
            input=stdin or "",
            env={**environ, **(env or {})},
            cwd=cwd or tmp_path,
            capture_output=True,
            text=True,
            timeout=110,
        )

    return call
