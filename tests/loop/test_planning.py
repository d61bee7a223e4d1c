"""Candidates are made from the parts of a plan. A part that fails stops all other calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from suture.core.ledger import Budget, Ledger, Limits, RunFolder, new_run, open_reservations
from suture.core.records import Move, Plan, Subtask, Task
from suture.core.settings import Settings
from suture.errors import BudgetExceeded, MalformedReply, ModelError, ModelTimeout
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.recipes.recipe_files import load_recipe
from suture.loop.roles.planning import PlannedWriting, write_planned_files
from suture.loop.run_spec import RunSpec
from suture.models import Message, Reply, Role, RoleModel, RoleModels, Sampling
from suture.models.pricing import PriceTable
from suture.testing import FakeClock

PLAN = Plan(subtasks=(Subtask(goal="the first part"), Subtask(goal="the second part")))
CODE = "```python\ndef f():\n    return 1\n```"
MOVE = Move(kind="sample")


class PartModel:
    """Answer the second part slowly, and the first part at once with the given reply or error."""

    name = "scripted:parts"
    notice = "scripted, not a model"

    def __init__(self, first: Exception | str) -> None:
        self.first = first
        self.running = self.max_running = self.answered = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            await asyncio.sleep(0)
            if "the first part" in messages[-1].content:
                if isinstance(self.first, Exception):
                    raise self.first
                return Reply(text=self.first, prompt_tokens=10, completion_tokens=10)
            await asyncio.sleep(0.05)
            return Reply(text=CODE, prompt_tokens=10, completion_tokens=10)
        finally:
            self.running -= 1
            self.answered += 1


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path)


@pytest.fixture
def ledger(folder: RunFolder) -> Iterator[Ledger]:
    with Ledger(folder.ledger_path, FakeClock()) as ledger:
        yield ledger


def make_context(model: PartModel, folder: RunFolder, ledger: Ledger, limits: Limits) -> RunContext:
    settings, task = Settings(), Task(statement="anything")
    role_model = RoleModel(chain=(cast(Any, model),), temperature=0.8, max_tokens=200)
    models = RoleModels({"coder": role_model}, PriceTable({}))
    return RunContext(
        spec=RunSpec(task=task, settings=settings, project=Path(), models=models),
        folder=folder,
        ledger=ledger,
        budget=Budget(ledger, limits, FakeClock()),
        models=models,
        sandbox=cast(Any, None),
        recipe=load_recipe(settings.loop, 0.8),
    )


async def write_plan(context: RunContext) -> dict[str, str]:
    suite = Suite(task=context.task, sandbox=context.sandbox, settings=context.settings.sandbox)
    return await write_planned_files(make_planned_writing(context, suite))


def make_planned_writing(context: RunContext, suite: Suite, coder: Role = "coder") -> PlannedWriting:
    return PlannedWriting(plan=PLAN, lessons=(), move=MOVE, suite=suite, coder=coder, context=context)


@pytest.mark.parametrize("fault", [ModelTimeout("too slow"), ModelError("gone")])
async def test_a_failing_part_leaves_no_call_running_and_costs_no_attempt(
    fault: ModelError, folder: RunFolder, ledger: Ledger
) -> None:
    model = PartModel(fault)
    with pytest.raises(type(fault)):
        await write_plan(make_context(model, folder, ledger, Limits(attempts=2)))
    assert (model.running, model.answered) == (0, 2)
    assert not list(open_reservations(ledger.events))
    assert Budget(ledger, Limits(), FakeClock()).spend().attempts == 0


async def test_a_part_refused_by_the_budget_costs_no_attempt(folder: RunFolder, ledger: Ledger) -> None:
    context = make_context(PartModel(CODE), folder, ledger, Limits(attempts=2, tokens=10))
    with pytest.raises(BudgetExceeded):
        await write_plan(context)
    assert not list(open_reservations(ledger.events))
    assert context.budget.remaining_attempts() == 2


async def test_parts_run_one_at_a_time_with_limited_completion_tokens(
    folder: RunFolder, ledger: Ledger
) -> None:
    unlimited, limited = PartModel(CODE), PartModel(CODE)
    await write_plan(make_context(unlimited, folder, ledger, Limits()))
    await write_plan(make_context(limited, folder, ledger, Limits(completion_tokens=900)))
    assert (unlimited.max_running, limited.max_running) == (2, 1)


async def test_a_part_with_a_malformed_reply_spends_the_attempt(folder: RunFolder, ledger: Ledger) -> None:
    context = make_context(PartModel("no code"), folder, ledger, Limits(attempts=2))
    with pytest.raises(MalformedReply):
        await write_plan(context)
    assert context.budget.remaining_attempts() == 1


async def test_the_stronger_model_writes_the_parts_after_escalation(
    folder: RunFolder, ledger: Ledger
) -> None:
    weak, strong = PartModel(CODE), PartModel(CODE)
    usual, stronger = (
        RoleModel(chain=(cast(Any, model),), temperature=0.8, max_tokens=200) for model in (weak, strong)
    )
    role_models: dict[Role, RoleModel] = {"coder": usual, "escalate": stronger}
    context = make_context(weak, folder, ledger, Limits(attempts=2))
    context = replace(context, models=RoleModels(role_models, PriceTable({})))
    suite = Suite(task=context.task, sandbox=context.sandbox, settings=context.settings.sandbox)

    await write_planned_files(make_planned_writing(context, suite, "escalate"))

    assert (weak.answered, strong.answered > 0) == (0, True)
