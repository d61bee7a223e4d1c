"""The kinds of events: each survives the disk, and unknown ones are kept and skipped."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.event_types import describe_events
from suture.core.ledger import (
    CATALOGUE,
    Event,
    Ledger,
    Payload,
    RawPayload,
    copy_events_for_fork,
    first_payload,
    read_ledger,
)
from suture.core.ledger.event import decode_payload, encode_payload
from suture.core.ledger.kinds import (
    BudgetReserved,
    BudgetSettled,
    CommitMade,
    ModelCalled,
    MoveFailed,
    MovesDecided,
)
from suture.core.records import Move, Plan, Subtask
from suture.errors import StorageError

PLANS = st.just(Plan(subtasks=(Subtask(goal="a"), Subtask(goal="b", needs=(1,)))))
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Any: st.none() | st.booleans() | st.text(),
    Plan: PLANS,
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that a field can have."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if origin in (Union, types.UnionType):
        return st.none() | values(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(values(arguments[0]), min_size=1, max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(), values(arguments[1]), max_size=3)
    assert is_dataclass(hint), hint
    assert isinstance(hint, type), hint
    hints = get_type_hints(hint)
    return st.builds(hint, **{one.name: values(hints[one.name]) for one in fields(hint)})


def through_disk(payload: Payload) -> Payload:
    data = json.loads(json.dumps(encode_payload(payload)))
    return decode_payload(payload.event_kind, data, payload.event_version)


@pytest.mark.parametrize("kind", CATALOGUE)
@settings(max_examples=20)
@given(data=st.data())
def test_every_kind_survives_the_disk(kind: str, data: st.DataObject) -> None:
    payload = data.draw(values(CATALOGUE[kind]))
    assert through_disk(payload) == payload


@pytest.mark.parametrize("kind", CATALOGUE)
def test_a_kind_is_called_as_its_type(kind: str) -> None:
    words = kind.replace(".", "_").split("_")
    assert CATALOGUE[kind].__name__ == "".join(word.capitalize() for word in words)


def test_every_kind_and_every_field_is_described() -> None:
    stages = list(describe_events())
    told = [kind for stage in stages for kind in (*stage.kinds, *stage.values)]
    assert {kind.name for stage in stages for kind in stage.kinds} == CATALOGUE.keys()
    assert [kind.name for kind in told if not kind.text] == []
    without = [(kind.name, field.name) for kind in told for field in kind.fields if not field.text]
    assert without == []


def test_an_event_says_which_run_it_is_of(tmp_path: Path) -> None:
    path = tmp_path / "20261123-120000000-abc123" / "ledger.jsonl"
    path.parent.mkdir()
    with Ledger(path) as ledger:
        event = ledger.append(MoveFailed(error_type="MalformedReply", message="no code"))
        assert event.run == path.parent.name
    assert read_ledger(path).events == (event,)
    assert "run" not in json.loads(path.read_text())  # its place says so, also where it was copied to


def test_every_field_is_written() -> None:
    data = encode_payload(ModelCalled(prompt_tokens=3, completion_tokens=4))
    assert data.keys() == {one.name for one in fields(ModelCalled)}


def event(kind: str, data: dict[str, Any], **more: Any) -> Event:
    return Event(seq=0, time_s=0.0, kind=kind, data=data, **more)


DECIDED = {"decision": 1, "round": 0, "moves": [{"kind": "sample"}], "best": None}


def test_fields_of_a_newer_version_are_kept_and_ignored() -> None:
    newer = event("moves.decided", {**DECIDED, "colour": "blue", "moves": [{"kind": "sample", "size": 3}]})
    assert newer.payload == MovesDecided(decision=1, round=0, moves=(Move(kind="sample"),), best=None)
    assert newer.data["colour"] == "blue"


@pytest.mark.parametrize(
    "unknown",
    [
        event("never.known", {"a": 1}),
        event("moves.decided", DECIDED, version=2),
        event("moves.decided", {**DECIDED, "moves": [{"kind": "dance"}]}),
        event("moves.decided", {**DECIDED, "moves": []}),
        event("moves.decided", {"b": 2}),
        event("triage.finished", {"cause": "fate", "non_code_failures": [], "code_failure_count": 0}),
    ],
    ids=lambda unknown: f"{unknown.kind}-{unknown.version}",
)
def test_unknown_events_are_kept_and_skipped(tmp_path: Path, unknown: Event) -> None:
    assert unknown.payload == RawPayload(kind=unknown.kind, data=unknown.data, version=unknown.version)
    assert first_payload([unknown], CATALOGUE.get(unknown.kind, MovesDecided)) is None
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ledger.append_all(copy_events_for_fork([unknown], "r0", offset=0))
    (kept,) = read_ledger(tmp_path / "ledger.jsonl").events
    assert (kept.kind, kept.version) == (unknown.kind, unknown.version)
    assert kept.data == {**unknown.data, "from_run": "r0"}


def test_a_line_with_more_around_its_data_is_read(tmp_path: Path) -> None:
    line = {"seq": 0, "time_s": 1.0, "kind": "moves.decided", "data": DECIDED, "host": "another"}
    (tmp_path / "ledger.jsonl").write_text(json.dumps(line) + "\n")
    (read,) = read_ledger(tmp_path / "ledger.jsonl").events
    assert isinstance(read.payload, MovesDecided)


def test_events_that_the_budget_depends_on_are_never_skipped(tmp_path: Path) -> None:
    for kind, counted in CATALOGUE.items():
        assert counted.event_counted == (counted in (BudgetReserved, BudgetSettled)), kind
    line = {"seq": 0, "time_s": 1.0, "kind": "budget.settled", "data": {"reservation": 0}}
    (tmp_path / "ledger.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(StorageError, match=r"BudgetSettled\.attempts is missing"):
        read_ledger(tmp_path / "ledger.jsonl")


def test_a_missing_field_has_its_default() -> None:
    called = event("model.called", {"prompt_tokens": 3, "completion_tokens": 4}).payload
    assert isinstance(called, ModelCalled)
    assert (called.retries, called.replayed, called.money) == (0, False, None)


def test_a_branch_of_git_is_no_place_in_the_run(tmp_path: Path) -> None:
    made = CommitMade(root="/p", parent="a", branch="heal", commit="c")
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        written = ledger.append(made)
        placed = ledger.append(
            RawPayload(kind="moves.decided", data={**DECIDED, "step": 1, "branch": 2, "part": 3})
        )
    assert (written.branch, written.payload) == (None, made)
    assert (placed.step, placed.branch, placed.part) == (1, 2, 3)
    assert read_ledger(tmp_path / "ledger.jsonl").events == (written, placed)


def test_a_fork_of_a_ledger_that_settles_what_was_never_reserved_is_refused() -> None:
    settled = Event(
        seq=1,
        time_s=1.0,
        kind="budget.settled",
        data={"reservation": 7, "attempts": 1, "prompt_tokens": 1, "completion_tokens": 1, "model_calls": 1},
    )
    with pytest.raises(StorageError, match="event 1 settles what was not reserved"):
        copy_events_for_fork([settled], "r0", offset=0)
