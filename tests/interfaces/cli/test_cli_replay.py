"""`suture replay`, `--replies` and `suture resume`, each in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]  # up to five processes
RIGHT = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG = "```python\ndef double(n):\n    return n\n```"
TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"

STUCK = """
import asyncio, os, sys
from pathlib import Path
from suture.api import WriteOptions, solve
from suture.models import Reply
from suture.core.settings import PathSettings, Settings

class Stuck:
    '''A model that answers once and then hangs.'''
    name, calls = sys.argv[2], 0

    async def complete(self, messages, sampling):
        self.calls += 1
        if self.calls > 1:
            print("stuck", flush=True)
            await asyncio.sleep(600)
        return Reply(text=sys.argv[3], prompt_tokens=50, completion_tokens=20, model=self.name)

    async def close(self):
        pass

settings = Settings(paths=PathSettings(home=Path(sys.argv[1])))
asyncio.run(solve(sys.argv[4], WriteOptions(settings=settings, model=Stuck())))
"""


def test_a_run_replays_without_its_script(suture: Suture, script: Script, tmp_path: Path) -> None:
    model = script(WRONG, RIGHT, RIGHT, RIGHT, RIGHT)
    assert suture("run", TASK, "--model", model).returncode == 0
    (tmp_path / "script.json").unlink()
    done = suture("replay")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("same: ")
    assert "0 model calls" in done.stderr
    told = json.loads(suture("replay", "--json").stdout)
    assert (told["same"], told["difference"], told["model_calls"]) == (True, None, 0)


@pytest.mark.heavy
def test_a_replay_that_differs_says_where_and_exits_1(suture: Suture, script: Script, home: Path) -> None:
    assert suture("run", TASK, "--model", script(WRONG, RIGHT, RIGHT, RIGHT, RIGHT)).returncode == 0
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    ledger.write_text(ledger.read_text().replace('"passed":1', '"passed":7'))
    done = suture("replay")
    assert done.returncode == 1
    assert done.stdout.startswith("different: event ")
    assert "candidate.checked, passed: 7 | 1" in done.stdout


@pytest.mark.heavy
def test_a_run_is_answered_from_the_record_of_another(suture: Suture, script: Script, tmp_path: Path) -> None:
    model = script(WRONG, RIGHT, RIGHT, RIGHT, RIGHT)
    assert suture("run", TASK, "--model", model).returncode == 0
    (tmp_path / "script.json").unlink()
    done = suture("run", TASK, "--model", model, "--replies", "last")
    assert done.returncode == 0, done.stderr
    assert "tokens (recorded): " in done.stderr
    missing = suture("run", TASK + "Quickly.", "--model", model, "--replies", "last")
    assert missing.returncode == 2
    assert "--or-live" in missing.stderr


def test_a_killed_run_resumes_and_pays_no_reply_twice(
    suture: Suture, script: Script, home: Path, tmp_path: Path
) -> None:
    model = script(RIGHT)
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(home), model, WRONG, TASK],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"stuck\n"
        os.killpg(process.pid, signal.SIGKILL)
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    before = ledger.read_text()
    assert '"run.finished"' not in before
    assert "stopped" in suture("show", "--list").stdout
    script(RIGHT, {"text": RIGHT, "repeat": True})
    done = suture("resume", "last")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "def double(n):\n    return 2 * n\n"
    after = ledger.read_text()
    assert after.startswith(before)
    assert after.count('"run.started"') == after.count('"run.resumed"') == after.count('"run.finished"') == 1
    assert after.count('"label":"sample 1, greedy"') == before.count('"label":"sample 1, greedy"')
    assert suture("resume", "last").returncode == 2


def test_a_running_run_is_left_alone(suture: Suture, script: Script, home: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(home), script(RIGHT), WRONG, TASK],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        done = suture("resume", "last")
        os.killpg(process.pid, signal.SIGKILL)
    assert done.returncode == 2
    assert "another process" in done.stderr
