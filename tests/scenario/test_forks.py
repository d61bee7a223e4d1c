"""Forks from a step of another run: earlier steps are neither repeated nor paid again."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.api import WriteOptions, fork_from_iteration, replay, solve
from suture.core.ledger import Event, find_run, last_step, read_ledger
from suture.core.records import Result
from suture.core.settings import LoopSettings, Settings
from suture.errors import UsageError
from suture.testing import ScriptedModel

TASK = "Write double(n).\n\n>>> double(2)\n4\n>>> double(5)\n10\n"
WRONG = "```python\ndef double(n):\n    return n * n\n```"
WRONG_TOO = "```python\ndef double(n):\n    return n + 2\n```"
RIGHT = "```python\ndef double(n):\n    return n + n\n```"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"loop": LoopSettings(samples=2)})


@pytest.fixture
async def first(settings: Settings) -> Result:
    """One wrong sample, two more, then two repairs."""
    result = await solve(TASK, WriteOptions(settings=settings, model=script()))
    assert result.outcome == "healed", result.reason
    return result


def script() -> ScriptedModel:
    return ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def events_of(settings: Settings, run: str) -> tuple[Event, ...]:
    return read_ledger(find_run(settings.paths.home, run).ledger_path).events


def asked(settings: Settings, run: str) -> list[bool]:
    """For each call, whether it was answered from the record."""
    return [event.data["replayed"] for event in events_of(settings, run) if event.kind == "model.called"]


async def test_a_fork_that_changes_nothing_ends_alike_and_asks_nobody(
    settings: Settings, first: Result
) -> None:
    folder = find_run(settings.paths.home, first.run_id).path
    before = files_below(folder)
    for step in range(last_step(events_of(settings, first.run_id)) + 1):
        model = ScriptedModel([])
        forked = await fork_from_iteration(first.run_id, step, settings=settings, model=model)
        assert (forked.outcome, forked.diff) == (first.outcome, first.diff), step
        assert (forked.spend.model_calls, model.calls) == (0, [])
        assert forked.spend.attempts == first.spend.attempts
        assert forked.spend.tokens == first.spend.tokens
        assert all(asked(settings, forked.run_id))
    assert files_below(folder) == before


@pytest.mark.heavy
async def test_another_model_starts_where_the_first_one_was(settings: Settings, first: Result) -> None:
    model = ScriptedModel([RIGHT], name="scripted:another", repeat_last=True)
    forked = await fork_from_iteration(first.run_id, 1, settings=settings, model=model)
    assert forked.outcome == "healed", forked.reason
    assert len(model.calls) == 2  # the two samples of the second round; the greedy one was there
    assert asked(settings, forked.run_id) == [True, False, False]
    assert (forked.spend.attempts, forked.spend.model_calls) == (3, 2)
    again = await replay(forked.run_id, settings=settings)
    assert again.same, str(again.difference)
    assert again.result.diff == forked.diff
    unasked = ScriptedModel([], name="scripted:another")
    twice = await fork_from_iteration(forked.run_id, 1, settings=settings, model=unasked)
    assert (twice.diff, unasked.calls) == (forked.diff, [])


async def test_a_setting_and_a_recipe_can_be_others(settings: Settings, first: Result) -> None:
    forked = await fork_from_iteration(
        first.run_id,
        1,
        changes={"loop.recipe": "greedy", "budget.attempts": "1"},
        settings=settings,
        model=ScriptedModel([]),
    )
    assert forked.outcome in ("not_healed", "budget_exhausted")
    started = events_of(settings, forked.run_id)[0].data
    assert (started["recipe"], started["limits"]["attempts"]) == ("greedy", 1)
    with pytest.raises(UsageError, match="recipes"):
        await fork_from_iteration(first.run_id, 1, changes={"loop.recipes": "x"}, settings=settings)
    with pytest.raises(UsageError, match="samples"):
        await fork_from_iteration(first.run_id, 1, changes={"loop.samples": "many"}, settings=settings)


async def test_a_hint_is_in_every_later_prompt(settings: Settings, first: Result) -> None:
    model = ScriptedModel([RIGHT], repeat_last=True)
    forked = await fork_from_iteration(
        first.run_id, 2, hint="add it to itself", settings=settings, model=model
    )
    assert forked.outcome == "healed", forked.reason
    assert model.calls
    for call in model.calls:
        assert "add it to itself" in call.messages[-1].content
    assert (await replay(forked.run_id, settings=settings)).same


@pytest.mark.heavy
async def test_an_edited_candidate_is_judged_first(settings: Settings, first: Result) -> None:
    own = "def double(n):\n    return 2 * n\n"
    forked = await fork_from_iteration(
        first.run_id, 1, candidate=own, settings=settings, model=ScriptedModel([])
    )
    assert forked.outcome == "healed", forked.reason
    assert forked.candidate is not None
    assert forked.candidate.files["solution.py"] == own
    assert (await replay(forked.run_id, settings=settings)).same
    with pytest.raises(UsageError, match=r"conftest\.py"):
        await fork_from_iteration(
            first.run_id,
            1,
            candidate={"conftest.py": "x = 1\n"},
            settings=settings,
            model=ScriptedModel([]),
        )
    assert [event.kind for event in events_of(settings, "last")] == ["run.started", "run.failed"]


async def test_a_step_that_is_not_there_is_said_so(settings: Settings, first: Result) -> None:
    last = last_step(events_of(settings, first.run_id))
    with pytest.raises(UsageError, match=f"there are 0 to {last}"):
        await fork_from_iteration(first.run_id, 99, settings=settings)
    (settings.paths.home / "checkpoints.db").unlink()
    with pytest.raises(UsageError, match="checkpoints are gone"):
        await fork_from_iteration(first.run_id, 1, settings=settings)
