"""What a test of a candidate may take, from what it took without tracing."""

from __future__ import annotations

from typing import Literal

from suture.core.ledger.kinds import TrialDisagreement
from suture.judge.trials.spectrum import compute_cpu_limits
from suture.judge.trials.trial_records import Spectrum, TestRun


def run(name: str, seconds: float, outcome: Literal["passed", "skipped", "timeout"] = "passed") -> TestRun:
    return TestRun(id=name, outcome=outcome, seconds=seconds, lines={})


def test_a_slow_test_gets_more_than_it_took() -> None:
    spectrum = Spectrum(tests=(run("a::slow", 0.36), run("a::quick", 0.0)), collected=("a::slow", "a::quick"))
    limits = compute_cpu_limits(spectrum)
    assert all(limit > 1.0 for limit in limits["a::slow"])
    assert (
        limits["a::quick"][0] < 0.36 < limits["a::quick"][1]
    )  # as the first of its file it makes what both share


def test_a_test_that_never_ended_gets_little_and_gives_nobody_more() -> None:
    spectrum = Spectrum(tests=(run("a::endless", 3.0, "timeout"),), collected=("a::endless",))
    assert all(limit < 1.0 for limit in compute_cpu_limits(spectrum)["a::endless"])


def test_what_is_skipped_or_differs_is_not_run_and_what_was_not_measured_is() -> None:
    spectrum = Spectrum(
        tests=(run("a::gone", 0.0, "skipped"), run("a::other", 0.0)),
        collected=("a::gone", "a::other", "a::new"),
        disagreements=(TrialDisagreement(test="a::other", run="failed", trial="passed"),),
    )
    assert set(compute_cpu_limits(spectrum)) == {"a::new"}
