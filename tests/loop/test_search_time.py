"""A search leaves time for the verdict on its result."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, Counterexample, Verdict
from suture.core.settings import RepairSettings
from suture.loop.context import RunContext
from suture.loop.evaluation.search_setup import limit_search
from suture.loop.policy.attempts import failure_signature


class CountingVerdict(Verdict):
    """A verdict that counts how often its failures are computed."""

    accesses = 0

    @property
    def failed(self) -> frozenset[str]:
        """Return the failures, and count the access."""
        type(self).accesses += 1
        return super().failed


def test_failures_are_computed_once_for_many_outcomes() -> None:
    outcomes = tuple(CheckOutcome(check_id=f"t{n}", status="failed") for n in range(50))
    verdict = CountingVerdict(candidate="c", outcomes=outcomes, evidence="nonce")
    uncounted = Verdict(candidate="c", outcomes=outcomes, evidence="nonce")
    assert failure_signature(verdict, 0.5) == failure_signature(uncounted, 0.5)
    assert CountingVerdict.accesses == 1


def make_context(left_s: float | None, model: str, seconds: float | None) -> RunContext:
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


def test_more_time_is_reserved_if_no_test_passed() -> None:
    failed = (CheckOutcome(check_id="t", status="error"),)
    base = Verdict(candidate="c", outcomes=failed, evidence="nonce", wall_s=1.0)
    limits = limit_search(make_context(100.0, "none", None), base)
    assert (limits.max_seconds, limits.reserve_s) == pytest.approx((70.0, 0.0))


def test_the_duration_of_a_timed_out_run_does_not_limit_the_search() -> None:
    fact = Counterexample(
        check_id="c", exception="the time limit was reached though no test failed", code="time_limit"
    )
    stopped = (CheckOutcome(check_id="c", status="error", counterexample=fact),)
    base = Verdict(candidate="c", outcomes=stopped, evidence="nonce", wall_s=36.0)
    limits = limit_search(make_context(24.0, "none", None), base)

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
def test_time_for_the_verdict_is_reserved(
    left_s: float | None, verdict_s: float, with_model_s: float, alone_s: float
) -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=verdict_s)
    for model, expected_s in (("local:m", with_model_s), ("none", alone_s)):
        assert limit_search(make_context(left_s, model, None), base).max_seconds == pytest.approx(expected_s)


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
def test_the_time_for_certification_extends_the_search(
    left_s: float | None, verdict_s: float, model: str, knob_s: float | None, wanted_s: float
) -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=verdict_s)
    assert limit_search(make_context(left_s, model, knob_s), base).reserve_s == pytest.approx(wanted_s)


def test_an_explicit_search_limit_is_used() -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=1.0)
    assert limit_search(make_context(900.0, "none", 7.0), base).max_seconds == 7.0
