"""Shell completion, requested as a shell does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def completed(environ: dict[str, str], line: str) -> str:
    words = line.split(" ")
    asked = {"_SUTURE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [str(Path(sys.executable).with_name("suture"))]
    return subprocess.run(command, env={**environ, **asked}, capture_output=True, text=True).stdout


def test_a_shell_is_told_commands_and_flags(environ: dict[str, str]) -> None:
    assert "heal" in completed(environ, "suture he").split()
    assert completed(environ, "suture heal --no-m").split() == ["--no-model"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_reads(environ: dict[str, str], shell: str) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", shell]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"complete_{shell}" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)


def test_another_shell_is_an_error(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "suture.interfaces.cli", "completion", "csh"]
    assert subprocess.run(command, env=environ, capture_output=True).returncode == 2
