"""The ledger appends events and reads them back, even after torn or damaged lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.core.ledger import Ledger, RawPayload, follow_ledger, read_ledger
from suture.errors import StorageError, UsageError


def test_appended_events_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        first = ledger.append(RawPayload(kind="run.started", data={"task": "é \ud83d", "n": 1}))
        second = ledger.append(RawPayload(kind="run.finished"))
        assert ledger.events == (first, second)
    reading = read_ledger(path)

    assert reading.events == (first, second)
    assert reading.torn_lines == ()
    assert [event.seq for event in reading.events] == [0, 1]


def test_an_event_does_not_change_with_the_callers_data(tmp_path: Path) -> None:
    data = {"pair": (1, 2), "list": [1]}
    with Ledger(tmp_path / "l") as ledger:
        event = ledger.append(RawPayload(kind="k", data=data))
        data["list"] = [1, 2]
        assert event.data == {"pair": [1, 2], "list": [1]}
        assert read_ledger(ledger.path).events == ledger.events


def test_a_reader_sees_each_acknowledged_event(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        for count in range(1, 6):
            ledger.append(RawPayload(kind="k", data={"n": count}))
            assert [event.data["n"] for event in read_ledger(ledger.path).events] == list(range(1, count + 1))


def test_a_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger(path), pytest.raises(UsageError, match="another process is writing"):
        Ledger(path)
    with Ledger(path) as ledger:
        ledger.append(RawPayload(kind="k"))


def test_a_torn_last_line_is_skipped_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger(path) as ledger:
        ledger.append(RawPayload(kind="k", data={"n": 1}))
    with path.open("ab") as file:
        file.write(b'{"seq":1,"time_s":1.0,"ki')

    assert [event.seq for event in read_ledger(path).events] == [0]
    assert read_ledger(path).torn_lines == (2,)
    with Ledger(path) as ledger:
        ledger.append(RawPayload(kind="k", data={"n": 2}))
        assert [event.data["n"] for event in ledger.events] == [1, 2]
    reading = read_ledger(path)
    assert [event.data["n"] for event in reading.events] == [1, 2]
    assert reading.torn_lines == (2,)


def test_an_event_without_its_newline_is_kept_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_bytes(b'{"seq":0,"time_s":1.0,"kind":"a","data":{}}')

    assert read_ledger(path).torn_lines == (1,)
    with Ledger(path) as ledger:
        ledger.append(RawPayload(kind="b"))
        assert [(event.seq, event.kind) for event in ledger.events] == [(0, "a"), (1, "b")]
        assert read_ledger(path).events == ledger.events


@pytest.mark.parametrize("line", [b"[]", b'"text"', b"{}", b"\xff\xfe", b'{"seq":0}', b"null"])
def test_a_line_that_is_not_an_event_is_reported(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "l"
    event_line = json.dumps({"seq": 4, "time_s": 1.0, "kind": "a", "data": {}}).encode()
    path.write_bytes(line + b"\n" + event_line + b"\n")
    reading = read_ledger(path)

    assert reading.torn_lines == (1,)
    assert [event.seq for event in reading.events] == [4]
    with Ledger(path) as ledger:
        assert ledger.append(RawPayload(kind="b")).seq == 5  # a number is never used twice


def test_an_empty_ledger_has_no_events(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.touch()
    assert read_ledger(path).events == ()
    assert read_ledger(path).torn_lines == ()


def test_a_missing_or_uncreatable_ledger_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_ledger(tmp_path / "none")
    with pytest.raises(StorageError, match="cannot be opened"):
        Ledger(tmp_path / "no folder" / "l")


def test_a_value_that_is_not_json_is_not_appended(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        with pytest.raises(TypeError):
            ledger.append(RawPayload(kind="k", data={"x": object()}))
        ledger.append(RawPayload(kind="k"))
        assert [event.seq for event in read_ledger(ledger.path).events] == [0]


MALFORMED_FIELDS = [
    {"seq": "1"},
    {"seq": True},
    {"time_s": "now"},
    {"time_s": None},
    {"time_s": 10**400},
    {"time_s": 1e308},
    {"time_s": float("nan")},
    {"kind": 7},
    {"data": [1]},
    {"data": "text"},
    {"data": {"attempts": "1", "tokens": 5}},
    {"data": {"attempts": 1.5, "tokens": 5}},
    {"data": {"attempts": 1, "tokens": [5]}},
    {"data": {"attempts": 1}},
    {"data": {"attempts": 1, "tokens": 5, "money": "free"}},
    {"data": {"attempts": 1, "tokens": 5, "money": 10**400}},
    {"data": {"attempts": 1, "tokens": 5, "branch": "first"}},
    {"kind": "budget.settled", "data": {"reservation": {}}},
    {"kind": "moves.decided", "data": {"decision": "one"}},
    {"kind": "moves.decided", "data": {"moves": "repair"}},
    {"kind": "run.finished", "data": {"result": ["blob"]}},
    {"kind": "run.started", "data": {"limits": 5}},
    {"kind": "candidate.proposed", "data": {"candidate": {}}},
]


@pytest.mark.parametrize("malformed", MALFORMED_FIELDS, ids=str)
async def test_a_line_with_wrong_types_is_damage_with_file_and_line(
    tmp_path: Path, malformed: dict[str, object]
) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(RawPayload(kind="run.started", data={"kind": "write"}))
    line = {"seq": 1, "time_s": 1.0, "kind": "budget.reserved", "data": {"attempts": 1, "tokens": 5}}
    with path.open("ab") as file:
        file.write(json.dumps({**line, **malformed}).encode() + b"\n")

    with pytest.raises(StorageError, match=r"line 2 of .* is damaged") as caught:
        read_ledger(path)
    assert str(path) in caught.value.message
    assert caught.value.remedy

    with pytest.raises(StorageError, match="is damaged"):
        Ledger(path)

    with pytest.raises(StorageError, match="is damaged"):
        [event async for event in follow_ledger(path)]
