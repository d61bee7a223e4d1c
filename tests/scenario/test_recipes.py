"""Every recipe through the real graph, sandbox and database; only the model is scripted.

The table in recipe_outcomes.md gives the expected result of each scenario.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from run_events import read_events
from scenario.scripted_roles import ScriptedRoles, to_json
from suture.api import WriteOptions, solve
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, Settings
from suture.loop import list_recipes
from suture.sandbox import Sandbox, open_sandbox

TABLE = Path(__file__).with_name("recipe_outcomes.md")
PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
ATTEMPTS = 6
"""The attempts in the budget of each scenario."""
TASK = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
SORRY = "I am sorry."


def wrong_reply(number: int) -> str:
    return f"```python\ndef add(a, b):\n    return a - b - {number}\n```"


def diagnosis_reply(confidence: float = 0.9) -> str:
    return to_json(
        root_cause="it subtracts", category="wrong_logic", strategy="minimal", confidence=confidence
    )


GOOD_TESTS = "```python\nassert add(2, 3) == 5\nassert add(0, 0) == 0\nassert add(10, -4) == 6\n```"
WRONG_TESTS = "```python\nassert add(2, 3) == 6\nassert add(0, 0) == 1\nassert add(10, -4) == 7\n```"
WRONG_ONCE = [wrong_reply(1), *[RIGHT] * 8]
REPAIRING_CALL = 'TOOL: edit {"path": "solution.py", "old_str": "a - b - 1", "new_str": "a + b"}'
"""A call in the text of a reply, as models without a tool protocol write it."""
HELPFUL = {
    "agent": [RIGHT],
    "coder": [RIGHT],
    "spec_tester": [GOOD_TESTS],
    "adversarial_tester": [GOOD_TESTS],
    "property_tester": ["```python\nfor n in range(5):\n    assert add(n, 0) == n\n```"],
    "planner": [to_json(subtasks=[{"goal": "write add(a, b)", "needs": []}])],
    "subtask_coder": [RIGHT],
    "critic": [to_json(issues=[], score=0.9, approved=True)],
    "diagnose": [diagnosis_reply()],
    "debugger": ["TOOL: trace_call\nINPUT: add(1, 2)", "TOOL: done", diagnosis_reply()],
    "summariser": [to_json(lessons=["Add, do not subtract."])],
}
ALWAYS_WRONG = {
    "agent": [*map(wrong_reply, range(1, 20))],
    "coder": [*map(wrong_reply, range(1, 20))],
    "subtask_coder": [wrong_reply(99)],
}
REJECTING_CRITIC = {"critic": [to_json(issues=["It is ugly."], score=0.0, approved=False)]}
SCENARIOS = {
    "right first time": {},
    "wrong then right": {
        "coder": WRONG_ONCE,
        "subtask_coder": [wrong_reply(0)],
        "agent": [wrong_reply(1), REPAIRING_CALL],
    },
    "always wrong": ALWAYS_WRONG,
    "malformed for ever": {name: [SORRY] for name in HELPFUL},
    "helpers malformed": {name: [SORRY] for name in HELPFUL} | {"coder": WRONG_ONCE},
    "wrong tests": {
        "coder": WRONG_ONCE,
        "spec_tester": [WRONG_TESTS],
        "adversarial_tester": [WRONG_TESTS],
        "property_tester": [WRONG_TESTS],
    },
    "critic hates all": REJECTING_CRITIC,
    "critic loves all": ALWAYS_WRONG,
    "debugger loops": {
        "coder": [*[wrong_reply(1)] * 3, *[RIGHT] * 3],
        "debugger": ["TOOL: run_snippet\nINPUT: add(1, 2)"],
    },
}
ENDS_HEALED = {"right first time", "helpers malformed", "wrong tests", "critic hates all", "debugger loops"}
NEVER_HEALED = {"always wrong", "malformed for ever", "critic loves all"}


def read_table() -> dict[tuple[str, str], str]:
    """Return the cells by recipe and scenario, such as `healed, 2, 5`: outcome, attempts, model calls."""
    text = TABLE.read_text("utf-8")
    table = text[text.index("| recipe |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table]
    return {
        (row[0], scenario): cell
        for row in rows
        for scenario, cell in zip(head[1:], row[1:], strict=True)
        if cell != "-"
    }


CELLS = read_table()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_sandbox() -> AsyncIterator[Sandbox]:
    """One sandbox for all tests: creating one costs more than most scenarios."""
    sandbox = open_sandbox(Settings().sandbox)
    yield sandbox
    await sandbox.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("recipe", "scenario"), list(CELLS))
async def test_a_recipe_ends_as_the_table_says(
    recipe: str, scenario: str, settings: Settings, shared_sandbox: Sandbox
) -> None:
    recipe_settings = settings.model_copy(
        update={
            "loop": LoopSettings(recipe=recipe),
            "budget": BudgetSettings(attempts=ATTEMPTS, seconds=60),
            "certification": CertificationSettings(seconds=0),
        }
    )
    model = ScriptedRoles({**HELPFUL, **SCENARIOS[scenario]})

    result = await solve(TASK, WriteOptions(settings=recipe_settings, model=model, sandbox=shared_sandbox))

    assert f"{result.outcome}, {result.spend.attempts}, {len(model.calls)}" == CELLS[recipe, scenario]
    assert result.spend.attempts <= ATTEMPTS
    assert result.spend.tokens <= recipe_settings.budget.tokens
    assert result.spend.model_calls == len(model.calls)
    events = read_events(recipe_settings.paths.home, result.run_id)
    assert set(result.failed_roles) == {
        event.data["role"] for event in events if event.kind == "role.degraded"
    }
    if scenario in NEVER_HEALED:
        assert result.outcome != "healed"
    if scenario in ENDS_HEALED and recipe != "greedy":
        assert result.outcome == "healed"
        assert result.candidate is not None
        assert "a + b" in result.candidate.files["solution.py"]


def test_the_table_and_the_page_have_a_row_for_every_recipe() -> None:
    assert {recipe for recipe, _ in CELLS} == set(list_recipes())
    recipe_table = PAGE.read_text("utf-8").partition("## The recipes\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", recipe_table, re.MULTILINE)) == set(list_recipes())
