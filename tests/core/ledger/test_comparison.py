from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from suture.core.ledger import Ledger, RawPayload, RunFolder, compare_runs, in_round_branch, normalise_text
from suture.testing import FakeClock

Write = Callable[[RunFolder, Ledger], None]


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[Write, Write], tuple[RunFolder, RunFolder]]:
    """Two run folders, each written by a function of its own, at times of their own."""

    def written(writer: Write) -> RunFolder:
        number = len(list(tmp_path.iterdir()))
        folder = RunFolder(tmp_path / f"run-{number}")
        folder.path.mkdir()
        with Ledger(folder.ledger_path, FakeClock(1000.0 + number)) as ledger:
            writer(folder, ledger)
        return folder

    def write(first: Write, second: Write) -> tuple[RunFolder, RunFolder]:
        return written(first), written(second)

    return write


def events(*pairs: tuple[str, Mapping[str, Any]]) -> Write:
    def write(folder: RunFolder, ledger: Ledger) -> None:
        for kind, data in pairs:
            ledger.append(RawPayload(kind=kind, data=data))

    return write


def branches(order: tuple[int, ...], told: Mapping[int, str]) -> Write:
    """A round whose branches write in this order, between two events of no branch."""

    def write(folder: RunFolder, ledger: Ledger) -> None:
        ledger.append(RawPayload(kind="moves.decided", data={"round": 0}))
        for branch in order:
            with in_round_branch(0, branch):
                ledger.append(RawPayload(kind="candidate.proposed", data={"candidate": told[branch]}))
        ledger.append(RawPayload(kind="moves.decided", data={"round": 1}))

    return write


def test_the_order_of_branches_is_chance(runs: Any) -> None:
    told = {0: "a", 1: "b", 2: "c"}
    assert compare_runs(*runs(branches((0, 1, 2), told), branches((2, 0, 1), told))) is None
    found = compare_runs(*runs(branches((0, 1, 2), told), branches((2, 0, 1), {**told, 1: "x"})))
    assert found is not None
    assert (found.position, found.kind, found.field) == (2, "candidate.proposed", "candidate")
    assert (found.first, found.second) == ('"b"', '"x"')


def test_the_order_of_rounds_is_not(runs: Any) -> None:
    one, two = ("moves.decided", {"round": 0}), ("moves.decided", {"round": 1})
    assert compare_runs(*runs(events(one, two), events(two, one))) is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"seconds": 1.5}, {"seconds": 2.5}),
        ({"prompt_tokens": 10, "model_calls": 1}, {"prompt_tokens": 0, "model_calls": 0}),
        ({"limits": {"attempts": 3, "seconds": 10}}, {"limits": {"attempts": 3, "seconds": None}}),
        ({"output": "1 passed in 0.03s"}, {"output": "1 passed in 1.73s"}),
        ({"got": ["<Cart object at 0x7f12ab34cd56>"]}, {"got": ["<Cart object at 0x7f00ab34cd00>"]}),
    ],
)
def test_times_usage_and_addresses_are_no_difference(
    runs: Any, first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    assert compare_runs(*runs(events(("k", first)), events(("k", second)))) is None


def test_a_number_that_means_something_is_a_difference(runs: Any) -> None:
    first = {"limits": {"attempts": 3}}
    found = compare_runs(*runs(events(("k", first)), events(("k", {"limits": {"attempts": 4}}))))
    assert found is not None
    assert (found.field, found.first, found.second) == ("limits.attempts", "3", "4")


def test_a_run_that_ends_early_differs(runs: Any) -> None:
    found = compare_runs(*runs(events(("a", {}), ("b", {})), events(("a", {}))))
    assert found is not None
    assert str(found) == "event 1, b: b | nothing"


def test_what_was_applied_afterwards_is_no_part_of_the_run(runs: Any) -> None:
    end = ("run.finished", {"outcome": "healed"})
    assert compare_runs(*runs(events(end, ("tree.applied", {"root": "/x"})), events(end))) is None


def test_verdicts_are_compared_by_what_they_say(runs: Any) -> None:
    def verdict(passed: int, wall_s: float) -> Write:
        def write(folder: RunFolder, ledger: Ledger) -> None:
            outcomes = [{"check_id": "c", "status": "passed"}] * passed
            blob = folder.save_json({"outcomes": outcomes, "wall_s": wall_s})
            ledger.append(RawPayload(kind="candidate.checked", data={"verdict": blob}))

        return write

    assert compare_runs(*runs(verdict(1, 0.1), verdict(1, 0.2))) is None
    found = compare_runs(*runs(verdict(1, 0.1), verdict(2, 0.1)))
    assert found is not None
    assert found.field == "verdict.outcomes"


async def test_a_branch_stamps_its_own_events_alone(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:

        async def branch(number: int) -> None:
            with in_round_branch(4, number):
                await asyncio.sleep(0)
                ledger.append(RawPayload(kind="k", data={"of": number}))

        await asyncio.gather(branch(0), branch(1))
        ledger.append(RawPayload(kind="after"))
        assert [event.data for event in ledger.events] == [
            {"step": 4, "branch": 0, "of": 0},
            {"step": 4, "branch": 1, "of": 1},
            {},
        ]


def test_steady_text_leaves_the_rest_alone() -> None:
    assert normalise_text("sleep 1.5s, mask 0x1F, /tmp/tmpfiles") == "sleep 1.5s, mask 0x1F, /tmp/tmpfiles"
    assert normalise_text("in /tmp/tmpa1b2c3d4/x, 0.02s call") == "in /tmp/tmp/x, 0s call"
