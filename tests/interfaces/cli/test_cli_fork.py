"""`suture history`, `suture show --at` and `suture fork`, each in its own process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script, Suture
from interfaces.cli.double_task import CORRECT_REPLY

pytestmark = [
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.timeout(300),  # a test starts up to ten processes
]
WRONG_REPLY = "```python\ndef double(n):\n    return n * n\n```"
TASK = "Write double(n), which doubles a number. For example:\n\n>>> double(4)\n8\n>>> double(0)\n0\n"


@pytest.fixture
def finished_run(suture: Suture, script: Script, home: Path) -> str:
    """Start a run that is healed in its second step, and return its id."""
    model = script(WRONG_REPLY, {"text": CORRECT_REPLY, "repeat": True})
    result = suture("run", TASK, "--model", model, "--set", "loop.samples=1")
    assert result.returncode == 0, result.stderr
    (folder,) = home.glob("runs/*")
    return folder.name


@pytest.mark.heavy
def test_an_earlier_step_can_be_shown_and_forked(
    suture: Suture, script: Script, finished_run: str, tmp_path: Path
) -> None:
    show = suture("show", finished_run, "--at", "1")
    assert show.returncode == 0, show.stderr
    assert "return n * n" in show.stdout
    assert "1 of 2 checks pass" in show.stdout
    step = json.loads(suture("show", finished_run, "--at", "0", "--json").stdout)
    assert (step["best"], step["last_step"], step["spend"]["attempts"]) == (None, 2, 0)
    assert suture("show", finished_run, "--at", "9").returncode == 2

    own_candidate = tmp_path / "mine.py"
    own_candidate.write_text("def double(n):\n    return n + n\n")
    fork = suture("fork", finished_run, "--at", "1", "--candidate", str(own_candidate))
    assert (fork.returncode, fork.stdout) == (0, own_candidate.read_text()), fork.stderr
    assert f"Continues from step 1 of run {finished_run}." in fork.stderr
    second_fork = suture("fork", finished_run, "--at", "1", "--set", "loop.recipe=greedy", "--hint", "twice")
    assert second_fork.returncode == 1, second_fork.stderr
    assert suture("fork", finished_run, "--at", "1", "--set", "loop.recipe=greed").returncode == 2

    runs = json.loads(suture("history", "--json").stdout)
    assert [run["fork_at"] for run in runs if run["outcome"] != "error"] == [1, 1, None]
    assert (runs[-1]["run"], runs[-1]["outcome"], runs[-1]["recipe"]) == (finished_run, "healed", "adaptive")
    table = suture("history", "--limit", "1")
    assert len(table.stdout.splitlines()) == 2
    assert "older runs are not listed" in table.stderr


def test_history_without_runs_is_empty(suture: Suture) -> None:
    result = suture("history")
    assert (result.returncode, result.stdout) == (0, "")
    assert json.loads(suture("history", "--json").stdout) == []
