"""A sequential test of a success rate, with error rates that are computed and not approximated.

Wald's sequential probability ratio test ("Sequential Tests of Statistical Hypotheses", 1945) between a rate
that is good enough and one that is too poor, with the thresholds of Ville's inequality ("Étude critique de la
notion de collectif", 1939), which hold for any length. It is cut off at a number of tasks; the error that the
early stops have not used up by then is spent on a last, fixed test. All chances are sums over binomial paths.
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
    """Where a test stops.

    Attributes:
        least: The rate that is good enough: with it or a better one the test fails with a chance of at most
            `error`.
        poor: The rate that is too poor: with it or a worse one the test passes with a chance of at most
            `error`.
        error: The chance of an error of either kind, in [0, 1].
        fails: After n + 1 tasks so many solved ones or fewer fail; -1 where none do.
        passes: After n + 1 tasks so many solved ones or more pass; n + 2, which cannot be, where none do.
    """

    least: float
    poor: float
    error: float
    fails: tuple[int, ...]
    passes: tuple[int, ...]

    @property
    def tasks(self) -> int:
        """The most that it takes."""
        return len(self.fails)


@dataclass(frozen=True, kw_only=True)
class OutcomeChances:
    """What comes of a test at a true rate.

    Attributes:
        passed: The chance that it passes.
        failed: The chance that it fails.
        undecided: The chance that the tasks run out first.
        tasks: How many it takes on average.
    """

    passed: float
    failed: float
    undecided: float
    tasks: float


@dataclass(frozen=True, kw_only=True)
class SequentialDecision:
    """What came of it: how it stands, after how many tasks, and how many of them were solved."""

    standing: Standing
    tasks: int
    solved: int


def design_sequential_test(least: float, margin: float, confidence: float, tasks: int) -> SequentialDesign:
    """Lay a test out.

    Args:
        least: The rate that is good enough.
        margin: How far below it a rate is too poor.
        confidence: One minus the error of either kind.
        tasks: The most that may be tried.

    Raises:
        UsageError: The rates are not inside (0, 1), the confidence not in (0.5, 1), or there are no tasks.
    """
    poor, error = least - margin, 1 - confidence
    if not 0 < poor < least < 1:
        raise UsageError(
            f"a rate of {least:g} with a margin of {margin:g} cannot be tested",
            remedy="both the rate and the rate less the margin lie between 0 and 1",
        )
    if not 0.5 < confidence < 1:
        raise UsageError(f"a confidence of {confidence:g} cannot be had", remedy="such as 0.95")
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
    """What comes of a test when each task is solved with a chance of `rate`."""
    passed, failed, last, tried = _paths(design, rate)
    n = design.tasks - 1
    passed += sum(chance for solved, chance in last.items() if solved >= design.passes[n])
    failed += sum(chance for solved, chance in last.items() if solved <= design.fails[n])
    return OutcomeChances(passed=passed, failed=failed, undecided=max(0.0, 1 - passed - failed), tasks=tried)


def decide(design: SequentialDesign, results: Iterable[bool]) -> SequentialDecision:
    """Follow a test until it stops, or the results do.

    Args:
        design: Where the sequential test stops.
        results: Whether each task was solved, in the order fixed beforehand.
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
    """The same test, deciding as much as the errors allow once the tasks are spent."""
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
    """Chances to have passed, to have failed, of each count of solved tasks at the end, and the mean length.

    The last task is tried, and nothing is decided after it.
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
