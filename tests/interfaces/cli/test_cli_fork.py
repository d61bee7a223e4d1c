"""`suture history`, `suture show --at` and `suture fork`, each in its own process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # up to ten processes
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
TASK = "Write double(n), which doubles a number. For example:\n\n>>> double(4)\n8\n>>> double(0)\n0\n"


@pytest.fixture
def first(suture: Suture, script: Script, home: Path) -> str:
    """A run that is right at its second step; answers its id."""
    model = script(WRONG, {"text": RIGHT, "repeat": True})
    done = suture("run", TASK, "--model", model, "--set", "loop.samples=1")
    assert done.returncode == 0, done.stderr
    (folder,) = home.glob("runs/*")
    return folder.name


@pytest.mark.heavy
def test_an_earlier_step_is_shown_and_forked(
    suture: Suture, script: Script, first: str, tmp_path: Path
) -> None:
    shown = suture("show", first, "--at", "1")
    assert shown.returncode == 0, shown.stderr
    assert "return n * n" in shown.stdout
    assert "1 of 2 checks pass" in shown.stdout
    told = json.loads(suture("show", first, "--at", "0", "--json").stdout)
    assert (told["best"], told["last_step"], told["spend"]["attempts"]) == (None, 2, 0)
    assert suture("show", first, "--at", "9").returncode == 2

    own = tmp_path / "mine.py"
    own.write_text("def double(n):\n    return n + n\n")
    forked = suture("fork", first, "--at", "1", "--candidate", str(own))
    assert (forked.returncode, forked.stdout) == (0, own.read_text()), forked.stderr
    assert f"Continues from step 1 of run {first}." in forked.stderr
    again = suture("fork", first, "--at", "1", "--set", "loop.recipe=greedy", "--hint", "twice")
    assert again.returncode == 1, again.stderr
    assert suture("fork", first, "--at", "1", "--set", "loop.recipe=greed").returncode == 2

    runs = json.loads(suture("history", "--json").stdout)
    assert [run["fork_at"] for run in runs if run["outcome"] != "error"] == [1, 1, None]
    assert (runs[-1]["run"], runs[-1]["outcome"], runs[-1]["recipe"]) == (first, "healed", "adaptive")
    table = suture("history", "--limit", "1")
    assert len(table.stdout.splitlines()) == 2
    assert "older runs are not listed" in table.stderr


def test_no_runs_yet(suture: Suture) -> None:
    done = suture("history")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(suture("history", "--json").stdout) == []
