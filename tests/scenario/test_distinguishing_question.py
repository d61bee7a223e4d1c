"""Two repairs pass but behave differently: their agreement is recorded, and the user may choose one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_runs import add_healed_run
from run_events import read_event_data, read_events
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
from suture.core.ledger import Ledger, RunFolder, find_run
from suture.core.ledger.kinds import FoundRepair, ReviewAsked, SearchFinished
from suture.core.records import Candidate
from suture.core.settings import RepairSettings, Settings
from suture.errors import UsageError
from suture.loop.review.questions import load_review
from suture.testing import ScriptedModel

pytestmark = pytest.mark.timeout(300)  # the searches are slow on a busy machine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one test, which both a sum and a product pass."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "calc.py").write_text("def joined(a, b):\n    return a - b\n")
    (root / "test_calc.py").write_text(
        "from calc import joined\n\n\ndef test_joined():\n    assert joined(2, 2) == 4\n"
    )
    return root


@pytest.fixture
def search_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"repair": RepairSettings(candidates=60)})


def evaluate_call(candidate: Candidate, call: str) -> str:
    """Return the representation of a call's result with the code of a candidate."""
    namespace: dict[str, object] = {}
    # The code is this file's fixture, changed by Suture's own operators.
    exec(candidate.files["calc.py"], namespace)
    return repr(eval(call, namespace))


@pytest.mark.heavy
@pytest.mark.parametrize("position", [0, 1])
async def test_the_users_answer_decides_and_is_replayed(
    project: Path, search_settings: Settings, position: int
) -> None:
    questions: list[DistinguishingInput] = []

    def ask(difference: DistinguishingInput) -> Choice:
        questions.append(difference)
        return "first" if position == 0 else "second"

    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=search_settings, model=ScriptedModel([]), ask=ask)
    )

    assert result.outcome == "healed", result.reason
    (difference,) = questions
    assert len(set(difference.answer_pair)) == 2
    assert result.candidate is not None
    assert evaluate_call(result.candidate, difference.call) == difference.answer_pair[position]
    (answered,) = read_event_data(search_settings.paths.home, "user.answered", result.run_id)
    assert answered["answers"] == list(difference.answer_pair)

    replayed = await replay(result.run_id, settings=search_settings)
    assert replayed.result.candidate == result.candidate
    replayed_answers = read_event_data(search_settings.paths.home, "user.answered", replayed.result.run_id)
    assert [answer["choice"] for answer in replayed_answers]


@pytest.mark.parametrize(("recorded", "shown"), [(0, ()), (2, ()), (3, ("0", "2"))])
def test_the_code_of_two_repairs_is_shown_only_if_both_are_recorded(
    tmp_path: Path, recorded: int, shown: tuple[str, ...]
) -> None:
    run = RunFolder(tmp_path / "runs" / add_healed_run(tmp_path, tmp_path, {}))
    repairs = tuple(FoundRepair(label=str(number), file="m.py", score=1.0) for number in range(recorded))
    with Ledger(run.ledger_path) as ledger:
        ledger.append(SearchFinished(candidates_tried=9, repairs=repairs))
    difference = DistinguishingInput(call="f(0)", answers={}, answers_by_repair=("1", "1", "2"))
    question = ReviewAsked(key="k", stage="distinguish", distinguishing_input=difference)
    assert tuple(change.label for change in load_review(run, question).changes) == shown


@pytest.mark.heavy
async def test_an_unanswered_question_parks_the_run_and_is_answered_later(
    project: Path, search_settings: Settings
) -> None:
    parked = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=search_settings, model=ScriptedModel([]), ask=True)
    )
    assert parked.outcome == "waiting"
    review = pending_review(parked.run_id, settings=search_settings)
    assert review is not None
    assert review.stage == "distinguish"
    assert review.difference is not None
    assert len({change.diff for change in review.changes}) == 2
    assert (parked.reason.code, parked.reason.detail) == ("waiting_for_answer", "distinguish")
    approve = ReviewAnswer(choice="approve")
    with pytest.raises(UsageError, match="does not answer the question"):
        await resume(parked.run_id, settings=search_settings, model=ScriptedModel([]), answer=approve)
    searches = [
        event
        for event in read_events(search_settings.paths.home, parked.run_id)
        if event.kind == "search.started"
    ]

    answer = ReviewAnswer(choice="second")
    result = await resume(parked.run_id, settings=search_settings, model=ScriptedModel([]), answer=answer)
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    difference = review.difference
    assert evaluate_call(result.candidate, difference.call) == difference.answer_pair[1]
    assert [
        event
        for event in read_events(search_settings.paths.home, parked.run_id)
        if event.kind == "search.started"
    ] == searches
    replayed = await replay(parked.run_id, settings=search_settings)
    assert (replayed.result.candidate, replayed.difference) == (result.candidate, None)


@pytest.mark.heavy
async def test_an_answer_may_be_asynchronous_and_undecided(project: Path, search_settings: Settings) -> None:
    questions: list[DistinguishingInput] = []

    async def ask(difference: DistinguishingInput) -> Choice | None:
        await asyncio.sleep(0)
        questions.append(difference)
        return None

    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=search_settings, model=ScriptedModel([]), ask=ask)
    )

    assert result.outcome == "healed", result.reason
    assert len(questions) == 1
    assert read_event_data(search_settings.paths.home, "user.answered", result.run_id) == []


@pytest.mark.heavy
async def test_the_model_is_called_when_neither_repair_is_right(
    project: Path, search_settings: Settings
) -> None:
    power = "```python\ndef joined(a, b):\n    return a**b\n```"
    model = ScriptedModel([power], repeat_last=True)

    result = await heal(
        project,
        HealOptions(
            test=BARE_PYTEST, settings=search_settings, model=model, ask=lambda difference: "neither"
        ),
    )

    assert result.outcome == "healed", result.reason
    rejected = read_event_data(search_settings.paths.home, "user.answered", result.run_id)[0]["answers"]
    (finished,) = read_event_data(search_settings.paths.home, "search.finished", result.run_id)
    remaining = [
        answer for answer in finished["distinguishing_input"]["answers_by_repair"] if answer not in rejected
    ]
    proposed = read_event_data(search_settings.paths.home, "candidate.proposed", result.run_id)
    assert {data["origin"] for data in proposed} == ({"mutation"} if remaining else {"repair"})


@pytest.mark.heavy
async def test_the_certificate_records_the_agreement_of_the_repairs(
    project: Path, search_settings: Settings
) -> None:
    result = await heal(
        project, HealOptions(test=BARE_PYTEST, settings=search_settings, model=ScriptedModel([]))
    )

    assert result.outcome == "healed", result.reason
    folder = find_run(search_settings.paths.home, result.run_id)
    events = read_events(search_settings.paths.home, result.run_id)
    assert not [event for event in events if event.kind == "user.answered"]
    proposed = next(event.data for event in events if event.kind == "candidate.proposed")
    assert 0 <= proposed["agreement"] < 1
    certificate = json.loads((folder.path / "certificate.json").read_text())
    assert certificate["claims"]["agreement"] == proposed["agreement"]

    findings = [finding async for finding in verify(result.run_id, settings=search_settings)]
    assert [finding.name for finding in findings if not finding.ok] == []
