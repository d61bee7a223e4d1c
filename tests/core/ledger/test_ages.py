"""Ledgers as older versions of Suture wrote them: runs of the same two tasks, by the code of their day.

1: the first that could write code. 2: runs can be done again. 3: a search without a model. 4: half a day
before the catalogue of events. 5: the last before it. The folders in them are made up; all else is as it
was written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.ledger import RawPayload, first_of, last_end, last_of, read_ledger, spend_of, those_of
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    Decided,
    ModelCalled,
    RunFinished,
    RunStarted,
    SearchFinished,
)

AGES = sorted((Path(__file__).parent / "ages").glob("*.jsonl"))
WRITES = [age for age in AGES if "write" in age.stem]
HEALS = [age for age in AGES if "heal" in age.stem]


def test_there_is_one_of_each_age() -> None:
    assert [age.stem for age in WRITES] == [f"{number}-write" for number in (1, 2, 3, 4, 5)]
    assert [age.stem for age in HEALS] == [f"{number}-heal" for number in (3, 4, 5)]


@pytest.mark.parametrize("age", AGES, ids=lambda age: age.stem)
def test_nothing_of_an_older_ledger_is_passed_over(age: Path) -> None:
    reading = read_ledger(age)
    assert reading.torn_lines == ()
    assert [event.kind for event in reading.events if isinstance(event.payload, RawPayload)] == []
    started, end = first_of(reading.events, RunStarted), last_end(reading.events)
    assert started is not None
    assert started.kind == age.stem.partition("-")[2]
    assert end is not None
    assert isinstance(end.payload, RunFinished)
    assert end.payload.outcome == "healed"


@pytest.mark.parametrize("age", WRITES, ids=lambda age: age.stem)
def test_what_was_spent_and_tried_in_an_older_run(age: Path) -> None:
    events = read_ledger(age).events
    spend = spend_of(events)
    assert (spend.attempts, spend.tokens, spend.model_calls) == (5, 630, 5)
    assert len(list(those_of(events, ModelCalled))) == 5
    proposed = {one.candidate for _, one in those_of(events, CandidateProposed)}
    checked = [one for _, one in those_of(events, CandidateChecked)]
    assert {one.candidate for one in checked} == proposed
    assert max((one.passed, -one.failed) for one in checked) == (2, 0)
    decided = [one.moves[0].kind for _, one in those_of(events, Decided)]
    assert decided[-1] == "stop"


@pytest.mark.parametrize("age", HEALS, ids=lambda age: age.stem)
def test_what_an_older_search_found(age: Path) -> None:
    found = last_of(read_ledger(age).events, SearchFinished)
    assert found is not None
    assert found.plausible == len(found.repairs) == 1
    assert found.faults[0].path == "cart.py"
    assert all(change.label for change in found.partial)
