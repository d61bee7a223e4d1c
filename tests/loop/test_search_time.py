"""Work on many outcomes is done once, and a search leaves time for the verdict on its result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, Counterexample, Verdict
from suture.core.settings import RepairSettings
from suture.loop.context import RunContext
from suture.loop.evaluation.search_setup import limit_search
from suture.loop.policy.attempts import failure_signature


class Counting(Verdict):
    """A verdict that counts how often its failures are looked for."""

    looks = 0

    @property
    def failed(self) -> frozenset[str]:
        """As ever."""
        type(self).looks += 1
        return super().failed


def test_failures_are_found_once_however_many_outcomes_there_are() -> None:
    outcomes = tuple(CheckOutcome(check_id=f"t{n}", status="failed") for n in range(50))
    verdict = Counting(candidate="c", outcomes=outcomes, evidence="nonce")
    plain = Verdict(candidate="c", outcomes=outcomes, evidence="nonce")
    assert failure_signature(verdict, 0.5) == failure_signature(plain, 0.5)
    assert Counting.looks == 1


def context_with(left_s: float | None, model: str, seconds: float | None) -> RunContext:
    budget = SimpleNamespace(remaining_s=lambda: left_s)
    settings = SimpleNamespace(repair=RepairSettings(seconds=seconds))
    has_model, nothing_recalled = model != "none", SimpleNamespace(events=())
    return cast(
        RunContext,
        cast(
            Any,
            SimpleNamespace(budget=budget, settings=settings, has_model=has_model, ledger=nothing_recalled),
        ),
    )


def test_where_no_test_passed_more_is_kept() -> None:
    failed = (CheckOutcome(check_id="t", status="error"),)
    base = Verdict(candidate="c", outcomes=failed, evidence="nonce", wall_s=1.0)
    limits = limit_search(context_with(100.0, "none", None), base)
    assert (limits.max_seconds, limits.reserve_s) == pytest.approx((70.0, 0.0))


def test_how_long_a_run_took_that_was_stopped_says_nothing_of_a_verdict() -> None:
    fact = Counterexample(
        check_id="c", exception="the time limit was reached though no test failed", code="time_limit"
    )
    stopped = (CheckOutcome(check_id="c", status="error", counterexample=fact),)
    base = Verdict(candidate="c", outcomes=stopped, evidence="nonce", wall_s=36.0)
    limits = limit_search(context_with(24.0, "none", None), base)
    assert (limits.max_seconds, limits.reserve_s) == pytest.approx((16.8, 0.0))


@pytest.mark.parametrize(
    ("left_s", "verdict_s", "with_model_s", "alone_s"),
    [
        (None, 9.0, 60.0, 60.0),
        (900.0, 1.0, 60.0, 893.0),
        (100.0, 1.0, 50.0, 93.0),
        (100.0, 17.0, 50.0, 61.0),
        (100.0, 90.0, 40.0, 40.0),
    ],
)
def test_the_time_of_the_verdict_is_kept(
    left_s: float | None, verdict_s: float, with_model_s: float, alone_s: float
) -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=verdict_s)
    for model, wanted_s in (("local:m", with_model_s), ("none", alone_s)):
        assert limit_search(context_with(left_s, model, None), base).max_seconds == pytest.approx(wanted_s)


@pytest.mark.parametrize(
    ("left_s", "verdict_s", "model", "knob_s", "wanted_s"),
    [
        (100.0, 1.0, "none", None, 3.5),
        (100.0, 17.0, "none", None, 11.5),
        (100.0, 90.0, "none", None, 0.0),
        (100.0, 17.0, "none", 65.0, 4.0),
        (100.0, 17.0, "none", 7.0, 0.0),
        (100.0, 17.0, "local:m", None, 0.0),
        (None, 17.0, "none", None, 0.0),
    ],
)
def test_what_is_kept_for_a_proof_is_the_searchs_while_there_is_nothing_to_prove(
    left_s: float | None, verdict_s: float, model: str, knob_s: float | None, wanted_s: float
) -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=verdict_s)
    assert limit_search(context_with(left_s, model, knob_s), base).reserve_s == pytest.approx(wanted_s)


def test_who_says_how_long_is_heard() -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=1.0)
    assert limit_search(context_with(900.0, "none", 7.0), base).max_seconds == 7.0
