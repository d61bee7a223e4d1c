"""`suture replay`, `--replies` and `suture resume`, each in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script, Suture
from interfaces.cli.double_task import CORRECT_REPLY, TASK, WRONG_REPLY

pytestmark = [
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.timeout(300),  # a test starts up to five processes
]

HANGING_PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from suture.api import WriteOptions, solve
from suture.models import Reply
from suture.core.settings import PathSettings, Settings

class HangingModel:
    '''A model that answers once and then hangs.'''
    name, calls = sys.argv[2], 0

    async def complete(self, messages, sampling):
        self.calls += 1
        if self.calls > 1:
            print("hanging", flush=True)
            await asyncio.sleep(600)
        return Reply(text=sys.argv[3], prompt_tokens=50, completion_tokens=20, model=self.name)

    async def close(self):
        pass

settings = Settings(paths=PathSettings(home=Path(sys.argv[1])))
asyncio.run(solve(sys.argv[4], WriteOptions(settings=settings, model=HangingModel())))
"""


def test_a_run_replays_without_its_script(suture: Suture, script: Script, tmp_path: Path) -> None:
    model = script(WRONG_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY)
    assert suture("run", TASK, "--model", model).returncode == 0

    (tmp_path / "script.json").unlink()
    result = suture("replay")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("same: ")
    assert "0 model calls" in result.stderr

    comparison = json.loads(suture("replay", "--json").stdout)
    assert (comparison["same"], comparison["difference"], comparison["model_calls"]) == (True, None, 0)


@pytest.mark.heavy
def test_a_replay_that_differs_says_where_and_exits_1(suture: Suture, script: Script, home: Path) -> None:
    assert (
        suture(
            "run",
            TASK,
            "--model",
            script(WRONG_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY),
        ).returncode
        == 0
    )

    (ledger,) = home.glob("runs/*/ledger.jsonl")
    ledger.write_text(ledger.read_text().replace('"passed":1', '"passed":7'))
    result = suture("replay")
    assert result.returncode == 1
    assert result.stdout.startswith("different: event ")
    assert "candidate.checked, passed: 7 | 1" in result.stdout


@pytest.mark.heavy
def test_a_run_can_use_the_recorded_replies_of_another(
    suture: Suture, script: Script, tmp_path: Path
) -> None:
    model = script(WRONG_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY, CORRECT_REPLY)
    assert suture("run", TASK, "--model", model).returncode == 0

    (tmp_path / "script.json").unlink()
    result = suture("run", TASK, "--model", model, "--replies", "last")
    assert result.returncode == 0, result.stderr
    assert "tokens (recorded): " in result.stderr

    without_record = suture("run", TASK + "Quickly.", "--model", model, "--replies", "last")
    assert without_record.returncode == 2
    assert "--or-live" in without_record.stderr


def test_a_killed_run_resumes_without_repeating_a_model_call(
    suture: Suture, script: Script, home: Path, tmp_path: Path
) -> None:
    model = script(CORRECT_REPLY)
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_PROGRAM, str(home), model, WRONG_REPLY, TASK],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hanging\n"
        os.killpg(process.pid, signal.SIGKILL)
    (ledger,) = home.glob("runs/*/ledger.jsonl")
    before = ledger.read_text()
    assert '"run.finished"' not in before
    assert "stopped" in suture("show", "--list").stdout

    script(CORRECT_REPLY, {"text": CORRECT_REPLY, "repeat": True})
    result = suture("resume", "last")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "def double(n):\n    return 2 * n\n"

    after = ledger.read_text()
    assert after.startswith(before)
    assert after.count('"run.started"') == after.count('"run.resumed"') == after.count('"run.finished"') == 1
    assert after.count('"label":"sample 1, greedy"') == before.count('"label":"sample 1, greedy"')
    assert suture("resume", "last").returncode == 2


def test_resume_refuses_a_run_in_progress(suture: Suture, script: Script, home: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING_PROGRAM, str(home), script(CORRECT_REPLY), WRONG_REPLY, TASK],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        result = suture("resume", "last")
        os.killpg(process.pid, signal.SIGKILL)

    assert result.returncode == 2
    assert "another process" in result.stderr
