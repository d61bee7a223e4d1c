"""An agent takes over when no repair of the shown files passes."""

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
from suture.api import HealOptions, heal, resume
from suture.core.ledger import find_run, read_ledger, select_events
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
from suture.core.settings.schema import ModelSettings
from suture.models import Message, Reply, Sampling

# A table that is too long for a prompt, and that no traceback names.
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

STEPS = 7
"""A look and an edit for each file, and the tests."""


class Reader:
    """Mends every wrong line that it is shown, and nothing else; with tools it reads file after file."""

    name = "scripted:reader"

    def __init__(self, log: Path) -> None:
        self._log = log

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        with self._log.open("a") as log:
            log.write(
                json.dumps([[m.content for m in messages], sampling.temperature, sampling.index]) + "\n"
            )
        prompt = "\n".join(message.content for message in messages if message.role == "user")
        is_agent = "TOOL: submit" in messages[1].content
        text = self._step(prompt, len(messages) // 2) if is_agent else self._repair(prompt)
        return Reply(text=text, prompt_tokens=50, completion_tokens=20, model=self.name)

    async def close(self) -> None:
        pass

    def _repair(self, prompt: str) -> str:
        shown = [path for path, (wrong, _) in REPAIRS.items() if wrong in prompt]
        return "\n".join(
            f"### {path}\n```python\n{FILES[path].replace(*REPAIRS[path])}```\n" for path in shown
        )

    def _step(self, prompt: str, number: int) -> str:
        paths = list(REPAIRS)
        at, looks = divmod(number - 1, 2)
        if at >= len(paths):
            return call("run_tests")
        if not looks:
            return call("read", path=paths[at])
        wrong, right = REPAIRS[paths[at]]
        assert wrong in prompt
        whole = next(line for line in FILES[paths[at]].splitlines() if wrong in line)
        return call("edit", path=paths[at], search=whole, replace=whole.replace(wrong, right))


def call(tool: str, **given: str) -> str:
    """What the seam makes of a tool call."""
    return f"TOOL: {tool}\nINPUT: {json.dumps(given)}"


def settings_at(home: Path, *, tools: bool = True, recipe: str = "adaptive") -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        repair=RepairSettings(enabled=False),
        certification=CertificationSettings(seconds=0, mutants=0),
        sandbox=SandboxSettings(test_timeout_s=5),
        model=ModelSettings(tools=tools),
        budget=BudgetSettings(attempts=12, seconds=200, tokens=2_000_000),
        loop=LoopSettings(recipe=recipe),
    )


def project_in(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def healed(folder: Path, *, tools: bool = True, recipe: str = "adaptive") -> Result:
    settings = settings_at(folder / "home", tools=tools, recipe=recipe)
    return await heal(
        project_in(folder / "project"),
        HealOptions(test="python -m unittest", settings=settings, model=Reader(folder / "calls.jsonl")),
    )


async def went_on(folder: Path, *, recipe: str = "adaptive") -> Result:
    settings = settings_at(folder / "home", recipe=recipe)
    return await resume("last", settings=settings, model=Reader(folder / "calls.jsonl"))


async def test_what_repairs_cannot_repair_an_agent_does_after_them(tmp_path: Path) -> None:
    result = await healed(tmp_path)
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) == set(REPAIRS)
    events = read_ledger(find_run(tmp_path / "home", "last").ledger_path).events
    origins = [proposed.origin for _, proposed in select_events(events, CandidateProposed)]
    assert set(origins[:-1]) == {"repair"}, origins
    assert [step.tool for _, step in select_events(events, AgentStepped)] == ["read_file", "edit"] * 3 + [
        "run_tests"
    ]


