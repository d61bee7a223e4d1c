"""Replay of the parts of a plan, which end in another order, and too few tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from scenario.scripted_roles import ScriptedRoles, as_json
from scenario.test_recipes import HELPFUL, RIGHT, SORRY, TASK
from suture.api import WriteOptions, replay, solve
from suture.core.ledger import list_runs, read_ledger
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, Settings
from suture.models import Message, Reply, Sampling

FIRST, SECOND = "add two integers", "add two floats"
LOOKS = "TOOL: list_files\nINPUT: ."


class LateFirst(ScriptedRoles):
    """Answers the coder of the first part when that of the second has ended, in whatever way."""

    def __init__(self) -> None:
        plan = [as_json(subtasks=[{"goal": FIRST, "needs": []}, {"goal": SECOND, "needs": []}])]
        super().__init__(
            {**HELPFUL, "planner": plan, "spec_tester": [SORRY], "property_tester": [SORRY]}
            | {"subtask_coder": [LOOKS, RIGHT, LOOKS, RIGHT]}
        )
        self._later = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        asked = messages[-1].content
        if SECOND in asked:
            self._later += 1
        for _ in range(50):
            if FIRST in asked and self._later < 2:
                await asyncio.sleep(0.01)
        return await super().complete(messages, sampling)


@pytest.mark.parametrize("tokens", [3750, 4250, 4500])
async def test_parts_are_granted_alike_in_whatever_order_they_end(settings: Settings, tokens: int) -> None:
    tight = settings.model_copy(
        update={
            "loop": LoopSettings(recipe="planner"),
            "budget": BudgetSettings(attempts=1, tokens=tokens, seconds=60),
            "certification": CertificationSettings(seconds=0),
        }
    )
    first = await solve(TASK, WriteOptions(settings=tight, model=LateFirst()))
    (folder,) = list_runs(settings.paths.home)
    granted = [
        e.data["max_reply_tokens"]
        for e in read_ledger(folder.ledger_path).events
        if e.kind == "budget.reserved"
    ]
    assert min(filter(None, granted)) < 1024, "no reply was cut to what was left"
    again = await replay(first.run_id, settings=settings)
    assert again.same, str(again.difference)
    assert again.result.spend.tokens == first.spend.tokens
