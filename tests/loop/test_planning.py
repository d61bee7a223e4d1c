"""Candidates made from the parts of a plan: a part that fails leaves nothing behind and stops all calls."""

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


class ByPart:
    """Answers the second part slowly; the first at once, with what it is given."""

    name = "scripted:parts"
    notice = "scripted, not a model"

    def __init__(self, first: Exception | str) -> None:
        self.first = first
        self.at_once = self.most = self.answered = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0)
            if "the first part" in messages[-1].content:
                if isinstance(self.first, Exception):
                    raise self.first
                return Reply(text=self.first, prompt_tokens=10, completion_tokens=10)
            await asyncio.sleep(0.05)
            return Reply(text=CODE, prompt_tokens=10, completion_tokens=10)
        finally:
            self.at_once -= 1
            self.answered += 1


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path)


@pytest.fixture
def ledger(folder: RunFolder) -> Iterator[Ledger]:
    with Ledger(folder.ledger_path, FakeClock()) as ledger:
        yield ledger


def context_of(model: ByPart, folder: RunFolder, ledger: Ledger, limits: Limits) -> RunContext:
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


async def made(context: RunContext) -> dict[str, str]:
    suite = Suite(task=context.task, sandbox=context.sandbox, settings=context.settings.sandbox)
    return await write_planned_files(planned_writing(context, suite))


def planned_writing(context: RunContext, suite: Suite, coder: Role = "coder") -> PlannedWriting:
    return PlannedWriting(plan=PLAN, lessons=(), move=MOVE, suite=suite, coder=coder, context=context)


@pytest.mark.parametrize("fault", [ModelTimeout("too slow"), ModelError("gone")])
async def test_a_part_that_fails_leaves_no_call_running_and_no_attempt_used(
    fault: ModelError, folder: RunFolder, ledger: Ledger
) -> None:
    model = ByPart(fault)
    with pytest.raises(type(fault)):
        await made(context_of(model, folder, ledger, Limits(attempts=2)))
    assert (model.at_once, model.answered) == (0, 2)
    assert not list(open_reservations(ledger.events))
    assert Budget(ledger, Limits(), FakeClock()).spend().attempts == 0


async def test_a_part_that_the_budget_does_not_allow_gives_the_attempt_back(
    folder: RunFolder, ledger: Ledger
) -> None:
    context = context_of(ByPart(CODE), folder, ledger, Limits(attempts=2, tokens=10))
    with pytest.raises(BudgetExceeded):
        await made(context)
    assert not list(open_reservations(ledger.events))
    assert context.budget.remaining_attempts() == 2


async def test_parts_draw_in_turn_where_tokens_of_replies_are_limited(
    folder: RunFolder, ledger: Ledger
) -> None:
    free, limited = ByPart(CODE), ByPart(CODE)
    await made(context_of(free, folder, ledger, Limits()))
    await made(context_of(limited, folder, ledger, Limits(completion_tokens=900)))
    assert (free.most, limited.most) == (2, 1)


async def test_a_part_that_brings_nothing_spends_the_attempt(folder: RunFolder, ledger: Ledger) -> None:
    context = context_of(ByPart("no code"), folder, ledger, Limits(attempts=2))
    with pytest.raises(MalformedReply):
        await made(context)
    assert context.budget.remaining_attempts() == 1


async def test_a_hard_case_has_its_parts_written_by_the_stronger_model(
    folder: RunFolder, ledger: Ledger
) -> None:
    weak, strong = ByPart(CODE), ByPart(CODE)
    usual, stronger = (
        RoleModel(chain=(cast(Any, model),), temperature=0.8, max_tokens=200) for model in (weak, strong)
    )
    role_models: dict[Role, RoleModel] = {"coder": usual, "escalate": stronger}
    context = context_of(weak, folder, ledger, Limits(attempts=2))
    context = replace(context, models=RoleModels(role_models, PriceTable({})))
    suite = Suite(task=context.task, sandbox=context.sandbox, settings=context.settings.sandbox)
    await write_planned_files(planned_writing(context, suite, "escalate"))
    assert (weak.answered, strong.answered > 0) == (0, True)
