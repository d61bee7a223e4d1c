"""Two runs are compared by their events, without times, usage and addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from suture.core.ledger import Ledger, RawPayload, RunFolder, compare_runs, in_round_branch, normalise_text
from suture.testing import FakeClock

WriteLedger = Callable[[RunFolder, Ledger], None]


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[WriteLedger, WriteLedger], tuple[RunFolder, RunFolder]]:
    """Return a function that creates two run folders, each from its own writer and at its own time."""

    def create_run(writer: WriteLedger) -> RunFolder:
        number = len(list(tmp_path.iterdir()))
        folder = RunFolder(tmp_path / f"run-{number}")
        folder.path.mkdir()
        with Ledger(folder.ledger_path, FakeClock(1000.0 + number)) as ledger:
            writer(folder, ledger)
        return folder

    def create_runs(first: WriteLedger, second: WriteLedger) -> tuple[RunFolder, RunFolder]:
        return create_run(first), create_run(second)

    return create_runs


def write_events(*pairs: tuple[str, Mapping[str, Any]]) -> WriteLedger:
    def write(folder: RunFolder, ledger: Ledger) -> None:
        for kind, data in pairs:
            ledger.append(RawPayload(kind=kind, data=data))

    return write


def write_branches(order: tuple[int, ...], candidates: Mapping[int, str]) -> WriteLedger:
    """Return a writer of a round whose branches write in the given order, between two other events."""

    def write(folder: RunFolder, ledger: Ledger) -> None:
        ledger.append(RawPayload(kind="moves.decided", data={"round": 0}))
        for branch in order:
            with in_round_branch(0, branch):
                ledger.append(RawPayload(kind="candidate.proposed", data={"candidate": candidates[branch]}))
        ledger.append(RawPayload(kind="moves.decided", data={"round": 1}))

    return write


def test_the_order_of_branches_is_ignored(runs: Any) -> None:
    candidates = {0: "a", 1: "b", 2: "c"}
    assert (
        compare_runs(*runs(write_branches((0, 1, 2), candidates), write_branches((2, 0, 1), candidates)))
        is None
    )
    difference = compare_runs(
        *runs(write_branches((0, 1, 2), candidates), write_branches((2, 0, 1), {**candidates, 1: "x"}))
    )
    assert difference is not None
    assert (difference.position, difference.kind, difference.field) == (2, "candidate.proposed", "candidate")
    assert (difference.first, difference.second) == ('"b"', '"x"')


def test_the_order_of_rounds_is_compared(runs: Any) -> None:
    first_round, second_round = ("moves.decided", {"round": 0}), ("moves.decided", {"round": 1})
    assert (
        compare_runs(*runs(write_events(first_round, second_round), write_events(second_round, first_round)))
        is not None
    )


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
def test_times_usage_and_addresses_are_ignored(
    runs: Any, first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    assert compare_runs(*runs(write_events(("k", first)), write_events(("k", second)))) is None


def test_a_limit_is_compared(runs: Any) -> None:
    first = {"limits": {"attempts": 3}}
    difference = compare_runs(
        *runs(write_events(("k", first)), write_events(("k", {"limits": {"attempts": 4}})))
    )
    assert difference is not None
    assert (difference.field, difference.first, difference.second) == ("limits.attempts", "3", "4")


def test_a_run_that_ends_early_is_different(runs: Any) -> None:
    difference = compare_runs(*runs(write_events(("a", {}), ("b", {})), write_events(("a", {}))))
    assert difference is not None
    assert str(difference) == "event 1, b: b | nothing"


def test_events_after_the_end_are_ignored(runs: Any) -> None:
    end = ("run.finished", {"outcome": "healed"})
    assert compare_runs(*runs(write_events(end, ("tree.applied", {"root": "/x"})), write_events(end))) is None


def test_verdicts_are_compared_by_their_outcomes(runs: Any) -> None:
    def write_verdict(passed: int, wall_s: float) -> WriteLedger:
        def write(folder: RunFolder, ledger: Ledger) -> None:
            outcomes = [{"check_id": "c", "status": "passed"}] * passed
            blob = folder.save_json({"outcomes": outcomes, "wall_s": wall_s})
            ledger.append(RawPayload(kind="candidate.checked", data={"verdict": blob}))

        return write

    assert compare_runs(*runs(write_verdict(1, 0.1), write_verdict(1, 0.2))) is None
    difference = compare_runs(*runs(write_verdict(1, 0.1), write_verdict(2, 0.1)))
    assert difference is not None
    assert difference.field == "verdict.outcomes"


async def test_a_branch_marks_only_its_own_events(tmp_path: Path) -> None:
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


def test_normalisation_changes_only_times_and_temporary_folders() -> None:
    assert normalise_text("sleep 1.5s, mask 0x1F, /tmp/tmpfiles") == "sleep 1.5s, mask 0x1F, /tmp/tmpfiles"
    assert normalise_text("in /tmp/tmpa1b2c3d4/x, 0.02s call") == "in /tmp/tmp/x, 0s call"
