"""A small model that calls tools works in a conversation when no repair of the shown files passes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from project_files import write_files
from run_events import read_events
from scenario.killing_ledger import ENV_WITH_TEST_PATH, DeadlyLedger
from suture.api import HealOptions, heal, resume
from suture.core.ledger import select_events
from suture.core.ledger.kinds import AgentStepped, CandidateProposed
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    LoopSettings,
    PathSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.core.settings.schema import ModelSettings, ProfileSettings
from suture.models import Message, Reply, Sampling, ToolCall

# The table is too long for a prompt, and no traceback names its file.
RATES = "".join(f'    "kind {n}": 0.{n:04},  # as of the tariff\'s page {n}\n' for n in range(1, 301))
FILES = {
    "shop/__init__.py": "",
    "shop/rates.py": 'RATES = {\n    "food": 0.7,\n' + RATES + "}\n",
    "shop/prices.py": """from shop.rates import RATES


def gross(net, kind):
    return net * RATES[kind]
""",
    "shop/receipt.py": """from shop.prices import gross


def line(items, kind):
    return "total " + sum(gross(item, kind) for item in items)
""",
    "tests/__init__.py": "",
    "tests/test_receipt.py": """import unittest

from shop.receipt import line


class ReceiptTest(unittest.TestCase):
    def test_line(self):
        self.assertEqual(line([100, 200], "food"), "total 321.00")
