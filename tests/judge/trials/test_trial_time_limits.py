"""Time limits for the tests of a candidate, derived from their times without tracing."""

from __future__ import annotations

from typing import Literal

from suture.core.ledger.kinds import TrialDisagreement
from suture.judge.trials.spectrum import compute_cpu_limits
from suture.judge.trials.trial_records import Spectrum, TestRun


def make_run(
    name: str, seconds: float, outcome: Literal["passed", "skipped", "timeout"] = "passed"
) -> TestRun:
    return TestRun(id=name, outcome=outcome, seconds=seconds, lines={})


def test_a_slow_test_gets_more_time_than_it_took() -> None:
    spectrum = Spectrum(
        tests=(make_run("a::slow", 0.36), make_run("a::quick", 0.0)), collected=("a::slow", "a::quick")
    )
    limits = compute_cpu_limits(spectrum)

    assert all(limit > 1.0 for limit in limits["a::slow"])
    # The first test of a file also pays for the shared set-up.
    assert limits["a::quick"][0] < 0.36 < limits["a::quick"][1]


def test_a_test_that_timed_out_gets_little_time() -> None:
    spectrum = Spectrum(tests=(make_run("a::endless", 3.0, "timeout"),), collected=("a::endless",))
    assert all(limit < 1.0 for limit in compute_cpu_limits(spectrum)["a::endless"])


def test_skipped_tests_and_disagreements_are_not_run() -> None:
    spectrum = Spectrum(
        tests=(make_run("a::gone", 0.0, "skipped"), make_run("a::other", 0.0)),
        collected=("a::gone", "a::other", "a::new"),
        disagreements=(TrialDisagreement(test="a::other", run="failed", trial="passed"),),
    )
    assert set(compute_cpu_limits(spectrum)) == {"a::new"}
