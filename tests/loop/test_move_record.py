"""What a bandit remembers of earlier runs: small, atomic, and never in the way."""

from __future__ import annotations

from pathlib import Path

from suture.loop.move_record import add_to_record, read_record, recorded_moves
from suture.loop.progress import Tried
from suture.records import Event, Origin


def one(origin: Origin, *, solved: bool) -> Tried:
    return Tried(candidate="c", origin=origin, round=0, start=0, passed=1, failed=0 if solved else 1)


def test_moves_are_counted_by_model_and_kind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    add_to_record(
        home, "a:b", [one("sample", solved=False), one("sample", solved=True), one("user", solved=False)]
    )
    add_to_record(home, "a:b", [one("repair", solved=False)])
    add_to_record(home, "other", [one("repair", solved=True)])
    assert read_record(home, "a:b") == {"sample": (1, 2), "repair": (0, 1)}
    assert read_record(home, "nobody") == {}
    assert [path.name for path in home.iterdir() if path.name.startswith(".")] == []


def test_a_damaged_file_tells_nothing_and_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "moves.json").write_text('{"a:b": {"sample": [3')
    assert read_record(tmp_path, "a:b") == {}
    add_to_record(tmp_path, "a:b", [one("sample", solved=True)])
    assert read_record(tmp_path, "a:b") == {"sample": (1, 1)}


def test_a_run_says_what_it_was_told() -> None:
    told = Event(seq=0, time_s=0.0, kind="moves.remembered", data={"record": {"sample": [1, 2]}})
    assert recorded_moves([told]) == {"sample": (1, 2)}
    assert recorded_moves([]) is None
