"""Find out why a test is flaky, by experiments.

A condition explains a flaky test if the test always ends the same way while the condition is fixed, and ends
differently for different values of it. A test that another one disturbs is found by delta debugging over the tests
before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from suture.core.records import Verdict
from suture.core.records.flakiness import FlakyCause, FlakyDiagnosis, FlakyExperiment, TestCondition
from suture.judge.suite import Suite
from suture.judge.triage.flaky_conditions import (
    FlakyTestRunner,
    RunConditions,
    list_condition_settings,
    shuffle_tests,
)
from suture.judge.triage.order_dependence import find_deciding_tests, find_state_change
from suture.judge.tuning import (
    FIXED_RUNS,
    MIN_FIXED_VALUES,
    MIN_FRESH_RUN_TIMEOUT_S,
    RANDOM_ORDERS,
    RERUN_TIMEOUT_FACTOR,
    STATISTICS_RUNS,
)

Factor = Literal["random_numbers", "clock", "slow_machine", "hash_seed"]
"""A condition that experiments fix, which is also the cause that they show."""
FACTORS: tuple[Factor, ...] = get_args(Factor)


def make_flaky_test_runner(suite: Suite, base: Verdict, seconds: float) -> FlakyTestRunner:
    """Return a runner of tests on the unchanged files for some seconds; the suite's command must be pytest's."""
    assert suite.command is not None
    return FlakyTestRunner(
        command=suite.command,
        files=suite.task.files,
        timeout_s=max(MIN_FRESH_RUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR * base.wall_s),
        end_s=time.monotonic() + seconds,
    )


async def diagnose_flaky_test(
    victim: str, tests: Sequence[str], runs: FlakyTestRunner, seed: int
) -> FlakyDiagnosis:
    """Return why a test is flaky.

    Args:
        tests: All tests of the command, in its order.
        seed: Seed of the random orders.

    Raises:
        SandboxError: The sandbox failed.
    """
    investigation = _Investigation(victim=victim, tests=tests, runs=runs, seed=seed)
    cause, others = await investigation.find_cause()
    return FlakyDiagnosis(
        test=victim,
        cause=cause,
        other_tests=others,
        statement=find_state_change(others, runs.files) if cause == "shared_state" else "",
        experiments=tuple(investigation.experiments),
    )


@dataclass(kw_only=True)
class _Investigation:
    """The experiments with one test."""

    victim: str
    tests: Sequence[str]
    runs: FlakyTestRunner
    seed: int
    experiments: list[FlakyExperiment] = field(default_factory=list)

    async def find_cause(self) -> tuple[FlakyCause, tuple[str, ...]]:
        """Return the cause, and the other tests that it is about."""
        in_suite = await self._repeat("suite", "", (), RunConditions(), STATISTICS_RUNS)
        alone = await self._repeat("alone", "", (self.victim,), RunConditions(), STATISTICS_RUNS)
        before = self.tests[: self.tests.index(self.victim)] if self.victim in self.tests else ()
        varies_alone = 0 < alone.passed < alone.runs
        if not varies_alone and alone.runs:
            ending = await self._find_order_cause(in_suite, alone, before)
            if ending is not None:
                return ending
        # Runs share a hash seed, so a test that varies in them has most likely another cause, and vice versa.
        for factor in FACTORS if varies_alone else reversed(FACTORS):
            if await self._decides(factor, (self.victim,) if varies_alone else ()):
                return factor, ()
        return "unknown", ()

    async def _find_order_cause(
        self, in_suite: FlakyExperiment, alone: FlakyExperiment, before: Sequence[str]
    ) -> tuple[FlakyCause, tuple[str, ...]] | None:
        """Return the cause of a test that always ends the same way alone, if other tests are the cause."""
        cause: FlakyCause = "shared_state" if alone.passed else "missing_setup"
        differs = in_suite.passed < in_suite.runs if alone.passed else in_suite.passed > 0
        others = await self._find_other_tests(before, passes=not alone.passed) if differs else ()
        if others:
            return cause, others
        endings: set[bool] = set()
        for number in range(RANDOM_ORDERS):
            order = shuffle_tests(self.tests, self.seed + number)
            conditions = RunConditions(order=order)
            run = await self._repeat("random_order", str(self.seed + number), (), conditions, 1)
            if self.victim in order and run.runs and (run.passed > 0) != (alone.passed > 0):
                others = await self._find_other_tests(
                    order[: order.index(self.victim)], passes=not alone.passed
                )
            if others:
                return cause, others
            endings |= {run.passed > 0} if run.runs else set()
        is_constant = in_suite.passed in (0, in_suite.runs)
        is_order = is_constant and (differs or len(endings) > 1)
        return ("test_order", ()) if is_order else None

    async def _find_other_tests(self, before: Sequence[str], *, passes: bool) -> tuple[str, ...]:
        """Return the fewest of the tests before the victim after which it passes, or fails; none if there are none."""

        async def has_outcome(others: Sequence[str]) -> bool:
            if self.runs.is_over:
                return False
            order = (*others, self.victim)
            ended = await self.runs.run(order, RunConditions(order=order))
            return ended.get(self.victim) == passes

        others = await find_deciding_tests(before, has_outcome)
        # Repeated, because a test that varies may have had this outcome by chance.
        return others if others and await has_outcome(others) else ()

    async def _decides(self, condition: TestCondition, tests: Sequence[str]) -> bool:
        """Return whether the victim ends the same way for each value of a condition, and differently for some."""
        endings: dict[str, bool] = {}
        values = list_condition_settings(condition)
        for value, conditions in values:
            if len({*endings.values()}) == 2 and len(endings) >= MIN_FIXED_VALUES:
                break
            run = await self._repeat(condition, value, tests, conditions, 1)
            if not run.runs:
                return False
            endings[value] = run.passed > 0
        if len({*endings.values()}) < 2:
            return False
        for value, conditions in values[: len(endings)]:
            for _ in range(FIXED_RUNS - 1):
                run = await self._repeat(condition, value, tests, conditions, 1)
                if not run.runs or (run.passed > 0) != endings[value]:
                    return False
        return True

    async def _repeat(
        self,
        condition: TestCondition,
        value: str,
        tests: Sequence[str],
        conditions: RunConditions,
        count: int,
    ) -> FlakyExperiment:
        """Run tests several times, and record how often the victim passed."""
        experiment = FlakyExperiment(condition=condition, value=value, runs=0, passed=0)
        for _ in range(count):
            ended = None if self.runs.is_over else (await self.runs.run(tests, conditions)).get(self.victim)
            if ended is not None:
                passed = experiment.passed + ended
                experiment = replace(experiment, runs=experiment.runs + 1, passed=passed)
        self.experiments.append(experiment)
        return experiment
