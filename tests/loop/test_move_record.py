"""What a bandit remembers of earlier runs: small, atomic, and never in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from suture.ledger import Event, new_run
from suture.loop.forking import Start
from suture.loop.move_record import add_to_record, read_record, recorded_moves
from suture.loop.opening import Opening, opened
from suture.loop.progress import Tried
from suture.loop.state import first_state
from suture.models import Models, RoleModel
from suture.models.prices import Prices
from suture.records import Origin, Task
from suture.settings import LoopSettings, Settings
from suture.testing import ScriptedModel

FORKS = {"run": "x", "at": 1, "state": "", "events": 0}


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


@pytest.mark.parametrize("remembered", [True, False])
async def test_a_fork_is_told_what_its_origin_was_and_not_what_came_since(
    remembered: bool, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("bandit = true\n")
    add_to_record(tmp_path, "scripted:replies", [one("sample", solved=True)])
    told = Event(seq=0, time_s=0.0, kind="moves.remembered", data={"record": {"sample": [0, 7]}})
    origin = new_run(tmp_path)
    start = Start(
        run=origin.id, at=0, state=first_state(origin.id), events=[told] * remembered, folder=origin
    )
    seat = RoleModel(chain=(ScriptedModel([]),), temperature=0.8, max_tokens=200)
    wanted = Opening(
        task=Task(statement="anything"),
        settings=Settings(
            paths={"home": tmp_path},  # type: ignore[arg-type]
            loop=LoopSettings(recipe=str(recipe)),
        ),
        project=tmp_path,
        models=Models({"coder": seat}, Prices({})),
        sandbox=cast(Any, object()),
        start=start,
    )
    async with opened(wanted) as (context, _):
        assert context.record == ({"sample": (0, 7)} if remembered else {})


def test_a_fork_that_was_told_nothing_is_told_nothing_again() -> None:
    began = Event(seq=0, time_s=0.0, kind="run.started", data={"kind": "write", "forks": FORKS})
    assert recorded_moves([began]) == {}
