"""A sequential test of a success rate, with exactly computed error rates.

This is Wald's sequential probability ratio test ("Sequential Tests of Statistical Hypotheses", 1945) between a
rate that is good enough and a rate that is too poor. Its thresholds are those of Ville's inequality ("Étude
critique de la notion de collectif", 1939), which hold for any length. The test ends at a maximum number of
tasks. The part of the error probability that early stops have not used by then is spent on a last, fixed test.
All probabilities are sums over binomial paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from suture.errors import UsageError

Standing = Literal["passed", "failed", "undecided"]
"""What a test has decided so far."""


@dataclass(frozen=True, kw_only=True)
class SequentialDesign:
    """The stopping rules of a test.

    Attributes:
        good_rate: The rate that is good enough. At this rate or a better one, the test fails with a probability
            of at most `error`.
        poor_rate: The rate that is too poor. At this rate or a worse one, the test passes with a probability of at
            most `error`.
        error: Probability of an error of either kind, in [0, 1].
        fails: Entry n: the test fails after n + 1 tasks if at most this many are solved; -1 if it cannot fail yet.
        passes: Entry n: it passes after n + 1 tasks if at least this many are solved; n + 2 if it cannot pass yet.
    """

    good_rate: float
    poor_rate: float
    error: float
    fails: tuple[int, ...]
    passes: tuple[int, ...]

    @property
    def tasks(self) -> int:
        """Maximum number of tasks."""
        return len(self.fails)


@dataclass(frozen=True, kw_only=True)
class OutcomeChances:
    """The outcome probabilities of a test at a true rate.

    Attributes:
        undecided: Probability that the tasks run out first.
        tasks: Mean number of tasks.
    """

    passed: float
    failed: float
    undecided: float
    tasks: float


@dataclass(frozen=True, kw_only=True)
class SequentialDecision:
    """The state of a test after some tasks."""

    standing: Standing
    tasks: int
    solved: int


def design_sequential_test(
    good_rate: float, margin: float, confidence: float, tasks: int
) -> SequentialDesign:
    """Design a test.

    Args:
        good_rate: The rate that is good enough.
        margin: How far below `good_rate` a rate is too poor.
        confidence: One minus the error of either kind.
    """
    poor_rate, error = good_rate - margin, 1 - confidence
    if not 0 < poor_rate < good_rate < 1:
        raise UsageError(
            f"a rate of {good_rate:g} with a margin of {margin:g} cannot be tested",
            remedy="both the rate and the rate less the margin lie between 0 and 1",
        )
    if not 0.5 < confidence < 1:  # a coin toss is wrong half of the time
        raise UsageError(f"a confidence of {confidence:g} is not possible", remedy="such as 0.95")
    if tasks < 1:
        raise UsageError("there are no tasks to test with")
    # What a solved and a failed task add to the logarithm of the likelihood ratio, and where it stops the test.
    solved_gain, failed_loss = math.log(good_rate / poor_rate), math.log((1 - poor_rate) / (1 - good_rate))
    bound = -math.log(error)
    slope = solved_gain + failed_loss
    fails = [math.floor((n * failed_loss - bound) / slope) for n in range(1, tasks + 1)]
    passes = [math.ceil((n * failed_loss + bound) / slope) for n in range(1, tasks + 1)]
    early_design = SequentialDesign(
        good_rate=good_rate,
        poor_rate=poor_rate,
        error=error,
        fails=tuple(max(-1, count) for count in fails),
        passes=tuple(min(n + 2, count) for n, count in enumerate(passes)),
    )
    return _add_last_test(early_design)


def compute_chances(design: SequentialDesign, rate: float) -> OutcomeChances:
    """Return the outcome probabilities of a test if each task is solved with the probability `rate`."""
    passed, failed, final_chances, mean_tasks = _sum_paths(design, rate)
    passed += sum(chance for solved, chance in final_chances.items() if solved >= design.passes[-1])
    failed += sum(chance for solved, chance in final_chances.items() if solved <= design.fails[-1])
    undecided = max(0.0, 1 - passed - failed)
    return OutcomeChances(passed=passed, failed=failed, undecided=undecided, tasks=mean_tasks)


def decide(design: SequentialDesign, results: Iterable[bool]) -> SequentialDecision:
    """Apply a test to results until it stops or they end.

    The results say whether each task was solved, in an order that was fixed in advance.
    """
    tried = solved = 0
    for tried, is_solved in enumerate(results, 1):
        solved += is_solved
        if solved <= design.fails[tried - 1]:
            return SequentialDecision(standing="failed", tasks=tried, solved=solved)
        if solved >= design.passes[tried - 1]:
            return SequentialDecision(standing="passed", tasks=tried, solved=solved)
        if tried == design.tasks:
            break
    return SequentialDecision(standing="undecided", tasks=tried, solved=solved)


def _add_last_test(early_design: SequentialDesign) -> SequentialDesign:
    """Return a test that also decides after the last task, for as many counts as the remaining errors allow."""
    tasks, error = early_design.tasks, early_design.error
    _, failed, final_chances_at_good, _ = _sum_paths(early_design, early_design.good_rate)
    passed, _, final_chances_at_poor, _ = _sum_paths(early_design, early_design.poor_rate)
    fails, passes = -1, tasks + 1
    for solved in range(tasks + 1):
        failed += final_chances_at_good.get(solved, 0.0)
        if failed > error:
            break
        fails = solved
    for solved in range(tasks, fails, -1):
        passed += final_chances_at_poor.get(solved, 0.0)
        if passed > error:
            break
        passes = solved
    return replace(
        early_design, fails=(*early_design.fails[:-1], fails), passes=(*early_design.passes[:-1], passes)
    )


def _sum_paths(design: SequentialDesign, rate: float) -> tuple[float, float, dict[int, float], float]:
    """Return (chance of passing, chance of failing, final count of solved tasks -> chance, mean tasks).

    Nothing is decided after the last task: its rule may not exist yet (see `_add_last_test`).
    """
    passed = failed = mean_tasks = 0.0
    chances: dict[int, float] = {0: 1.0}  # of the tests that have not stopped, by the count of solved tasks
    for n in range(1, design.tasks + 1):
        mean_tasks += sum(chances.values())
        next_chances: dict[int, float] = {}
        for solved, chance in chances.items():
            next_chances[solved] = next_chances.get(solved, 0.0) + chance * (1 - rate)
            next_chances[solved + 1] = next_chances.get(solved + 1, 0.0) + chance * rate
        chances = next_chances
        if n < design.tasks:
            passed += sum(chances.pop(count) for count in list(chances) if count >= design.passes[n - 1])
            failed += sum(chances.pop(count) for count in list(chances) if count <= design.fails[n - 1])
    return passed, failed, chances, mean_tasks
