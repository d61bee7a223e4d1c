"""Shell completion answers requests as a shell sends them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def complete(environ: dict[str, str], line: str) -> str:
    """Return the completions of a command line."""
    words = line.split(" ")
    completion_environ = {
        "_SUTURE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [str(Path(sys.executable).with_name("suture"))]
    return subprocess.run(
        command, env={**environ, **completion_environ}, capture_output=True, text=True
    ).stdout


def test_completion_offers_commands_and_options(environ: dict[str, str]) -> None:
    assert "heal" in complete(environ, "suture he").split()
    assert complete(environ, "suture heal --no-m").split() == ["--no-model"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_valid(environ: dict[str, str], shell: str) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", shell]
    result = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert f"complete_{shell}" in result.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=result.stdout, text=True, check=True)


def test_an_unknown_shell_is_an_error(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", "csh"]
    assert subprocess.run(command, env=environ, capture_output=True).returncode == 2
