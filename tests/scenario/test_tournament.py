"""Among candidates that pass the same checks, the run delivers the one that the comparison prefers."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_events import read_events
from scenario.scripted_roles import ScriptedRoles
from scenario.test_recipes import RIGHT, TASK
from scenario.test_recipes_resumed import make_settings
from suture.api import WriteOptions, solve

ENDLESS = """```python
def add(a, b):
    while (a, b) not in [(1, 2), (-1, 1)]:
        pass
    return a + b
```"""


@pytest.mark.heavy
async def test_a_candidate_that_terminates_is_preferred(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("opening = 2\ntournament = true\n")
    settings = make_settings(tmp_path / "home", str(recipe))

    result = await solve(
        TASK, WriteOptions(settings=settings, model=ScriptedRoles({"coder": [ENDLESS, RIGHT]}))
    )

    assert result.outcome == "healed", result.reason
    events = read_events(tmp_path / "home", result.run_id)
    compared = next(event.data for event in events if event.kind == "candidates.compared")
    assert len(compared["candidates"]) == 2, compared
    assert result.candidate is not None
    assert result.candidate.hash == compared["preferred"] == compared["candidates"][1]
