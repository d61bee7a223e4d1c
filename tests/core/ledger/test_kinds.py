"""Events of each kind are encoded without loss, and unknown ones are kept but skipped."""

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

plans = st.just(Plan(subtasks=(Subtask(goal="a"), Subtask(goal="b", needs=(1,)))))
SCALARS: Mapping[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Any: st.none() | st.booleans() | st.text(),
    Plan: plans,
}


def values_for(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if origin in (Union, types.UnionType):
        return st.none() | values_for(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(values_for(arguments[0]), min_size=1, max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(st.text(), values_for(arguments[1]), max_size=3)
    assert is_dataclass(hint), hint
    assert isinstance(hint, type), hint
    hints = get_type_hints(hint)
    return st.builds(hint, **{field.name: values_for(hints[field.name]) for field in fields(hint)})


def encode_and_decode(payload: Payload) -> Payload:
    data = json.loads(json.dumps(encode_payload(payload)))
    return decode_payload(payload.event_kind, data, payload.event_version)


@pytest.mark.parametrize("kind", CATALOGUE)
@settings(max_examples=20)
@given(data=st.data())
def test_every_kind_is_encoded_without_loss(kind: str, data: st.DataObject) -> None:
    payload = data.draw(values_for(CATALOGUE[kind]))
    assert encode_and_decode(payload) == payload


@pytest.mark.parametrize("kind", CATALOGUE)
def test_a_kind_is_named_like_its_class(kind: str) -> None:
    words = kind.replace(".", "_").split("_")
    assert CATALOGUE[kind].__name__ == "".join(word.capitalize() for word in words)


def test_every_kind_and_every_field_is_described() -> None:
    stages = list(describe_events())
    kinds = [kind for stage in stages for kind in (*stage.kinds, *stage.values)]
    assert {kind.name for stage in stages for kind in stage.kinds} == CATALOGUE.keys()
    assert [kind.name for kind in kinds if not kind.text] == []
    undescribed = [(kind.name, field.name) for kind in kinds for field in kind.fields if not field.text]
    assert undescribed == []


def test_an_event_knows_its_run(tmp_path: Path) -> None:
    path = tmp_path / "20261123-120000000-abc123" / "ledger.jsonl"
    path.parent.mkdir()
    with Ledger(path) as ledger:
        event = ledger.append(MoveFailed(error_type="MalformedReply", message="no code"))
        assert event.run == path.parent.name

    assert read_ledger(path).events == (event,)
    assert "run" not in json.loads(path.read_text())  # the folder names the run, also for a copied ledger


def test_every_field_is_encoded() -> None:
    data = encode_payload(ModelCalled(prompt_tokens=3, completion_tokens=4))
    assert data.keys() == {field.name for field in fields(ModelCalled)}


def make_event(kind: str, data: dict[str, Any], **more: Any) -> Event:
    return Event(seq=0, time_s=0.0, kind=kind, data=data, **more)


DECISION_DATA = {"decision": 1, "round": 0, "moves": [{"kind": "sample"}], "best": None}


def test_fields_of_a_newer_version_are_kept_in_the_data() -> None:
    newer = make_event(
        "moves.decided", {**DECISION_DATA, "colour": "blue", "moves": [{"kind": "sample", "size": 3}]}
    )
    assert newer.payload == MovesDecided(decision=1, round=0, moves=(Move(kind="sample"),), best=None)
    assert newer.data["colour"] == "blue"


@pytest.mark.parametrize(
    "unknown",
    [
        make_event("never.known", {"a": 1}),
        make_event("moves.decided", DECISION_DATA, version=2),
        make_event("moves.decided", {**DECISION_DATA, "moves": [{"kind": "dance"}]}),
        make_event("moves.decided", {**DECISION_DATA, "moves": []}),
        make_event("moves.decided", {"b": 2}),
        make_event("triage.finished", {"cause": "fate", "non_code_failures": [], "code_failure_count": 0}),
    ],
    ids=lambda unknown: f"{unknown.kind}-{unknown.version}",
)
def test_unknown_events_are_kept_and_skipped(tmp_path: Path, unknown: Event) -> None:
    assert unknown.payload == RawPayload(kind=unknown.kind, data=unknown.data, version=unknown.version)
    assert first_payload([unknown], CATALOGUE.get(unknown.kind, MovesDecided)) is None
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ledger.append_all(copy_events_for_fork([unknown], "r0", offset=0))
    (copied,) = read_ledger(tmp_path / "ledger.jsonl").events
    assert (copied.kind, copied.version) == (unknown.kind, unknown.version)
    assert copied.data == {**unknown.data, "from_run": "r0"}


def test_unknown_keys_beside_the_data_are_ignored(tmp_path: Path) -> None:
    line = {"seq": 0, "time_s": 1.0, "kind": "moves.decided", "data": DECISION_DATA, "host": "another"}
    (tmp_path / "ledger.jsonl").write_text(json.dumps(line) + "\n")
    (event,) = read_ledger(tmp_path / "ledger.jsonl").events
    assert isinstance(event.payload, MovesDecided)


def test_malformed_budget_events_are_not_skipped(tmp_path: Path) -> None:
    for kind, payload_class in CATALOGUE.items():
        assert payload_class.event_counted == (payload_class in (BudgetReserved, BudgetSettled)), kind
    line = {"seq": 0, "time_s": 1.0, "kind": "budget.settled", "data": {"reservation": 0}}
    (tmp_path / "ledger.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(StorageError, match=r"BudgetSettled\.attempts is missing"):
        read_ledger(tmp_path / "ledger.jsonl")


def test_a_missing_field_has_its_default() -> None:
    payload = make_event("model.called", {"prompt_tokens": 3, "completion_tokens": 4}).payload
    assert isinstance(payload, ModelCalled)
    assert (payload.retries, payload.replayed, payload.money) == (0, False, None)


def test_a_git_branch_is_not_a_round_branch(tmp_path: Path) -> None:
    commit = CommitMade(root="/p", parent="a", branch="heal", commit="c")
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        commit_event = ledger.append(commit)
        move_event = ledger.append(
            RawPayload(kind="moves.decided", data={**DECISION_DATA, "step": 1, "branch": 2, "part": 3})
        )

    assert (commit_event.branch, commit_event.payload) == (None, commit)
    assert (move_event.step, move_event.branch, move_event.part) == (1, 2, 3)
    assert read_ledger(tmp_path / "ledger.jsonl").events == (commit_event, move_event)


def test_a_fork_refuses_a_settlement_without_a_reservation() -> None:
    settled = Event(
        seq=1,
        time_s=1.0,
        kind="budget.settled",
        data={"reservation": 7, "attempts": 1, "prompt_tokens": 1, "completion_tokens": 1, "model_calls": 1},
    )
    with pytest.raises(StorageError, match="event 1 settles what was not reserved"):
        copy_events_for_fork([settled], "r0", offset=0)
