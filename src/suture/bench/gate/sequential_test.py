"""A sequential test of a success rate, with exactly computed error rates.

Wald's sequential probability ratio test ("Sequential Tests of Statistical Hypotheses", 1945) between a rate
that is good enough and one that is too poor, with the thresholds of Ville's inequality ("Étude critique de la
notion de collectif", 1939), which hold for any length. It ends at a number of tasks; the error that
the early stops have not used by then is spent on a last, fixed test. All probabilities are sums over binomial
paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from suture.errors import UsageError

Standing = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, kw_only=True)
class SequentialDesign:
    """The stopping rules of a test.

    Attributes:
        least: The rate that is good enough. At this rate or a better one, the test fails with a probability
            of at most `error`.
        poor: The rate that is too poor. At this rate or a worse one, the test passes with a probability of at
            most `error`.
        error: Probability of an error of either kind, in [0, 1].
        fails: Entry n: after n + 1 tasks, the test fails with at most so many solved; -1 if it cannot fail
            yet.
        passes: Entry n: after n + 1 tasks, it passes with at least so many solved; n + 2 if it cannot pass
            yet.
    """

    least: float
    poor: float
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
    """The state of a test after some tasks, of which some were solved."""

    standing: Standing
    tasks: int
    solved: int


def design_sequential_test(least: float, margin: float, confidence: float, tasks: int) -> SequentialDesign:
    """Design a test.

    Args:
        least: The rate that is good enough.
        margin: How far below `least` a rate is too poor.
        confidence: One minus the error of either kind.
        tasks: Maximum number of tasks.
    """
    poor, error = least - margin, 1 - confidence
    if not 0 < poor < least < 1:
        raise UsageError(
            f"a rate of {least:g} with a margin of {margin:g} cannot be tested",
            remedy="both the rate and the rate less the margin lie between 0 and 1",
        )
    if not 0.5 < confidence < 1:
        raise UsageError(f"a confidence of {confidence:g} is not possible", remedy="such as 0.95")
    if tasks < 1:
        raise UsageError("there are no tasks to test with")
    up, down = math.log(least / poor), math.log((1 - poor) / (1 - least))
    bound = -math.log(error)
    fails = [math.floor((n * down - bound) / (up + down)) for n in range(1, tasks + 1)]
    passes = [math.ceil((n * down + bound) / (up + down)) for n in range(1, tasks + 1)]
    early = SequentialDesign(
        least=least,
        poor=poor,
        error=error,
        fails=tuple(max(-1, count) for count in fails),
        passes=tuple(min(n + 2, count) for n, count in enumerate(passes)),
    )
    return _with_last_test(early)


def compute_chances(design: SequentialDesign, rate: float) -> OutcomeChances:
    """Return the outcome probabilities of a test if each task is solved with the probability `rate`."""
    passed, failed, last, tried = _paths(design, rate)
    n = design.tasks - 1
    passed += sum(chance for solved, chance in last.items() if solved >= design.passes[n])
    failed += sum(chance for solved, chance in last.items() if solved <= design.fails[n])
    return OutcomeChances(passed=passed, failed=failed, undecided=max(0.0, 1 - passed - failed), tasks=tried)


def decide(design: SequentialDesign, results: Iterable[bool]) -> SequentialDecision:
    """Apply a test to results until it stops or they end.

    Args:
        design: The test.
        results: Whether each task was solved, in an order that was fixed beforehand.
    """
    tried = solved = 0
    for tried, right in enumerate(results, 1):
        solved += right
        standing = _standing(design, tried, solved)
        if standing != "undecided" or tried == design.tasks:
            return SequentialDecision(standing=standing, tasks=tried, solved=solved)
    return SequentialDecision(standing="undecided", tasks=tried, solved=solved)


def _standing(design: SequentialDesign, tried: int, solved: int) -> Standing:
    if solved <= design.fails[tried - 1]:
        return "failed"
    return "passed" if solved >= design.passes[tried - 1] else "undecided"


def _with_last_test(early: SequentialDesign) -> SequentialDesign:
    """Return the test with a last decision, as strict as the remaining errors allow."""
    n = early.tasks
    _, failed, at_least, _ = _paths(early, early.least)
    passed, _, at_poor, _ = _paths(early, early.poor)
    fails, passes = -1, n + 1
    for solved in range(n + 1):
        failed += at_least.get(solved, 0.0)
        if failed > early.error:
            break
        fails = solved
    for solved in range(n, fails, -1):
        passed += at_poor.get(solved, 0.0)
        if passed > early.error:
            break
        passes = solved
    return SequentialDesign(
        least=early.least,
        poor=early.poor,
        error=early.error,
        fails=(*early.fails[:-1], fails),
        passes=(*early.passes[:-1], passes),
    )


def _paths(design: SequentialDesign, rate: float) -> tuple[float, float, dict[int, float], float]:
    """Return the probabilities of passing, failing and each final count of solved tasks, and the mean length.

    Nothing is decided after the last task.
    """
    passed = failed = tried = 0.0
    open_: dict[int, float] = {0: 1.0}
    for n in range(1, design.tasks + 1):
        tried += sum(open_.values())
        after: dict[int, float] = {}
        for solved, chance in open_.items():
            after[solved] = after.get(solved, 0.0) + chance * (1 - rate)
            after[solved + 1] = after.get(solved + 1, 0.0) + chance * rate
        open_ = after
        if n < design.tasks:
            passed += sum(open_.pop(s) for s in list(open_) if s >= design.passes[n - 1])
            failed += sum(open_.pop(s) for s in list(open_) if s <= design.fails[n - 1])
    return passed, failed, open_, tried
