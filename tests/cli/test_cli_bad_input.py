"""Bad input is one line, a remedy, the documented exit code, and files that stay as they are."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = pytest.mark.usefixtures("sandbox")
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "no task"),
        (["run", ""], "empty"),
        (["run", "-"], "empty"),
        (["run", "x", "--example"], "--example"),
        (["run", TASK, "--test", "nowhere.py"], "nowhere.py"),
        (["run", TASK, "--set", "loop.sample=1"], "loop.sample"),
        (["run", TASK, "--recipe", "gready"], "greedy"),
        (["run", TASK, "--attempts", "0"], "budget.attempts"),
        (["heal", "nowhere"], "nowhere"),
        (["heal", "empty"], "Python"),
        (["heal", "untested"], "no tests"),
        (["heal", "untested/notes.txt"], "Python"),
        (["heal", "untested", "--test", "no-such-program --now"], "no-such-program"),
        (["heal", "untested", "--test", ""], "test"),
        (["show", "last"], "no runs"),
        (["models", "path", "unknown"], "unknown"),
    ],
)
def test_bad_input_is_one_line_with_a_remedy(
    suture: Suture, script: Script, tmp_path: Path, arguments: list[str], words: str, files_of: FilesOf
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "untested").mkdir()
    (tmp_path / "untested" / "code.py").write_text("x = 1\n")
    (tmp_path / "untested" / "notes.txt").write_text("words\n")
    before = files_of(tmp_path / "untested")
    model = ["--model", script(RIGHT)] if arguments[0] in ("run", "heal") else []
    done = suture(*arguments, *model)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert words in errors[0] + done.stderr
    assert "Traceback" not in done.stderr
    assert files_of(tmp_path / "untested") == before


def test_a_missing_model_is_a_missing_prerequisite(suture: Suture) -> None:
    done = suture("run", TASK)
    assert done.returncode == 3
    assert "suture models pull" in done.stderr
    assert suture("models", "path", "qwen2.5-coder-1.5b").returncode == 3