""",
}
REPAIRS = {
    "shop/prices.py": ("return net * RATES[kind]", "return net * (1 + RATES[kind])"),
    "shop/receipt.py": (
        'return "total " + sum(gross(item, kind) for item in items)',
        'return f"total {sum(gross(item, kind) for item in items):.2f}"',
    ),
    "shop/rates.py": ('"food": 0.7,', '"food": 0.07,'),
}

STEPS = 6
"""Reading and editing each of the three files. The tests run by themselves."""


class RepairingModel:
    """Repair every wrong line that a prompt contains. With tools, read and edit one file after the other."""

    name = "scripted:reader"

    def __init__(self, log: Path) -> None:
        self._log = log

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        with self._log.open("a") as log:
            log.write(
                json.dumps([[message.content for message in messages], sampling.temperature, sampling.index])
                + "\n"
            )
        prompt = "\n".join(message.content for message in messages if message.role in ("user", "tool"))
        reply = Reply(text="", prompt_tokens=50, completion_tokens=20, model=self.name)
        if not sampling.tools:
            return replace(reply, text=self._repair(prompt))
        step = sum(message.role == "assistant" for message in messages)
        return replace(reply, tool_calls=(self._call_tool(prompt, step),))

    async def close(self) -> None:
        pass

    def _repair(self, prompt: str) -> str:
        paths = [path for path, (wrong, _) in REPAIRS.items() if wrong in prompt]
        return "\n".join(
            f"### {path}\n```python\n{FILES[path].replace(*REPAIRS[path])}```\n" for path in paths
        )

    def _call_tool(self, prompt: str, step: int) -> ToolCall:
        position, is_edit = divmod(step, 2)
        path = list(REPAIRS)[position]
        if not is_edit:
            return ToolCall(id=f"call-{step}", name="read_file", arguments={"path": path})
        wrong, right = REPAIRS[path]
        assert wrong in prompt
        arguments = {"path": path, "old_str": wrong, "new_str": right}
        return ToolCall(id=f"call-{step}", name="edit", arguments=arguments)


def make_settings(home: Path, *, tools: bool = True, recipe: str = "adaptive") -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        repair=RepairSettings(enabled=False),
        certification=CertificationSettings(seconds=0, mutants=0),
        sandbox=SandboxSettings(test_timeout_s=5),
        model=ModelSettings(profile=ProfileSettings(tools=tools)),
        budget=BudgetSettings(attempts=12, seconds=200, tokens=2_000_000),
        loop=LoopSettings(recipe=recipe),
    )


def write_project(folder: Path) -> Path:
    return write_files(folder, FILES)


async def run_heal(folder: Path, *, tools: bool = True, recipe: str = "adaptive") -> Result:
    settings = make_settings(folder / "home", tools=tools, recipe=recipe)
    return await heal(
        write_project(folder / "project"),
        HealOptions(
            test="python -m unittest", settings=settings, model=RepairingModel(folder / "calls.jsonl")
        ),
    )


async def run_resume(folder: Path, *, recipe: str = "adaptive") -> Result:
    settings = make_settings(folder / "home", recipe=recipe)
    return await resume("last", settings=settings, model=RepairingModel(folder / "calls.jsonl"))


async def test_an_agent_takes_over_when_repairs_fail(tmp_path: Path) -> None:
    result = await run_heal(tmp_path)

    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) == set(REPAIRS)
    events = read_events(tmp_path / "home")
    origins = [proposed.origin for _, proposed in select_events(events, CandidateProposed)]
    assert set(origins[:-1]) == {"repair"}, origins
    assert [step.tools for _, step in select_events(events, AgentStepped)] == [("read_file",), ("edit",)] * 3


async def test_the_same_model_fails_with_repairs_alone_and_heals_as_an_agent(tmp_path: Path) -> None:
    repaired = await run_heal(tmp_path / "repairs", recipe="always_repair")

    assert (repaired.outcome, repaired.spend.attempts) == ("budget_exhausted", 12)
    events = read_events(tmp_path / "repairs" / "home")
    written_files = {proposed.files for _, proposed in select_events(events, CandidateProposed)}
    # The model repaired the two files that it saw. No prompt contains the third one.
    assert ("shop/prices.py", "shop/receipt.py") in written_files
    assert not any("shop/rates.py" in files for files in written_files)
    prompts = (tmp_path / "repairs" / "calls.jsonl").read_text()
    assert "net * RATES[kind]" in prompts
    assert REPAIRS["shop/rates.py"][0] not in prompts.replace('\\"', '"')

    agent = await run_heal(tmp_path / "agent", recipe="agent")
    assert agent.outcome == "healed", agent.reason
    assert agent.candidate is not None
    assert set(agent.candidate.files) == set(REPAIRS)


async def test_a_model_without_tools_never_runs_as_an_agent(tmp_path: Path) -> None:
    result = await run_heal(tmp_path, tools=False)
    assert result.outcome == "stuck", result.reason
    events = read_events(tmp_path / "home")
    assert not list(select_events(events, AgentStepped))


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "count"), [("agent.stepped", 1), ("model.called", 6), ("agent.stepped", 5)])
async def test_a_run_killed_in_a_turn_resumes_and_pays_nothing_twice(
    tmp_path: Path, kind: str, count: int
) -> None:
    assert run_until_killed(tmp_path, "adaptive", kind, count) == -signal.SIGKILL
    paid_before = len(paid_calls(tmp_path))
    resumed = await run_resume(tmp_path)
    assert resumed.outcome == "healed", resumed.reason
    paid = paid_calls(tmp_path)
    assert len(set(paid)) == len(paid) > paid_before
    assert resumed.spend.attempts == 12  # nine repairs, and the three patches of the conversation


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("model.called", (1, 2, 3, 4)),
        ("model.called", (5, 6)),
        ("agent.stepped", (1, 2, 3)),
        ("agent.stepped", (4, 5, 6)),
    ],
)
async def test_a_run_killed_at_every_step_pays_for_each_reply_once(
    tmp_path: Path, kind: str, points: tuple[int, ...]
) -> None:
    """Each process is killed once a reply or a step is on disk, and the next one gets one reply or step further."""
    for point in points:
        # A resumed run records the reuse of each stored reply again, but nothing for a stored step.
        count = point if kind == "model.called" or point == points[0] else 1
        assert run_until_killed(tmp_path, "agent", kind, count) == -signal.SIGKILL
        assert len(paid_calls(tmp_path)) == point

    resumed = await run_resume(tmp_path, recipe="agent")

    assert (resumed.outcome, resumed.spend.attempts, resumed.spend.model_calls) == ("healed", 3, STEPS)
    paid = paid_calls(tmp_path)
    assert len(set(paid)) == len(paid) == STEPS
    events = read_events(tmp_path / "home")
    assert [step.tools for _, step in select_events(events, AgentStepped)] == [("read_file",), ("edit",)] * 3


def paid_calls(folder: Path) -> list[str]:
    return (folder / "calls.jsonl").read_text().splitlines()


def run_until_killed(folder: Path, recipe: str, kind: str, count: int) -> int:
    """Start or resume a run in a process that dies at the given event, and return its exit status."""
    command = [sys.executable, __file__, str(folder), recipe, kind, str(count)]
    return subprocess.run(command, env=ENV_WITH_TEST_PATH, timeout=100).returncode


async def start_or_resume(folder: Path, recipe: str) -> None:
    await (run_resume if (folder / "home").exists() else run_heal)(folder, recipe=recipe)


if __name__ == "__main__":
    DeadlyLedger(sys.argv[3], int(sys.argv[4])).arm()
    asyncio.run(start_or_resume(Path(sys.argv[1]), sys.argv[2]))
