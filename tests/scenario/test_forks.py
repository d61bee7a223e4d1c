"""Forks from a step of another run: earlier steps are neither repeated nor paid for again."""

from __future__ import annotations

import pytest

from project_files import read_tree
from run_events import read_events
from suture.api import WriteOptions, fork_from_iteration, replay, solve
from suture.core.ledger import find_run, last_step
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
async def first_run(settings: Settings) -> Result:
    """A run with one wrong sample, two more wrong samples, then two right repairs."""
    result = await solve(TASK, WriteOptions(settings=settings, model=make_model()))
    assert result.outcome == "healed", result.reason
    return result


def make_model() -> ScriptedModel:
    return ScriptedModel([WRONG, WRONG_TOO, WRONG_TOO, RIGHT], repeat_last=True)


def list_replayed_calls(settings: Settings, run: str) -> list[bool]:
    """Return for each model call whether it was answered from the record."""
    return [
        event.data["replayed"]
        for event in read_events(settings.paths.home, run)
        if event.kind == "model.called"
    ]


async def test_an_unchanged_fork_ends_alike_without_model_calls(
    settings: Settings, first_run: Result
) -> None:
    folder = find_run(settings.paths.home, first_run.run_id).path
    before = read_tree(folder)

    for step in range(last_step(read_events(settings.paths.home, first_run.run_id)) + 1):
        model = ScriptedModel([])
        forked = await fork_from_iteration(first_run.run_id, step, settings=settings, model=model)
        assert (forked.outcome, forked.diff) == (first_run.outcome, first_run.diff), step
        assert (forked.spend.model_calls, model.calls) == (0, [])
        assert forked.spend.attempts == first_run.spend.attempts
        assert forked.spend.tokens == first_run.spend.tokens
        assert all(list_replayed_calls(settings, forked.run_id))

    assert read_tree(folder) == before


@pytest.mark.heavy
async def test_a_fork_continues_with_another_model(settings: Settings, first_run: Result) -> None:
    model = ScriptedModel([RIGHT], name="scripted:another", repeat_last=True)

    forked = await fork_from_iteration(first_run.run_id, 1, settings=settings, model=model)

    assert forked.outcome == "healed", forked.reason
    assert len(model.calls) == 2  # the two samples of the second round; the greedy one comes from the record
    assert list_replayed_calls(settings, forked.run_id) == [True, False, False]
    assert (forked.spend.attempts, forked.spend.model_calls) == (3, 2)

    replayed = await replay(forked.run_id, settings=settings)
    assert replayed.same, str(replayed.difference)
    assert replayed.result.diff == forked.diff
    uncalled = ScriptedModel([], name="scripted:another")
    forked_again = await fork_from_iteration(forked.run_id, 1, settings=settings, model=uncalled)
    assert (forked_again.diff, uncalled.calls) == (forked.diff, [])


async def test_a_fork_can_change_settings_and_the_recipe(settings: Settings, first_run: Result) -> None:
    forked = await fork_from_iteration(
        first_run.run_id,
        1,
        changes={"loop.recipe": "greedy", "budget.attempts": "1"},
        settings=settings,
        model=ScriptedModel([]),
    )

    assert forked.outcome in ("not_healed", "budget_exhausted")
    started = read_events(settings.paths.home, forked.run_id)[0].data
    assert (started["recipe"], started["limits"]["attempts"]) == ("greedy", 1)

    with pytest.raises(UsageError, match="recipes"):
        await fork_from_iteration(first_run.run_id, 1, changes={"loop.recipes": "x"}, settings=settings)

    with pytest.raises(UsageError, match="samples"):
        await fork_from_iteration(first_run.run_id, 1, changes={"loop.samples": "many"}, settings=settings)


async def test_a_forks_hint_is_in_every_later_prompt(settings: Settings, first_run: Result) -> None:
    model = ScriptedModel([RIGHT], repeat_last=True)

    forked = await fork_from_iteration(
        first_run.run_id, 2, hint="add it to itself", settings=settings, model=model
    )

    assert forked.outcome == "healed", forked.reason
    assert model.calls
    for call in model.calls:
        assert "add it to itself" in call.messages[-1].content
    assert (await replay(forked.run_id, settings=settings)).same


@pytest.mark.heavy
async def test_a_forks_edited_candidate_is_judged_first(settings: Settings, first_run: Result) -> None:
    edited = "def double(n):\n    return 2 * n\n"

    forked = await fork_from_iteration(
        first_run.run_id, 1, candidate=edited, settings=settings, model=ScriptedModel([])
    )

    assert forked.outcome == "healed", forked.reason
    assert forked.candidate is not None
    assert forked.candidate.files["solution.py"] == edited
    assert (await replay(forked.run_id, settings=settings)).same

    with pytest.raises(UsageError, match=r"conftest\.py"):
        await fork_from_iteration(
            first_run.run_id,
            1,
            candidate={"conftest.py": "x = 1\n"},
            settings=settings,
            model=ScriptedModel([]),
        )
    assert [event.kind for event in read_events(settings.paths.home)] == ["run.started", "run.failed"]


async def test_a_missing_step_or_checkpoint_is_refused(settings: Settings, first_run: Result) -> None:
    last = last_step(read_events(settings.paths.home, first_run.run_id))
    with pytest.raises(UsageError, match=f"there are 0 to {last}"):
        await fork_from_iteration(first_run.run_id, 99, settings=settings)
    (settings.paths.home / "checkpoints.db").unlink()
    with pytest.raises(UsageError, match="checkpoints are gone"):
        await fork_from_iteration(first_run.run_id, 1, settings=settings)
