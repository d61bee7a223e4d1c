"""A process is killed right after an event and another one resumes: no reply is paid for twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from run_events import read_events
from scenario.killing_ledger import ENV_WITH_TEST_PATH, DeadlyLedger
from suture.api import ReviewAnswer, WriteOptions, fork_from_iteration, resume, solve
from suture.core.settings import BudgetSettings, LoopSettings, PathSettings, RepairSettings, Settings
from suture.models import Message, Reply, Sampling

pytestmark = pytest.mark.heavy

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
APPROVED = ReviewAnswer(choice="approve")


class PaidModel:
    """Answer by the content of the prompt, and log each paid call to a file."""

    name = "scripted:paid"

    def __init__(self, log: Path) -> None:
        self._log = log

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        prompt = messages[-1].content
        call = [[message.content for message in messages], sampling.temperature, sampling.index]
        with self._log.open("a") as log:
            log.write(json.dumps(call) + "\n")
        text = RIGHT if "n + 2" in prompt else WRONG if sampling.temperature == 0 else WRONG_TOO
        return Reply(text=text, prompt_tokens=50, completion_tokens=20, model=self.name)

    async def close(self) -> None:
        pass


def make_settings(home: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        repair=RepairSettings(enabled=False),
        budget=BudgetSettings(attempts=8, seconds=100),
        loop=LoopSettings(samples=2, autonomy="review_repairs"),
    )


def run_victim(home: str, kind: str, count: str, run: str) -> None:
    """Start a run, or a fork of the given run, in the process that is going to be killed."""
    settings, model = make_settings(Path(home)), PaidModel(Path(home).parent / "calls.jsonl")
    DeadlyLedger(kind, int(count)).arm()
    if run:
        asyncio.run(fork_from_iteration(run, 1, settings=settings, model=model))
    else:
        asyncio.run(
            solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED))
        )


def kill_after(home: Path, kind: str, count: int, run: str = "") -> list[str]:
    """Run the victim until it is killed, and return the kinds of the events in its ledger."""
    process = subprocess.run(
        [sys.executable, __file__, str(home), kind, str(count), run],
        cwd=home.parent,
        env=ENV_WITH_TEST_PATH,
        timeout=100,
    )
    assert process.returncode == -signal.SIGKILL
    kinds = [event.kind for event in read_events(home)]
    assert kinds[-1] == kind
    return kinds


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("run.started", 1),
        ("moves.decided", 2),
        ("budget.reserved", 1),
        ("model.called", 2),
        ("candidate.proposed", 2),
        ("candidate.checked", 2),
        ("review.asked", 1),
        ("review.answered", 1),
    ],
)
async def test_a_killed_run_resumes_and_pays_nothing_twice(tmp_path: Path, kind: str, count: int) -> None:
    home, log = tmp_path / "home", tmp_path / "calls.jsonl"
    settings = make_settings(home)
    kinds = kill_after(home, kind, count)

    resumed = await resume("last", settings=settings, model=PaidModel(log), on_review=lambda review: APPROVED)

    assert resumed.outcome == "healed", resumed.reason
    assert resumed.candidate is not None
    assert "n + n" in resumed.candidate.files["solution.py"]
    paid = log.read_text().splitlines()
    assert len(set(paid)) == len(paid) == 5
    assert resumed.spend.attempts == 5  # the attempt in progress is counted once, as it is paid for once
    events = read_events(home)
    assert [event.kind for event in events][: len(kinds)] == kinds
    assert [event.kind for event in events].count("review.answered") == 1


async def test_a_killed_fork_resumes_from_its_first_step(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "calls.jsonl"
    settings = make_settings(home)
    first = await solve(
        TASK, WriteOptions(settings=settings, model=PaidModel(log), on_review=lambda review: APPROVED)
    )
    paid = log.read_text()
    kill_after(home, "moves.decided", 2, first.run_id)  # the first decision is copied from the original run

    resumed = await resume("last", settings=settings, model=PaidModel(log), on_review=lambda review: APPROVED)

    assert (resumed.outcome, resumed.diff) == ("healed", first.diff)
    assert log.read_text() == paid


if __name__ == "__main__":
    run_victim(*sys.argv[1:])
