"""Runs with helper roles: killed and resumed, replayed, and with a user's own recipe."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from run_events import read_events
from scenario.scripted_roles import ScriptedRoles
from scenario.test_recipes import HELPFUL, RIGHT, TASK, wrong_reply
from suture.api import WriteOptions, replay, resume, solve
from suture.core.ledger import find_run, read_ledger
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, Settings
from suture.interfaces.narrative.run_story import run_as_text

KILLED_PROGRAM = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scenario.test_recipes_resumed import make_roles, make_settings
from scenario.test_recipes import TASK
from suture.api import WriteOptions, solve
from suture.core.ledger import Ledger

append = Ledger.append

def append_and_kill(self, payload):
    event = append(self, payload)
    if event.kind == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
    return event

Ledger.append = append_and_kill
asyncio.run(solve(TASK, WriteOptions(settings=make_settings(Path(sys.argv[2])), model=make_roles())))
"""


OPENING_WRONG = [wrong_reply(1), wrong_reply(1), wrong_reply(1), RIGHT]
"""The replies of the coder: every reply of the opening round is wrong, the later ones are right."""


def make_roles() -> ScriptedRoles:
    return ScriptedRoles({**HELPFUL, "coder": OPENING_WRONG})


def make_settings(home: Path, recipe: str = "dual_oracle") -> Settings:
    return Settings(
        paths={"home": home},  # type: ignore[arg-type]
        loop=LoopSettings(recipe=recipe),
        budget=BudgetSettings(attempts=6, seconds=60),
        certification=CertificationSettings(seconds=0),
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    "after", ["tests.written", "candidate.checked", "diagnosis.made", "candidate.criticised"]
)
async def test_a_killed_run_resumes_and_pays_no_reply_twice(after: str, tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    completed = subprocess.run(
        [sys.executable, "-c", KILLED_PROGRAM, tests, str(tmp_path), after],
        check=False,
        capture_output=True,
        cwd=tmp_path,
    )

    assert completed.returncode == -signal.SIGKILL, completed.stderr
    settings = make_settings(tmp_path)
    folder = find_run(tmp_path, "last")
    paid_before = [
        event.data["call"] for event in read_ledger(folder.ledger_path).events if event.kind == "model.called"
    ]
    model = ScriptedRoles({**HELPFUL, "coder": [RIGHT]})
    result = await resume("last", settings=settings, model=model)
    assert result.outcome == "healed"
    events = read_ledger(folder.ledger_path).events
    assert [event.kind for event in events].count("run.resumed") == 1
    paid_calls = [
        event.data for event in events if event.kind == "model.called" and not event.data["replayed"]
    ]
    assert len({data["call"] for data in paid_calls}) == len(paid_calls)
    assert len(model.calls) == len(paid_calls) - len(paid_before)
    assert result.spend.attempts <= 6


async def test_a_run_with_helper_roles_is_replayable(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)

    result = await solve(TASK, WriteOptions(settings=settings, model=make_roles()))

    assert result.outcome == "healed"
    story = run_as_text(find_run(tmp_path, "last"))
    assert "adversarial tester wrote 3 tests" in story
    assert "debugger on " in story
    assert "critic approves of " in story
    assert "lessons: Add, do not subtract." in story
    assert (await replay("last", settings=settings)).difference is None


async def test_a_users_recipe_is_replayed_without_its_file(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('summary = "Simple."\n\n[helpers]\noptimise = true\n')
    long_winded = "```python\ndef add(a, b):\n    total = a\n    total = total + b\n    return total\n```"
    model = ScriptedRoles({"coder": [long_winded], "optimiser": [RIGHT]})

    result = await solve(
        TASK, WriteOptions(settings=make_settings(tmp_path / "home", str(recipe)), model=model)
    )

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert result.candidate.label == "made simpler"
    recipe.unlink()
    replayed = await replay("last", settings=make_settings(tmp_path / "home"))
    assert replayed.difference is None
    kinds = [event.kind for event in read_events(tmp_path / "home", result.run_id)]
    assert "candidate.optimised" in kinds


@pytest.mark.parametrize(
    "worse", [wrong_reply(1), "```python\nimport os\n\ndef add(a, b):\n    c = a + b\n    return c\n```"]
)
async def test_a_rewrite_that_fails_or_is_no_simpler_is_discarded(worse: str, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[helpers]\noptimise = true\n")
    model = ScriptedRoles({"coder": [RIGHT], "optimiser": [worse]})

    result = await solve(
        TASK, WriteOptions(settings=make_settings(tmp_path / "home", str(recipe)), model=model)
    )

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "return a + b" in result.candidate.files["solution.py"]


async def test_the_run_warns_once_about_the_attempt_limit(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("attempt_limit = 4\nwarn_at = 1\n")
    model = ScriptedRoles({"coder": [*map(wrong_reply, range(9))]})

    result = await solve(
        TASK, WriteOptions(settings=make_settings(tmp_path / "home", str(recipe)), model=model)
    )

    assert (result.outcome, result.spend.attempts) == ("budget_exhausted", 4)
    kinds = [event.kind for event in read_events(tmp_path / "home", result.run_id)]
    assert kinds.count("attempts.near_limit") == 1


async def test_the_debugger_sees_the_imports_of_the_failing_test(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('repair_opening = true\n\n[helpers]\ndiagnose = "tools"\n')
    asserts = "from decimal import Decimal\nassert add(Decimal('1.5'), 2) == Decimal('3.5')"
    statement = "Write a function add(a, b) that adds two numbers."
    settings = make_settings(tmp_path / "home", str(recipe))
    model = ScriptedRoles({**HELPFUL, "coder": [wrong_reply(1), RIGHT]})

    result = await solve(statement, WriteOptions(asserts=asserts, settings=settings, model=model))

    assert result.outcome == "healed", result.reason
    events = read_events(tmp_path / "home", result.run_id)
    first_step = next(event.data["step"] for event in events if event.kind == "debugger.stepped")
    assert first_step["input"] == "add(Decimal('1.5'), 2)"
    assert "The result is Decimal('-1.5')" in first_step["observation"]
