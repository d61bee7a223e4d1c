"""Reading an untrusted ledger is cheap, and content over the limits is refused with a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from suture.core.ledger import (
    Event,
    Ledger,
    RawPayload,
    encode_event,
    find_first_payload,
    follow_ledger,
    read_ledger,
)
from suture.core.ledger.kinds import RunFinished, RunStarted
from suture.core.tuning import MAX_EVENT_LINE_BYTES, MAX_JSON_VALUES, MAX_LEDGER_BYTES, MAX_TORN_LINES
from suture.errors import StorageError

NOTE = RawPayload(kind="note", data={"text": "a"})


def write_ledger(tmp_path: Path, line: bytes) -> Path:
    path = tmp_path / "run" / "ledger.jsonl"
    path.parent.mkdir()
    with Ledger(path) as ledger:
        ledger.append(NOTE)
    with path.open("ab") as file:
        file.write(line)
    return path


def make_event_line(data: str) -> bytes:
    return f'{{"seq":1,"time_s":1.0,"kind":"note","data":{data}}}\n'.encode()


def test_a_line_over_the_limit_is_refused_with_its_number(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, make_event_line(json.dumps({"text": "a" * MAX_EVENT_LINE_BYTES})))
    with pytest.raises(StorageError, match=r"line 2 of .*ledger.jsonl' is longer than 16 MiB") as caught:
        read_ledger(path)
    assert "move the run's folder away" in caught.value.remedy
    with pytest.raises(StorageError, match="16 MiB"):
        Ledger(path)


def test_an_unterminated_line_is_refused_at_the_limit(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"")
    with path.open("r+b") as file:
        file.seek(0, 2)
        file.truncate(file.tell() + 400 * MAX_EVENT_LINE_BYTES)  # a sparse file, which uses no disk space
    with pytest.raises(StorageError, match="line 2"):
        read_ledger(path)


def test_a_line_of_millions_of_values_is_refused(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, make_event_line('{"many":[' + "0," * MAX_JSON_VALUES + "0]}"))
    with pytest.raises(StorageError, match="up to line 2 it holds more than 6,000,000 values"):
        read_ledger(path)


def test_a_ledger_over_the_size_limit_is_refused(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"")
    with path.open("r+b") as file:
        for end in range(
            MAX_EVENT_LINE_BYTES // 2, MAX_LEDGER_BYTES + MAX_EVENT_LINE_BYTES, MAX_EVENT_LINE_BYTES // 2
        ):
            file.seek(end)
            file.write(b"\n")
    with pytest.raises(StorageError, match="longer than 128 MiB"):
        read_ledger(path)


def test_a_file_of_other_lines_is_not_a_ledger(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"x\n" * (MAX_TORN_LINES + 1))
    with pytest.raises(StorageError, match="more than 1,000 of its lines are no events"):
        read_ledger(path)


def test_an_event_over_the_limit_is_not_written(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"")
    with Ledger(path) as ledger:
        with pytest.raises(StorageError, match=r"'note' event .* is longer than 16 MiB"):
            ledger.append_all([NOTE, RawPayload(kind="note", data={"text": "a" * MAX_EVENT_LINE_BYTES})])
        ledger.append(NOTE)
    assert [event.seq for event in read_ledger(path).events] == [0, 1]


def test_following_a_ledger_fails_at_an_unterminated_line(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"a" * (MAX_EVENT_LINE_BYTES + 1))

    async def follow() -> list[int]:
        return [event.seq async for event in follow_ledger(path)]

    with pytest.raises(StorageError, match="longer than 16 MiB"):
        asyncio.run(follow())


def test_the_payload_of_an_event_is_decoded_once(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, make_event_line("{}"))
    for event in read_ledger(path).events:
        assert event.payload is event.payload
        assert "payload" in vars(event)


def test_a_long_ledger_is_read(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, b"".join(make_event_line('{"names":["a","b"]}') for _ in range(20_000)))
    assert len(read_ledger(path).events) == 20_001


def test_a_ledger_that_has_grown_is_read_from_where_the_last_reader_stopped(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, make_event_line('{"a":1}') + b'{"seq":2')
    first = read_ledger(path)
    assert (len(first.events), first.torn_lines) == (2, (3,))

    with path.open("ab") as file:
        file.write(b',"time_s":1.0,"kind":"note"}\n' + make_event_line('{"b":2}'))
    second = read_ledger(path)

    assert (len(second.events), second.torn_lines) == (4, ())
    assert all(known is again for known, again in zip(first.events, second.events, strict=False))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b'"n":3}', b'"n":7}'),  # as long as before
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b'"n":3}', b'"n":3333}'),
        lambda content: b"",
        lambda content: content[content.index(b"\n") + 1 :] * 3,
    ],
)
def test_a_ledger_that_was_changed_is_read_anew(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    path = write_ledger(tmp_path, b"".join(make_event_line(f'{{"n":{n}}}') for n in range(9)))
    read_ledger(path)
    path.write_bytes(change(path.read_bytes()))

    changed = read_ledger(path)
    copy = tmp_path / "copy" / "run" / "ledger.jsonl"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())

    assert changed == read_ledger(copy)


def test_the_first_event_of_a_kind_is_found_without_reading_the_rest(tmp_path: Path) -> None:
    started = encode_event(Event(seq=1, time_s=1.0, kind="run.started", data={"kind": "heal"}))
    damaged = b'{"seq":"x","time_s":1,"kind":"note"}\n'
    path = write_ledger(tmp_path, json.dumps(started).encode() + b"\n" + damaged)

    found = find_first_payload(path, RunStarted)

    assert found is not None
    assert found.kind == "heal"
    with pytest.raises(StorageError, match="line 3"):
        find_first_payload(path, RunFinished)
