"""A run of any recipe that is killed after a node and resumed ends as an uninterrupted run does.

A kill leaves only what is on disk. So one run goes to its end, its home folder is copied each time that a
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
from scenario.test_recipes import HELPFUL, SCENARIOS, TASK, shared_sandbox
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

__all__ = ["shared_sandbox"]

Question = str


def make_question(messages: Sequence[Message], sampling: Sampling) -> Question:
    """Return everything that decides a reply, except the limit of its length."""
    texts = [message.content for message in messages]
    return json.dumps([texts, sampling.temperature, sampling.index, sampling.schema])


class RememberingModel:
    """Repeat the reply to each question that was asked before.

    Args:
        first: The model that answers new questions. If it is `None`, a new question is an error.
        known: The questions that were asked before, with their replies.
    """

    name = ScriptedRoles.name

    def __init__(self, first: ScriptedRoles | None, known: dict[Question, Reply]) -> None:
        self._first = first
        self._known = known
        self.asked: list[Question] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        question = make_question(messages, sampling)
        self.asked.append(question)
        if self._first is not None:
            self._known[question] = await self._first.complete(messages, sampling)
        return self._known[question]

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


def make_settings(home: Path, recipe: str, **limits: Any) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        loop=LoopSettings(recipe=recipe),
        budget=BudgetSettings(**{"attempts": 6, "seconds": 100, **limits}),
        certification=CertificationSettings(seconds=0),
    )


def copy_home_at_nodes(saver: Any, home: Path, copies: Path) -> None:
    """Copy the home folder whenever a node has done its work and its checkpoint is not yet written.

    The last copy of each kind of node is kept, and the last one of each branch of a round.
    """
    write_original = saver.aput_writes

    async def aput_writes(config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        node = task_path.partition(", ")[2]
        async with saver.lock:  # no other branch is writing meanwhile
            copy = copies / node.replace(", ", "-")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(home, copy)
        await write_original(config, writes, task_id, task_path)

    saver.aput_writes = aput_writes


def read_paid_questions(home: Path) -> set[Question]:
    """Return the questions whose replies are on disk."""
    entries = load_recording(find_run(home, "last").path, may_be_empty=True).entries.values()
    calls = [
        ([Message(**message) for message in entry["messages"]], Sampling(**entry["sampling"]))
        for entry in entries
    ]
    return {make_question(messages, sampling) for messages, sampling in calls}


async def run_with_copies(
    settings: Settings, copies: Path, model: RememberingModel, shared_sandbox: Sandbox
) -> Result:
    async with open_run_models(settings, model, live=True) as models:
        spec = RunSpec(
            task=build_write_task(TASK),
            settings=settings,
            project=copies,
            models=models,
            sandbox=shared_sandbox,
        )
        async with open_run(spec) as (context, saver):
            copy_home_at_nodes(saver, settings.paths.home, copies)
            return await run_task(context, saver)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("recipe", "scenario"),
    [*((recipe, "wrong then right") for recipe in list_recipes()), ("dual_oracle", "helpers malformed")],
)
async def test_a_run_killed_after_any_node_ends_as_an_uninterrupted_run(
    recipe: str, scenario: str, tmp_path: Path, shared_sandbox: Sandbox
) -> None:
    known: dict[Question, Reply] = {}
    scripted_roles = ScriptedRoles({**HELPFUL, **SCENARIOS[scenario]})

    first = await run_with_copies(
        make_settings(tmp_path / "home", recipe),
        tmp_path / "copies",
        RememberingModel(scripted_roles, known),
        shared_sandbox,
    )

    assert first.outcome == ("not_healed" if recipe == "greedy" else "healed")
    nodes = sorted(path.name for path in (tmp_path / "copies").iterdir())
    assert {"__start__", "prepare", "equip", "decide", "check", "reflect", "finish"} < set(nodes)

    for node in nodes:
        home = tmp_path / "copies" / node
        paid = read_paid_questions(home)
        model = RememberingModel(None, known)
        if node == "finish":
            with pytest.raises(UsageError, match="has ended"):
                await resume(
                    "last", settings=make_settings(home, recipe), model=model, sandbox=shared_sandbox
                )
            continue
        result = await resume(
            "last", settings=make_settings(home, recipe), model=model, sandbox=shared_sandbox
        )
        assert summarize(result) == summarize(first), node
        assert paid.isdisjoint(model.asked), node
        assert sorted([*paid, *model.asked]) == sorted(known), node
        assert result.spend.attempts == first.spend.attempts, node


def summarize(result: Result) -> tuple[Any, ...]:
    """Return the values that must be equal in two equivalent runs."""
    candidate = result.candidate.hash if result.candidate else None
    return result.outcome, result.reason, candidate, result.diff, result.confidence, result.failed_roles
