"""A search leaves time for the verdict on its result."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from suture.core.records import CheckOutcome, Counterexample, Verdict
from suture.core.settings import RepairSettings
from suture.judge.trials.trial_records import Proposal
from suture.loop.context import RunContext
from suture.loop.evaluation.search_setup import limit_search
from suture.loop.policy.attempts import failure_signature
from suture.search import SearchLimits, SearchResult, tuning
from suture.search.engine.search_schedule import SearchClock, Turns
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ranking.rivals import RivalQueue


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


def make_context(
    left_s: float | None, model: str, seconds: float | None, language: str = "python"
) -> RunContext:
    context = SimpleNamespace(
        budget=SimpleNamespace(remaining_s=lambda: left_s),
        settings=SimpleNamespace(repair=RepairSettings(seconds=seconds)),
        has_model=model != "none",
        has_capable_model=model.startswith("anthropic:"),
        task=SimpleNamespace(language=language),
        ledger=SimpleNamespace(events=()),  # nothing is recalled
    )
    return cast(RunContext, cast(Any, context))


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


@pytest.mark.parametrize(
    ("model", "knob_s", "language", "has_few"),
    [
        ("none", None, "python", False),
        ("local:m", None, "python", False),
        ("anthropic:m", None, "python", True),
        ("anthropic:m", None, "go", True),
        ("anthropic:m", 40.0, "python", False),
    ],
)
def test_only_before_a_capable_model_the_search_has_few_seconds(
    model: str, knob_s: float | None, language: str, has_few: bool
) -> None:
    base = Verdict(candidate="c", outcomes=(), evidence="nonce", wall_s=1.0)
    limits = limit_search(make_context(900.0, model, knob_s, language), base)
    assert (limits.trial_s < 20) is has_few
    assert limits.max_seconds >= 40
    failed = SearchResult(texts={}, generation_s=3.0)
    found = replace(failed, plausible=[Proposal(path="a.py", edits=(), label="", score=1.0, operators=())])
    assert (failed.end_s(limits) < limits.max_seconds) is has_few
    assert found.end_s(limits) == limits.max_seconds


def test_the_order_of_the_search_does_not_depend_on_its_limits() -> None:
    """With a share of the time, the same candidates came later in a search with a shorter limit."""

    def order(max_seconds: float, trial_s: float) -> list[str]:
        limits = SearchLimits(max_seconds=max_seconds, trial_s=trial_s)
        result = SearchResult(texts={})
        clock = SearchClock(limits, result, RivalQueue(get_adapter("python").find_location))
        turns = Turns(result, clock)
        labels = []
        for proposal in turns.interleave(iter(make_singles(4000))):
            result.tried_count += 1
            labels.append(proposal.label)
            # Each trial takes some time of a search that is short.
            clock._began_s -= 0.01
            if result.tried_count == 100:
                for compound in make_singles(50, "compound"):
                    turns._compounds._waiting.append(compound)
        return labels

    assert order(10.0, 5.0) == order(900.0, math.inf)


@pytest.mark.parametrize(
    ("rivals", "seconds", "has_ended"),
    [
        (tuning.MIN_RIVALS, 0.1, True),
        (tuning.MIN_RIVALS - 1, 0.1, False),
        (tuning.MIN_RIVALS - 1, tuning.MIN_LINGER_S + 0.1, True),
    ],
)
def test_a_search_ends_when_enough_rivals_or_enough_time_followed_a_repair(
    rivals: int, seconds: float, has_ended: bool
) -> None:
    result = SearchResult(texts={})
    clock = SearchClock(
        SearchLimits(max_seconds=60.0), result, RivalQueue(get_adapter("python").find_location)
    )
    clock.record_repair(is_suspicious=False)
    result.first_repair_s = 0.1
    result.tried_count += rivals
    clock._began_s = time.monotonic() - result.first_repair_s - seconds
    assert clock.find_ending(has_passed=False) == ("likely_changes_tried" if has_ended else None)


def make_singles(count: int, name: str = "single") -> list[Proposal]:
    return [
        Proposal(path="a.py", edits=(), label=f"{name} {number}", score=1.0, operators=())
        for number in range(count)
    ]
