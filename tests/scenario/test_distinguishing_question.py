"""Two repairs that pass and differ: their agreement counts, and the user may choose one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import (
    Choice,
    DistinguishingInput,
    HealOptions,
    ReviewAnswer,
    heal,
    pending_review,
    replay,
    resume,
    verify,
)
from suture.core.ledger import Event, find_run, read_ledger
from suture.core.settings import RepairSettings, Settings
from suture.errors import UsageError
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)  # searches: slow where the machine is busy with other work
TEST = BARE_PYTEST


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With this one test both a sum and a product pass."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "calc.py").write_text("def joined(a, b):\n    return a - b\n")
    (root / "test_calc.py").write_text(
        "from calc import joined\n\n\ndef test_joined():\n    assert joined(2, 2) == 4\n"
    )
    return root


@pytest.fixture
def searching(settings: Settings) -> Settings:
    return settings.model_copy(update={"repair": RepairSettings(candidates=60)})


def events_of(settings: Settings, run: str) -> tuple[Event, ...]:
    return tuple(read_ledger(find_run(settings.paths.home, run).ledger_path).events)


@pytest.mark.heavy
@pytest.mark.parametrize("place", [0, 1])
async def test_what_the_user_says_decides_and_a_replay_says_the_same(
    project: Path, searching: Settings, place: int
) -> None:
    asked: list[DistinguishingInput] = []

    def ask(difference: DistinguishingInput) -> Choice:
        asked.append(difference)
        return "first" if place == 0 else "second"

    result = await heal(project, HealOptions(test=TEST, settings=searching, model=ScriptedModel([]), ask=ask))
    assert result.outcome == "healed", result.reason
    (difference,) = asked
    assert len(set(difference.answer_pair)) == 2
    assert result.candidate is not None
    namespace: dict[str, object] = {}
    exec(result.candidate.files["calc.py"], namespace)  # our own fixture, changed by our own operators
    assert repr(eval(difference.call, namespace)) == difference.answer_pair[place]
    (answered,) = [
        event.data for event in events_of(searching, result.run_id) if event.kind == "user.answered"
    ]
    assert answered["answers"] == list(difference.answer_pair)
    again = await replay(result.run_id, settings=searching)
    assert again.result.candidate == result.candidate
    assert [e.data["choice"] for e in events_of(searching, again.result.run_id) if e.kind == "user.answered"]


@pytest.mark.heavy
async def test_a_question_that_nobody_answers_parks_the_run_and_is_answered_later(
    project: Path, searching: Settings
) -> None:
    parked = await heal(
        project, HealOptions(test=TEST, settings=searching, model=ScriptedModel([]), ask=True)
    )
    assert parked.outcome == "waiting"
    asked = pending_review(parked.run_id, settings=searching)
    assert asked is not None
    assert asked.stage == "distinguish"
    assert asked.difference is not None
    assert (parked.reason.code, parked.reason.detail) == ("waiting_for_answer", "distinguish")
    approve = ReviewAnswer(choice="approve")
    with pytest.raises(UsageError, match="does not answer the question"):
        await resume(parked.run_id, settings=searching, model=ScriptedModel([]), answer=approve)
    searches = [e for e in events_of(searching, parked.run_id) if e.kind == "search.started"]

    answer = ReviewAnswer(choice="second")
    result = await resume(parked.run_id, settings=searching, model=ScriptedModel([]), answer=answer)
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    namespace: dict[str, object] = {}
    exec(result.candidate.files["calc.py"], namespace)  # our own fixture, changed by our own operators
    assert repr(eval(asked.difference.call, namespace)) == asked.difference.answer_pair[1]
    assert [e for e in events_of(searching, parked.run_id) if e.kind == "search.started"] == searches
    again = await replay(parked.run_id, settings=searching)
    assert (again.result.candidate, again.difference) == (result.candidate, None)


@pytest.mark.heavy
async def test_an_answer_may_take_its_time_and_may_be_that_nobody_knows(
    project: Path, searching: Settings
) -> None:
    asked: list[DistinguishingInput] = []

    async def ask(difference: DistinguishingInput) -> Choice | None:
        await asyncio.sleep(0)
        asked.append(difference)
        return None

    result = await heal(project, HealOptions(test=TEST, settings=searching, model=ScriptedModel([]), ask=ask))
    assert result.outcome == "healed", result.reason
    assert len(asked) == 1
    assert not [event for event in events_of(searching, result.run_id) if event.kind == "user.answered"]


@pytest.mark.heavy
async def test_where_neither_is_right_the_model_is_asked(project: Path, searching: Settings) -> None:
    power = "```python\ndef joined(a, b):\n    return a**b\n```"
    model = ScriptedModel([power], repeat_last=True)
    result = await heal(
        project, HealOptions(test=TEST, settings=searching, model=model, ask=lambda difference: "neither")
    )
    assert result.outcome == "healed", result.reason
    wrong = next(e.data["answers"] for e in events_of(searching, result.run_id) if e.kind == "user.answered")
    (finished,) = [e.data for e in events_of(searching, result.run_id) if e.kind == "search.finished"]
    kept = [a for a in finished["distinguishing_input"]["answers_by_repair"] if a not in wrong]
    proposed = [e.data for e in events_of(searching, result.run_id) if e.kind == "candidate.proposed"]
    assert {data["origin"] for data in proposed} == ({"mutation"} if kept else {"repair"})


@pytest.mark.heavy
async def test_disagreement_among_plausible_repairs_is_in_the_certificate(
    project: Path, searching: Settings
) -> None:
    result = await heal(project, HealOptions(test=TEST, settings=searching, model=ScriptedModel([])))
    assert result.outcome == "healed", result.reason
    folder = find_run(searching.paths.home, result.run_id)
    events = events_of(searching, result.run_id)
    assert not [event for event in events if event.kind == "user.answered"]
    proposed = next(event.data for event in events if event.kind == "candidate.proposed")
    assert 0 <= proposed["agreement"] < 1
    certificate = json.loads((folder.path / "certificate.json").read_text())
    assert certificate["claims"]["agreement"] == proposed["agreement"]
    found = [finding async for finding in verify(result.run_id, settings=searching)]
    assert [finding.name for finding in found if not finding.ok] == []
