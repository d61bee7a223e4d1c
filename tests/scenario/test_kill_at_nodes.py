"""Every recipe is killed after each kind of node; resumed, it ends as an uninterrupted run does.

What a kill leaves is what is on disk. So one run is let through, its home folder is copied each time that a
node has done its work and its checkpoint is not yet written, and the run is resumed from every copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scenario.scripted_roles import ScriptedRoles
from scenario.test_recipes import HELPFUL, SCENARIOS, TASK, sandbox_requirement
from suture.api import resume
from suture.api.run_lifecycle import open_run_models
from suture.core.ledger import find_run
from suture.core.records import Result
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, PathSettings, Settings
from suture.errors import UsageError
from suture.loop import RunSpec, list_recipes, open_run
from suture.loop.intake.write_task import build_write_task
from suture.loop.run import run_task
from suture.models import Message, Reply, Sampling, load_recording
from suture.sandbox import Sandbox

pytestmark = pytest.mark.heavy

__all__ = ["sandbox_requirement"]

Question = str


def question_of(messages: Sequence[Message], sampling: Sampling) -> Question:
    """All that is asked but the limit of the reply's length."""
    texts = [message.content for message in messages]
    return json.dumps([texts, sampling.temperature, sampling.index, sampling.schema])


class Remembering:
    """Answers as it did before; whether it may be asked something new is for the test to say.

    Args:
        first: Who answers what was not asked before; nobody may ask that where it is `None`.
        known: What was.
    """

    name = ScriptedRoles.name

    def __init__(self, first: ScriptedRoles | None, known: dict[Question, Reply]) -> None:
        self._first = first
        self._known = known
        self.asked: list[Question] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        question = question_of(messages, sampling)
        self.asked.append(question)
        if self._first is not None:
            self._known[question] = await self._first.complete(messages, sampling)
        return self._known[question]

    async def close(self) -> None:
        """Nothing to release."""


def settings_in(home: Path, recipe: str, **limits: Any) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        loop=LoopSettings(recipe=recipe),
        budget=BudgetSettings(**{"attempts": 6, "seconds": 100, **limits}),
        certification=CertificationSettings(seconds=0),
    )


def keep_copies(saver: Any, home: Path, copies: Path) -> None:
    """Copy the home folder whenever a node has done its work and its checkpoint is not yet written.

    Of each kind of node the last copy stays, and of the branches of a round that of each.
    """
    write = saver.aput_writes

    async def aput_writes(config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        node = task_path.partition(", ")[2]
        async with saver.lock:  # no other branch is writing
            copy = copies / node.replace(", ", "-")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(home, copy)
        await write(config, writes, task_id, task_path)

    saver.aput_writes = aput_writes


def paid_in(home: Path) -> set[Question]:
    """What was asked of which the reply is on disk."""
    entries = load_recording(find_run(home, "last").path, may_be_empty=True).entries.values()
    asked = [([Message(**one) for one in e["messages"]], Sampling(**e["sampling"])) for e in entries]
    return {question_of(messages, sampling) for messages, sampling in asked}


async def let_through(
    settings: Settings, copies: Path, model: Remembering, sandbox_requirement: Sandbox
) -> Result:
    async with open_run_models(settings, model, live=True) as models:
        spec = RunSpec(
            task=build_write_task(TASK),
            settings=settings,
            project=copies,
            models=models,
            sandbox=sandbox_requirement,
        )
        async with open_run(spec) as (context, saver):
            keep_copies(saver, settings.paths.home, copies)
            return await run_task(context, saver)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("recipe", "scenario"),
    [*((recipe, "wrong then right") for recipe in list_recipes()), ("dual_oracle", "helpers malformed")],
)
async def test_a_run_killed_after_any_node_ends_as_if_it_had_not_been(
    recipe: str, scenario: str, tmp_path: Path, sandbox_requirement: Sandbox
) -> None:
    known: dict[Question, Reply] = {}
    cast = ScriptedRoles({**HELPFUL, **SCENARIOS[scenario]})
    first = await let_through(
        settings_in(tmp_path / "home", recipe),
        tmp_path / "copies",
        Remembering(cast, known),
        sandbox_requirement,
    )
    assert first.outcome == ("not_healed" if recipe == "greedy" else "healed")
    nodes = sorted(path.name for path in (tmp_path / "copies").iterdir())
    assert {"__start__", "prepare", "equip", "decide", "check", "reflect", "finish"} < set(nodes)
    for node in nodes:
        home = tmp_path / "copies" / node
        paid = paid_in(home)
        resumed = Remembering(None, known)
        if node == "finish":
            with pytest.raises(UsageError, match="has ended"):
                await resume(
                    "last", settings=settings_in(home, recipe), model=resumed, sandbox=sandbox_requirement
                )
            continue
        again = await resume(
            "last", settings=settings_in(home, recipe), model=resumed, sandbox=sandbox_requirement
        )
        assert summarize(again) == summarize(first), node
        assert paid.isdisjoint(resumed.asked), node
        assert sorted([*paid, *resumed.asked]) == sorted(known), node
        assert again.spend.attempts == first.spend.attempts, node


def summarize(result: Result) -> tuple[Any, ...]:
    """What two runs have in common that went the same way."""
    candidate = result.candidate.hash if result.candidate else None
    return result.outcome, result.reason, candidate, result.diff, result.confidence, result.failed_roles