async def test_the_same_knowledge_fails_in_repairs_alone_and_heals_as_an_agent(tmp_path: Path) -> None:
    repaired = await healed(tmp_path / "repairs", recipe="always_repair")
    assert (repaired.outcome, repaired.spend.attempts) == ("budget_exhausted", 12)
    events = read_ledger(find_run(tmp_path / "repairs" / "home", "last").ledger_path).events
    written = {proposed.files for _, proposed in select_events(events, CandidateProposed)}
    # What it was shown it mended; the third file no prompt shows.
    assert ("shop/prices.py", "shop/receipt.py") in written
    assert not any("shop/rates.py" in files for files in written)
    asked = (tmp_path / "repairs" / "calls.jsonl").read_text()
    assert "net * RATES[kind]" in asked
    assert REPAIRS["shop/rates.py"][0] not in asked.replace('\\"', '"')
    agent = await healed(tmp_path / "agent", recipe="agent")
    assert agent.outcome == "healed", agent.reason
    assert agent.candidate is not None
    assert set(agent.candidate.files) == set(REPAIRS)


async def test_a_model_that_works_with_no_tools_is_never_made_an_agent(tmp_path: Path) -> None:
    result = await healed(tmp_path, tools=False)
    assert result.outcome == "stuck", result.reason
    events = read_ledger(find_run(tmp_path / "home", "last").ledger_path).events
    assert not list(select_events(events, AgentStepped))


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "count"), [("agent.stepped", 1), ("model.called", 6), ("agent.stepped", 5)])
async def test_killed_in_a_turn_it_continues_and_pays_nothing_twice(
    tmp_path: Path, kind: str, count: int
) -> None:
    assert victim(tmp_path, "adaptive", kind, count) == -signal.SIGKILL
    before = len(paid_calls(tmp_path))
    done = await went_on(tmp_path)
    assert done.outcome == "healed", done.reason
    paid = paid_calls(tmp_path)
    assert len(set(paid)) == len(paid) > before
    assert done.spend.attempts == 10  # a turn is one


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("model.called", (1, 2, 3, 4)),
        ("model.called", (5, 6, 7)),
        ("agent.stepped", (1, 2, 3, 4)),
        ("agent.stepped", (5, 6, 7)),
    ],
)
async def test_killed_at_each_step_one_after_the_other_it_pays_for_seven_replies(
    tmp_path: Path, kind: str, points: tuple[int, ...]
) -> None:
    """Each process dies once a reply or a step is on disk, and the next goes on to the one after it."""
    for point in points:
        # Of a kept reply it is written down again that it was used, of a kept step nothing is.
        new = point if kind == "model.called" or point == points[0] else 1
        assert victim(tmp_path, "agent", kind, new) == -signal.SIGKILL
        assert len(paid_calls(tmp_path)) == point
    done = await went_on(tmp_path, recipe="agent")
    assert (done.outcome, done.spend.attempts, done.spend.model_calls) == ("healed", 1, STEPS)
    paid = paid_calls(tmp_path)
    assert len(set(paid)) == len(paid) == STEPS
    events = read_ledger(find_run(tmp_path / "home", "last").ledger_path).events
    assert [step.tool for _, step in select_events(events, AgentStepped)] == ["read_file", "edit"] * 3 + [
        "run_tests"
    ]


def paid_calls(folder: Path) -> list[str]:
    return (folder / "calls.jsonl").read_text().splitlines()


def victim(folder: Path, recipe: str, kind: str, count: int) -> int:
    """How a process ended that begins a run, or goes on with it, and dies with its so many-th new event."""
    words = [sys.executable, __file__, str(folder), recipe, kind, str(count)]
    return subprocess.run(words, env=WITH_HELPERS, timeout=100).returncode


async def begin_or_go_on(folder: Path, recipe: str) -> None:
    await (went_on if (folder / "home").exists() else healed)(folder, recipe=recipe)


if __name__ == "__main__":
    DeadlyLedger(sys.argv[3], int(sys.argv[4])).arm()
    asyncio.run(begin_or_go_on(Path(sys.argv[1]), sys.argv[2]))
