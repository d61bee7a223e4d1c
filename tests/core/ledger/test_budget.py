"""The budget reserves, settles and refuses costs, and counts them from the ledger."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.core.ledger import (
    Budget,
    Ledger,
    Limits,
    RawPayload,
    Reservation,
    read_ledger,
    total_spend,
)
from suture.core.ledger.kinds import BudgetReserved
from suture.core.records import Spend
from suture.errors import BudgetExceeded
from suture.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "l", clock) as ledger:
        ledger.append(RawPayload(kind="run.started"))
        yield ledger


def make_cost(**amounts: Any) -> BudgetReserved:
    return BudgetReserved(purpose="sample", **{"attempts": 0, "tokens": 0, **amounts})


def test_a_reservation_counts_fully_until_it_is_settled(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(attempts=3, tokens=100, seconds=60), clock)
    reservation = budget.reserve(make_cost(attempts=1, tokens=80))

    assert (budget.remaining_attempts(), budget.remaining_tokens()) == (2, 20)
    budget.settle(reservation, prompt_tokens=20, completion_tokens=10, model_calls=1)
    assert (budget.remaining_attempts(), budget.remaining_tokens()) == (2, 70)
    assert budget.spend() == Spend(
        attempts=1, tokens=30, prompt_tokens=20, completion_tokens=10, model_calls=1
    )


def test_a_released_reservation_costs_nothing(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(attempts=1, tokens=10), clock)
    budget.release(budget.reserve(make_cost(attempts=1, tokens=10)))
    assert budget.spend() == Spend()


def test_reserved_money_counts_fully_until_it_is_settled(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(money=1), clock)
    first = budget.reserve(make_cost(attempts=1, tokens=80, money=0.75))

    assert budget.remaining_money() == 0.25

    with pytest.raises(BudgetExceeded, match=r"budget\.money"):
        budget.reserve(make_cost(money=0.5))
    budget.settle(first, prompt_tokens=1, model_calls=1, money=0.125)
    written_off = budget.reserve(make_cost(money=0.5))
    budget.write_off(written_off)
    budget.release(budget.reserve(make_cost(money=0.25)))
    assert budget.remaining_money() == 0.375
    assert total_spend(read_ledger(ledger.path).events).money == 0.625


def test_calls_without_a_price_are_counted(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(), clock)
    budget.settle(budget.reserve(make_cost()), model_calls=1, unpriced_calls=1)
    assert (budget.spend().money, budget.spend().unpriced_calls) == (0, 1)


def test_settling_twice_counts_once(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(), clock)
    reservation = budget.reserve(make_cost(attempts=1, tokens=10))
    budget.settle(reservation, prompt_tokens=4)
    budget.settle(reservation, prompt_tokens=4)
    assert budget.spend().prompt_tokens == 4
    assert budget.spend().attempts == 1


@pytest.mark.parametrize(
    ("kind", "amounts"),
    [("attempts", {"attempts": 3}), ("tokens", {"tokens": 11}), ("money", {"money": 0.51})],
)
def test_a_reservation_over_a_limit_is_refused(
    ledger: Ledger, clock: FakeClock, kind: str, amounts: dict[str, Any]
) -> None:
    budget = Budget(ledger, Limits(attempts=2, tokens=10, money=0.5), clock)
    before = len(ledger.events)
    with pytest.raises(BudgetExceeded) as caught:
        budget.reserve(make_cost(**amounts))
    assert caught.value.kind == kind
    assert caught.value.message.startswith("the next call could exceed the limit of ")
    assert len(ledger.events) == before


def test_completion_tokens_have_their_own_limit(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(completion_tokens=100), clock)
    first = budget.reserve(make_cost(tokens=900, completion_tokens=60))

    assert budget.remaining_completion_tokens() == 40

    with pytest.raises(BudgetExceeded, match=r"budget\.completion_tokens"):
        budget.reserve(make_cost(tokens=900, completion_tokens=41))
    budget.settle(first, prompt_tokens=800, completion_tokens=10)
    budget.write_off(budget.reserve(make_cost(tokens=500, completion_tokens=50)))
    assert budget.remaining_completion_tokens() == 40
    assert budget.spend() == Spend(tokens=1310, prompt_tokens=1250, completion_tokens=60, model_calls=1)


def test_without_limits_everything_is_allowed(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(), clock)
    budget.reserve(make_cost(attempts=10**6, tokens=10**9))
    assert (budget.remaining_attempts(), budget.remaining_tokens(), budget.remaining_s()) == (
        None,
        None,
        None,
    )


def test_the_time_limit_ends_the_budget(ledger: Ledger, clock: FakeClock) -> None:
    budget = Budget(ledger, Limits(seconds=60), clock)
    clock.advance(59)

    assert budget.remaining_s() == 1
    budget.require_time()
    clock.advance(1)
    with pytest.raises(BudgetExceeded, match="the limit of 60 seconds is reached, 60 are used"):
        budget.reserve(make_cost())


def test_the_time_of_a_pause_is_not_spent(ledger: Ledger, clock: FakeClock) -> None:
    clock.advance(10)
    ledger.append(RawPayload(kind="run.paused"))
    clock.advance(86_400)
    ledger.append(RawPayload(kind="run.resumed"))
    clock.advance(5)

    assert total_spend(ledger.events, now_s=clock.now()).seconds == 15
    assert total_spend(ledger.events).seconds == 10


def test_events_after_the_end_add_no_time(ledger: Ledger, clock: FakeClock) -> None:
    clock.advance(10)
    ledger.append(RawPayload(kind="run.finished"))
    clock.advance(86_400)
    ledger.append(RawPayload(kind="tree.undone"))

    assert total_spend(ledger.events).seconds == 10
    ledger.append(RawPayload(kind="run.resumed"))
    clock.advance(5)
    assert total_spend(ledger.events, now_s=clock.now()).seconds == 15


def test_the_preparation_time_is_spent(tmp_path: Path, clock: FakeClock) -> None:
    with Ledger(tmp_path / "asked", clock) as ledger:
        ledger.append(RawPayload(kind="run.started", data={"kind": "heal", "preparation_s": 7.5}))
        clock.advance(2)
        assert Budget(ledger, Limits(seconds=60), clock).remaining_s() == 50.5


def test_a_clock_set_back_does_not_reduce_the_spent_time(ledger: Ledger, clock: FakeClock) -> None:
    clock.advance(-500)
    ledger.append(RawPayload(kind="run.paused"))
    ledger.append(RawPayload(kind="run.resumed"))
    clock.advance(7)
    assert total_spend(ledger.events, now_s=clock.now()).seconds == 7


def test_an_open_reservation_is_fully_spent_after_a_crash(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "crashed"
    limits = Limits(attempts=2, tokens=100)
    with Ledger(path, clock) as ledger:
        Budget(ledger, limits, clock).reserve(make_cost(attempts=1, tokens=70))
    with Ledger(path, clock) as ledger:
        budget = Budget(ledger, limits, clock)
        assert budget.spend() == Spend(attempts=1, tokens=70)
        with pytest.raises(BudgetExceeded):
            budget.reserve(make_cost(tokens=31))
        # The reply turns out to be on disk, so the old reservation is settled with it.
        budget.settle(
            Reservation(id=0, cost=make_cost(attempts=1, tokens=70)), prompt_tokens=5, completion_tokens=5
        )
        assert budget.remaining_tokens() == 90


BudgetAction = tuple[bool, int, int, float, float]


@given(
    actions=st.lists(
        st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 60), st.floats(0, 1), st.floats(0, 2))
    ),
    limits=st.builds(
        Limits,
        attempts=st.integers(0, 10),
        tokens=st.integers(0, 200),
        completion_tokens=st.integers(0, 100),
        money=st.floats(0, 3),
    ),
)
def test_no_sequence_of_actions_exceeds_the_limits(actions: list[BudgetAction], limits: Limits) -> None:
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "l", clock) as ledger:
        budget = Budget(ledger, limits, clock)
        open_reservations: list[Reservation] = []
        for settles, attempts, tokens, share, money in actions:
            if settles and open_reservations:
                reservation = open_reservations.pop(0)
                used = int(reservation.cost.completion_tokens * share)
                budget.settle(
                    reservation,
                    prompt_tokens=reservation.cost.tokens - reservation.cost.completion_tokens,
                    completion_tokens=used,
                    money=reservation.cost.money * share,
                )
            else:
                with contextlib.suppress(BudgetExceeded):
                    open_reservations.append(
                        budget.reserve(
                            make_cost(
                                attempts=attempts,
                                tokens=tokens,
                                completion_tokens=tokens // 2,
                                money=money,
                            )
                        )
                    )
            spend = budget.spend()
            assert spend.attempts <= (limits.attempts or 0)
            assert spend.tokens <= (limits.tokens or 0)
            assert spend.completion_tokens <= (limits.completion_tokens or 0)
            assert spend.money <= (limits.money or 0) + 1e-9  # the tolerance covers rounding of float sums
        assert total_spend(read_ledger(ledger.path).events) == total_spend(ledger.events)
