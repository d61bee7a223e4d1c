"""Ledgers as older versions of Suture wrote them: runs of the same two tasks, by the code of their day.

1: the first that could write code. 2: runs can be done again. 3: a search without a model. 4: half a day
before the catalogue of events. 5: the last before it. The folders in them are made up; all else is as it
was written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.ledger import (
    RawPayload,
    find_final_event,
    first_payload,
    last_payload,
    read_ledger,
    select_events,
    total_spend,
)
from suture.core.ledger.kinds import (
    CandidateChecked,
    CandidateProposed,
    ModelCalled,
    MovesDecided,
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
    started, end = first_payload(reading.events, RunStarted), find_final_event(reading.events)
    assert started is not None
    assert started.kind == age.stem.partition("-")[2]
    assert end is not None
    assert isinstance(end.payload, RunFinished)
    assert end.payload.outcome == "healed"


@pytest.mark.parametrize("age", WRITES, ids=lambda age: age.stem)
def test_what_was_spent_and_tried_in_an_older_run(age: Path) -> None:
    events = read_ledger(age).events
    spend = total_spend(events)
    assert (spend.attempts, spend.tokens, spend.model_calls) == (5, 630, 5)
    assert len(list(select_events(events, ModelCalled))) == 5
    proposed = {one.candidate for _, one in select_events(events, CandidateProposed)}
    checked = [one for _, one in select_events(events, CandidateChecked)]
    assert {one.candidate for one in checked} == proposed
    assert max((one.passed, -one.failed) for one in checked) == (2, 0)
    decided = [one.moves[0].kind for _, one in select_events(events, MovesDecided)]
    assert decided[-1] == "stop"


@pytest.mark.parametrize("age", HEALS, ids=lambda age: age.stem)
def test_what_an_older_search_found(age: Path) -> None:
    found = last_payload(read_ledger(age).events, SearchFinished)
    assert found is not None
    assert found.plausible_count == len(found.repairs) == 1
    assert found.faults[0].path == "cart.py"
    assert all(change.label for change in found.partial)
