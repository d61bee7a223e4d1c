"""Running flaky tests under chosen conditions: their order, random numbers, hash seed, clock and time zone."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import resources

from suture.core.records import CheckOutcome
from suture.core.records.flakiness import FlakyDiagnosis, TestCondition
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.runners.test_command import TestCommand
from suture.judge.tuning import MAX_FIXED_VALUES, RANDOM_ORDERS, SHARED_VALUES

PLUGIN = "suture_conditions"
"""The module name of the plugin inside the sandbox."""
DAY_S = 86400
CLOCK_TIMES_S = (
    0.0005,
    86399.75,
    43200.0,
    29341.234567,
    67890.123,
    12 * DAY_S + 3661.5,
    170 * DAY_S + 80000.9,
)
"""Seconds after the last midnight (UTC) at which tests run: both sides of midnight, and other days of the year."""
SLOW_STEPS_S = (("no time goes by", 1e-6), ("10 s go by at each reading", 10.0))
TIME_ZONES = ("UTC-14", "UTC+11")
"""The time zones with the earliest and with the latest date, as POSIX writes them; they need no data files."""


@dataclass(frozen=True, kw_only=True)
class RunConditions:
    """What one run of the tests sets, besides what the user's command does.

    Attributes:
        order: Ids of tests in the order in which they run; empty for the order of the command.
        random_seed: Seed of all random numbers at the start of each test.
        hash_seed: A seed, or `random` for a new one in each run. By default, runs share a warm interpreter and its
            seed, which starts faster.
        clock_start_s: Seconds since the epoch at which each test starts, by a clock that only moves when it is read.
        clock_step_s: Seconds by which it moves then.
        time_zone: The time zone, as POSIX writes it.
    """

    order: tuple[str, ...] = ()
    random_seed: int | None = None
    hash_seed: str = ""
    clock_start_s: float | None = None
    clock_step_s: float = 0.001
    time_zone: str = ""

    def make_addition(self) -> RunAddition:
        """Return what pytest needs for these conditions."""
        variables = {"PYTHONHASHSEED": self.hash_seed, "TZ": self.time_zone}
        parameters = {
            "order": self.order,
            "random_seed": self.random_seed,
            "clock_start_s": self.clock_start_s,
            "clock_step_s": self.clock_step_s,
        }
        return RunAddition(
            options=f"-p {PLUGIN}",
            files={f"{PLUGIN}.py": _load_plugin(), "conditions.json": json.dumps(parameters).encode("ascii")},
            variables={name: value for name, value in variables.items() if value},
        )


@dataclass(frozen=True, kw_only=True)
class AdverseRun:
    """A run under conditions in which a repaired test must pass.

    Attributes:
        tests: Ids of the tests to run; empty for all.
    """

    kind: TestCondition
    tests: tuple[str, ...]
    settings: RunConditions = field(default_factory=RunConditions)


@dataclass(frozen=True, kw_only=True)
class FlakyTestRunner:
    """Runs tests of one version of the files, until the time is up.

    Attributes:
        timeout_s: Wall-clock seconds of one run.
        end_s: The reading of `time.monotonic` after which no run starts.
    """

    command: TestCommand
    files: Mapping[str, bytes]
    timeout_s: float
    end_s: float

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.end_s

    async def run(self, tests: Collection[str], conditions: RunConditions) -> dict[str, bool]:
        """Run some tests, or all, and return test -> whether it passed, for each test that finished."""
        outcomes = await self.run_outcomes(tests, conditions)
        ended = [outcome for outcome in outcomes if outcome.status not in ("missing", "skipped")]
        return {outcome.check_id: outcome.passed for outcome in ended}

    async def run_outcomes(
        self, tests: Collection[str], conditions: RunConditions
    ) -> tuple[CheckOutcome, ...]:
        """Run some tests, or all, and return their outcomes."""
        outcomes, _ = await self.run_until(tests, conditions)
        return outcomes

    async def run_until(
        self, tests: Collection[str], conditions: RunConditions
    ) -> tuple[tuple[CheckOutcome, ...], bool]:
        """Run some tests, or all, and return their outcomes and whether the time limit ended the run."""
        addition = conditions.make_addition()
        return await self.command.run_until(self.files, tests, self.timeout_s, addition=addition)


def list_condition_settings(condition: TestCondition) -> list[tuple[str, RunConditions]]:
    """Return the settings to try for a condition, most revealing first, as (label, settings)."""
    seeds = range(1, MAX_FIXED_VALUES + 1)
    if condition == "random_numbers":
        return [(str(seed), RunConditions(random_seed=seed)) for seed in seeds]
    if condition == "hash_seed":
        return [(str(seed), RunConditions(hash_seed=str(seed))) for seed in seeds]
    now_s = time.time()
    if condition == "clock":
        starts_s = [now_s // DAY_S * DAY_S + time_s for time_s in CLOCK_TIMES_S]
        return [
            (datetime.fromtimestamp(start_s, UTC).isoformat(" ")[:23], RunConditions(clock_start_s=start_s))
            for start_s in starts_s
        ]
    if condition == "slow_machine":
        return [
            (name, RunConditions(clock_start_s=now_s, clock_step_s=step_s)) for name, step_s in SLOW_STEPS_S
        ]
    if condition == "time_zone":
        return [(zone, RunConditions(time_zone=zone)) for zone in TIME_ZONES]
    return [("", RunConditions())]


def shuffle_tests(tests: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return tests in a random order, which is the same for the same seed."""
    return tuple(random.Random(seed).sample(tests, len(tests)))


def list_adverse_runs(
    tests: Sequence[str], diagnoses: Sequence[FlakyDiagnosis], seed: int
) -> list[AdverseRun]:
    """Return the runs in which repaired tests must pass.

    All values of the condition that made a test flaky are among them, and some of the others. Other times and time
    zones are not, unless they may be the cause: a test may be right and expect the present ones.

    Args:
        tests: All tests of the command, in its order.
    """
    targets = tuple(diagnosis.test for diagnosis in diagnoses)
    causes = {diagnosis.cause for diagnosis in diagnoses}
    runs = [AdverseRun(kind="alone", tests=(target,)) for target in targets]
    runs += [
        AdverseRun(
            kind="suite",
            tests=(*diagnosis.other_tests, diagnosis.test),
            settings=RunConditions(order=(*diagnosis.other_tests, diagnosis.test)),
        )
        for diagnosis in diagnoses
        if diagnosis.other_tests
    ]
    factors: list[TestCondition] = ["random_numbers", "hash_seed"]
    factors += ["clock", "time_zone"] if causes & {"clock", "unknown"} else []
    factors += ["slow_machine"] if "slow_machine" in causes else []
    factors.sort(key=lambda factor: factor not in causes)  # the cause first, as time may run out
    for factor in factors:
        values = list_condition_settings(factor)
        values = values if factor in causes else values[:SHARED_VALUES]
        runs += [AdverseRun(kind=factor, tests=targets, settings=settings) for _, settings in values]
    orders = [shuffle_tests(tests, seed + number) for number in range(RANDOM_ORDERS)]
    runs += [
        AdverseRun(kind="random_order", tests=(), settings=RunConditions(order=order, hash_seed="random"))
        for order in orders
    ]
    return [*runs, AdverseRun(kind="parallel", tests=())]


@cache
def _load_plugin() -> bytes:
    folder = resources.files("suture.judge.runners").joinpath("report_plugin")
    return folder.joinpath("conditions.py").read_bytes()
