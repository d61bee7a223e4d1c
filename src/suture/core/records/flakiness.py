"""The records of flaky tests: under which conditions they ran, how they ended, and the cause that this shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FlakyCause = Literal[
    "shared_state",
    "missing_setup",
    "random_numbers",
    "hash_seed",
    "clock",
    "slow_machine",
    "test_order",
    "unknown",
]
"""Why a test passes in some runs and fails in others. `render_flaky_cause` says what each code means."""
TestCondition = Literal[
    "suite",
    "alone",
    "random_order",
    "random_numbers",
    "hash_seed",
    "clock",
    "slow_machine",
    "time_zone",
    "parallel",
]
"""The condition that an experiment sets. `suite` is the user's own command as it is."""


@dataclass(frozen=True, kw_only=True)
class FlakyExperiment:
    """Runs of one test under one condition.

    Attributes:
        condition: What was set.
        value: What it was set to, such as a seed or a time; empty for `suite` and `alone`.
        runs: Number of runs.
        passed: How many of them the test passed.
    """

    condition: TestCondition
    value: str = ""
    runs: int
    passed: int


@dataclass(frozen=True, kw_only=True)
class FlakyDiagnosis:
    """Why a test is flaky, as far as experiments show it.

    Attributes:
        test: Id of the test.
        cause: The condition that decides how the test ends.
        other_tests: For `shared_state`, the tests after which it fails; for `missing_setup`, the tests that it needs.
        statement: The statement by which one of these tests changes shared state, if its text shows one.
        experiments: The experiments, in the order in which they were made.
    """

    test: str
    cause: FlakyCause
    other_tests: tuple[str, ...] = ()
    statement: str = ""
    experiments: tuple[FlakyExperiment, ...] = ()


def render_flaky_cause(diagnosis: FlakyDiagnosis) -> str:
    """Return the cause of a flaky test as a clause about the test."""
    others = " and ".join(diagnosis.other_tests)
    state = f", which leaves `{diagnosis.statement}` behind" if diagnosis.statement else ""
    texts: dict[FlakyCause, str] = {
        "shared_state": f"it fails after {others}{state}",
        "missing_setup": f"it passes only after {others}, and fails alone",
        "random_numbers": "the random numbers decide how it ends: with the same seed it always ends the same",
        "hash_seed": "the order of a set decides how it ends: with the same PYTHONHASHSEED it always ends the same",
        "clock": "the time of the clock decides how it ends: at the same time it always ends the same",
        "slow_machine": "the speed of the machine decides: it passes if no time goes by, and fails if much does",
        "test_order": "the order of the tests decides how it ends",
        "unknown": "no experiment shows what decides how it ends",
    }
    return texts[diagnosis.cause]


def render_flaky_statistics(diagnosis: FlakyDiagnosis) -> str:
    """Return how often a test passed under each condition, in one line."""
    by_condition: dict[TestCondition, list[FlakyExperiment]] = {}
    for experiment in diagnosis.experiments:
        by_condition.setdefault(experiment.condition, []).append(experiment)
    return ", ".join(
        f"{sum(one.passed for one in several)} of {sum(one.runs for one in several)} {CONDITION_TEXTS[condition]}"
        for condition, several in by_condition.items()
    )


CONDITION_TEXTS: dict[TestCondition, str] = {
    "suite": "in the whole suite",
    "alone": "alone",
    "random_order": "in random orders",
    "random_numbers": "with fixed random numbers",
    "hash_seed": "with fixed hash seeds",
    "clock": "at fixed times",
    "slow_machine": "with a stopped and a fast clock",
    "time_zone": "in other time zones",
    "parallel": "in two runs at once",
}
