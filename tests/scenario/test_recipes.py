"""Every recipe through the real graph, sandbox and database; only the model is scripted."""

from __future__ import annotations

import pytest

from suture.api import solve
from suture.settings import BudgetSettings, LoopSettings, ProofSettings, Settings
from suture.testing import ScriptedModel

TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"
SORRY = "I am sorry."
ATTEMPTS = 6

SCENARIOS = {
    "right first time": [RIGHT],
    "wrong then right": [WRONG, *[RIGHT] * 4],
    "always wrong": [WRONG] * 20,
    "malformed for ever": [SORRY] * 20,
}
EXPECTED = {
    ("greedy", "right first time"): ("healed", 1, 1),
    ("greedy", "wrong then right"): ("not_healed", 1, 1),
    ("greedy", "always wrong"): ("not_healed", 1, 1),
    ("greedy", "malformed for ever"): ("not_healed", 1, 1),
    ("best_of_k", "right first time"): ("healed", 1, 1),
    ("best_of_k", "wrong then right"): ("healed", 5, 5),
    ("best_of_k", "always wrong"): ("budget_exhausted", 6, 6),
    ("best_of_k", "malformed for ever"): ("budget_exhausted", 6, 6),
    ("always_repair", "right first time"): ("healed", 1, 1),
    ("always_repair", "wrong then right"): ("healed", 2, 2),
    ("always_repair", "always wrong"): ("budget_exhausted", 6, 6),
    ("always_repair", "malformed for ever"): ("budget_exhausted", 6, 6),
    ("reflexion", "right first time"): ("healed", 1, 1),
    ("reflexion", "wrong then right"): ("healed", 2, 2),
    ("reflexion", "always wrong"): ("budget_exhausted", 6, 6),
    ("reflexion", "malformed for ever"): ("budget_exhausted", 6, 6),
}


@pytest.mark.parametrize(("recipe", "scenario"), list(EXPECTED))
async def test_how_it_ends(recipe: str, scenario: str, settings: Settings) -> None:
    chosen = settings.model_copy(
        update={
            "loop": LoopSettings(recipe=recipe),
            "budget": BudgetSettings(attempts=ATTEMPTS, seconds=100),
            "proof": ProofSettings(seconds=0),
        }
    )
    model = ScriptedModel(SCENARIOS[scenario])
    result = await solve(TASK, settings=chosen, model=model)
    assert (result.outcome, result.spend.attempts, len(model.calls)) == EXPECTED[recipe, scenario]
