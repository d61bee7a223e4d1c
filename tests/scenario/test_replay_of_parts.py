"""Replay of a plan whose parts end in another order, with too few tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from scenario.scripted_roles import ScriptedRoles, to_json
from scenario.test_recipes import HELPFUL, RIGHT, SORRY, TASK
from suture.api import WriteOptions, replay, solve
from suture.core.ledger import list_runs, read_ledger
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, Settings
from suture.models import Message, Reply, Sampling

FIRST, SECOND = "add two integers", "add two floats"
LIST_FILES = "TOOL: list_files\nINPUT: ."


class LateFirstPart(ScriptedRoles):
    """Answer the coder of the first part only after the coder of the second part has ended."""

    def __init__(self) -> None:
        plan = [to_json(subtasks=[{"goal": FIRST, "needs": []}, {"goal": SECOND, "needs": []}])]
        super().__init__(
            {**HELPFUL, "planner": plan, "spec_tester": [SORRY], "property_tester": [SORRY]}
            | {"subtask_coder": [LIST_FILES, RIGHT, LIST_FILES, RIGHT]}
        )
        self._later = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        prompt = messages[-1].content
        if SECOND in prompt:
            self._later += 1
        for _ in range(50):
            if FIRST in prompt and self._later < 2:
                await asyncio.sleep(0.01)
        return await super().complete(messages, sampling)


@pytest.mark.parametrize("tokens", [2000, 2500, 3000])
async def test_a_replay_grants_the_same_tokens_in_any_order_of_parts(settings: Settings, tokens: int) -> None:
    limited = settings.model_copy(
        update={
            "loop": LoopSettings(recipe="planner"),
            "budget": BudgetSettings(attempts=1, tokens=tokens, seconds=60),
            "certification": CertificationSettings(seconds=0),
        }
    )

    first = await solve(TASK, WriteOptions(settings=limited, model=LateFirstPart()))

    (folder,) = list_runs(settings.paths.home)
    reply_limits = [
        event.data["max_reply_tokens"]
        for event in read_ledger(folder.ledger_path).events
        if event.kind == "budget.reserved"
    ]
    assert min(filter(None, reply_limits)) < 1024, "no reply was cut to what was left"

    replayed = await replay(first.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)
    assert replayed.result.spend.tokens == first.spend.tokens
