"""A process is killed right after an event and another one resumes: no reply is paid twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scenario.killing_ledger import WITH_HELPERS, DeadlyLedger
from suture.api import ReviewAnswer, WriteOptions, fork_from_iteration, resume, solve
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import BudgetSettings, LoopSettings, PathSettings, RepairSettings, Settings
from suture.models import Message, Reply, Sampling

pytestmark = pytest.mark.heavy

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"
APPROVED = ReviewAnswer(choice="approve")


class Paid:
    """Answers by what it is asked, not by how often, and writes each call that it is paid for to a file."""

    name = "scripted:paid"

    def __init__(self, log: Path) -> None:
        self._log = log

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        asked = messages[-1].content
        call = [[message.content for message in messages], sampling.temperature, sampling.index]
        with self._log.open("a") as log:
            log.write(json.dumps(call) + "\n")
        text = RIGHT if "n + 2" in asked else WRONG if sampling.temperature == 0 else WRONG_TOO
        return Reply(text=text, prompt_tokens=50, completion_tokens=20, model=self.name)

    async def close(self) -> None:
        pass


def settings_at(home: Path) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        repair=RepairSettings(enabled=False),
        budget=BudgetSettings(attempts=8, seconds=100),
        loop=LoopSettings(samples=2, autonomy="review_repairs"),
    )


def victim(home: str, kind: str, count: str, run: str) -> None:
    """What the killed process does: a run, or a fork of one."""
    settings, model = settings_at(Path(home)), Paid(Path(home).parent / "calls.jsonl")
    DeadlyLedger(kind, int(count)).arm()
    if run:
        asyncio.run(fork_from_iteration(run, 1, settings=settings, model=model))
    else:
        asyncio.run(
            solve(TASK, WriteOptions(settings=settings, model=model, on_review=lambda review: APPROVED))
        )


def kill_after(home: Path, kind: str, count: int, run: str = "") -> list[str]:
    """Run the victim until it is killed; answers what its ledger held then, by kind."""
    process = subprocess.run(
        [sys.executable, __file__, str(home), kind, str(count), run],
        cwd=home.parent,
        env=WITH_HELPERS,
        timeout=100,
    )
    assert process.returncode == -signal.SIGKILL
    kinds = [event.kind for event in read_ledger(find_run(home, "last").ledger_path).events]
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
async def test_a_killed_run_continues_and_pays_nothing_twice(tmp_path: Path, kind: str, count: int) -> None:
    home, log = tmp_path / "home", tmp_path / "calls.jsonl"
    settings = settings_at(home)
    kinds = kill_after(home, kind, count)
    done = await resume("last", settings=settings, model=Paid(log), on_review=lambda review: APPROVED)
    assert done.outcome == "healed", done.reason
    assert done.candidate is not None
    assert "n + n" in done.candidate.files["solution.py"]
    paid = log.read_text().splitlines()
    assert len(set(paid)) == len(paid) == 5
    assert done.spend.attempts == 5  # what was under way is booked once, as it is paid once
    events = read_ledger(find_run(home, "last").ledger_path).events
    assert [event.kind for event in events][: len(kinds)] == kinds
    assert [event.kind for event in events].count("review.answered") == 1


async def test_a_killed_fork_continues_from_where_it_began(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "calls.jsonl"
    settings = settings_at(home)
    first = await solve(
        TASK, WriteOptions(settings=settings, model=Paid(log), on_review=lambda review: APPROVED)
    )
    paid = log.read_text()
    kill_after(home, "moves.decided", 2, first.run_id)  # the first it took over
    done = await resume("last", settings=settings, model=Paid(log), on_review=lambda review: APPROVED)
    assert (done.outcome, done.diff) == ("healed", first.diff)
    assert log.read_text() == paid


if __name__ == "__main__":
    victim(*sys.argv[1:])
