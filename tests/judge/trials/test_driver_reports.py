"""The trial that a driver's report of one candidate makes."""

from __future__ import annotations

from suture.judge.trials.drivers.driver_reports import build_trial
from suture.judge.trials.tuning import MAX_STACK_CHARS


def test_a_target_with_a_very_long_id_is_not_taken_for_another_test() -> None:
    target = "t::" + "x" * MAX_STACK_CHARS
    trial = build_trial({"passes": False, "failed_test": target}, [target])

    assert (trial.broken, trial.broken_test) == (0, "")


def test_the_id_of_a_broken_test_is_bounded() -> None:
    trial = build_trial({"passes": False, "failed_test": "y" * 2 * MAX_STACK_CHARS}, ["t::one"])

    assert (trial.broken, len(trial.broken_test)) == (1, MAX_STACK_CHARS)
