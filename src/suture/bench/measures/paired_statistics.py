"""Statistics of a benchmark: paired by task, exact where possible, and otherwise with a fixed seed.

The standard library is enough, because samples are hundreds of tasks and never millions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean

RESAMPLES = 2000
"""Resamples of a bootstrap. Chosen by judgement; not measured."""
BISECTIONS = 60
"""Halvings of [0, 1]: enough for the last bit of a float."""
INTEGRATION_POINTS = 200
"""Points at which a probability is integrated. Chosen by judgement; not measured."""
NEGLIGIBLE = 1e-12
"""Smaller probabilities change no printed number."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Return the unbiased estimate of the probability that at least one of `k` samples is right.

    Chen et al. 2021, "Evaluating Large Language Models Trained on Code".
    """
    if not (0 <= right <= samples and 1 <= k <= samples):
        raise ValueError(f"no pass@{k} of {right} right ones among {samples} samples")
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of the hypothesis that two arms solve equally many tasks."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    tail = sum(math.comb(discordant, i) for i in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / 2**discordant))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values adjusted for their number by Holm's method, in the given order."""
    ordered = sorted(p_values, key=lambda name: p_values[name])
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(ordered):
        highest = max(highest, min(1.0, (len(ordered) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def exact_interval(right: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return the share of solved tasks with the exact interval of Clopper and Pearson."""
    if not 0 <= right <= tasks or tasks == 0:
        raise ValueError(f"{right} of {tasks} is not a share")
    tail = (1.0 - confidence) / 2
    low = 0.0 if right == 0 else _invert(lambda p: 1 - _at_most(right - 1, tasks, p), tail)
    high = 1.0 if right == tasks else _invert(lambda p: 1 - _at_most(right, tasks, p), 1 - tail)
    return Interval(estimate=right / tasks, low=low, high=high)


def paired_interval(only_first: int, only_second: int, tasks: int, confidence: float = 0.95) -> Interval:
    """Return the difference of two arms (second minus first), with an interval compatible with McNemar's test.

    The interval excludes 0 exactly if the p-value is below one minus the confidence, and it always has a
    width. The method is that of Fay and Lumbard 2021, "Confidence intervals for difference in proportions for
    matched pairs compatible with exact McNemar's or sign tests" (Statistics in Medicine 40:1147). It multiplies
    two distributions: that of the share of tasks on which the arms disagree, and that of the share of these
    tasks that one arm wins. Its coverage is confirmed by calculation (theirs, up to 100 tasks), not proved.

    Args:
        only_first: Tasks that only the first arm solved.
        only_second: Tasks that only the second arm solved.
        tasks: Tasks that both arms tried.
    """
    if min(only_first, only_second) < 0 or not 0 < tasks >= only_first + only_second:
        raise ValueError(f"{only_first} and {only_second} of {tasks} tasks cannot be compared")
    return Interval(
        estimate=(only_second - only_first) / tasks,
        low=_lower_limit(only_second, only_first, tasks, confidence),
        high=-_lower_limit(only_first, only_second, tasks, confidence),
    )


def bootstrap_difference(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the difference of two arms (second minus first), with a bootstrap over tasks and their seeds.

    The interval has no width if all resamples are equal.

    Args:
        first: The scores of each task for the first arm, one per seed.
        second: The same tasks in the same order for the second arm.
    """
    if len(first) != len(second) or not first:
        raise ValueError("the arms are not of the same tasks")
    generator = random.Random(seed)
    pairs = list(zip(first, second, strict=True))
    estimate = mean(mean(b) - mean(a) for a, b in pairs)

    def resample_mean(scores: Sequence[float]) -> float:
        return scores[0] if len(scores) == 1 else sum(generator.choices(scores, k=len(scores))) / len(scores)

    differences = sorted(
        sum(resample_mean(b) - resample_mean(a) for a, b in generator.choices(pairs, k=len(pairs)))
        / len(pairs)
        for _ in range(RESAMPLES)
    )
    tail_count = int((1.0 - confidence) / 2 * RESAMPLES)
    return Interval(estimate=estimate, low=differences[tail_count], high=differences[-1 - tail_count])


def _lower_limit(wins: int, losses: int, tasks: int, confidence: float) -> float:
    """Return the lower limit of (wins - losses) / tasks."""
    discordant = wins + losses
    if wins == 0:  # the share of wins may be 0, so only the share of discordant tasks matters
        return -exact_interval(losses, tasks, confidence).high
    lower_shares = _beta(discordant, tasks - discordant + 1)
    upper_shares = _beta(discordant + 1, tasks - discordant)
    # To err on the safe side, the share of discordant tasks must make the product small: a low share makes a
    # positive difference smaller, and a high share makes a negative one smaller.

    def chance_below(difference: float) -> float:
        """Return the chance that the product is at most a difference; at 0 that is the one-sided p-value."""
        return sum(
            weight * (1 - _at_most(wins - 1, discordant, min(1.0, max(0.0, (1 + difference / share) / 2))))
            for share, weight in (lower_shares if difference >= 0 else upper_shares)
        )

    # `_invert` searches in [0, 1], and differences are in [-1, 1].
    return 2 * _invert(lambda position: chance_below(2 * position - 1), (1 - confidence) / 2) - 1


def _beta(first: int, second: int) -> list[tuple[float, float]]:
    """Return a beta distribution as (point, weight) pairs; all weight is on 1 if the second parameter is 0.

    The outermost 1e-9 of the distribution on each side is left out. Chosen by judgement; not measured.
    """
    if second == 0:
        return [(1.0, 1.0)]
    total = first + second - 1
    low, high = (_invert(lambda p: 1 - _at_most(first - 1, total, p), tail) for tail in (1e-9, 1 - 1e-9))
    points = [low + (high - low) * (n + 0.5) / INTEGRATION_POINTS for n in range(INTEGRATION_POINTS)]
    # Up to a constant factor, the density is the binomial probability.
    heights = [_chance(first - 1, total - 1, point) for point in points]
    return [(point, height / sum(heights)) for point, height in zip(points, heights, strict=True)]


def find_detectable_difference(
    tasks: int, discordant_share: float, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return the smallest true difference of two arms that McNemar's exact test usually finds.

    It is in (0, 1], rounded up to a thousandth; `None` if even the largest difference would not be found.

    Args:
        tasks: Tasks that both arms tried.
        discordant_share: Share of tasks on which exactly one of the two is right. A difference needs at least
            a discordant share of its own size.
        alpha: The p-value that counts as found; 0.05 by convention.
        power: How often the difference must be found; 0.8 by convention.
    """

    def is_found(thousandths: int) -> bool:
        difference = thousandths / 1000
        return _power(tasks, max(discordant_share, difference), difference, alpha) >= power

    low, high = 0, 1000
    if not is_found(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high / 1000


def _power(tasks: int, discordant_share: float, difference: float, alpha: float) -> float:
    """Return the probability that the exact test finds a difference in its true direction."""
    worse_arm_share = (1 - difference / discordant_share) / 2  # of the discordant tasks, those that it solves
    chances = ((count, _chance(count, tasks, discordant_share)) for count in range(tasks + 1))
    return sum(
        chance * _at_most(_critical_count(discordant, alpha), discordant, worse_arm_share)
        for discordant, chance in chances
        if chance > NEGLIGIBLE
    )


@cache
def _critical_count(discordant: int, alpha: float) -> int:
    """Return how many tasks the worse arm may solve alone so that a difference is found; -1 if none."""
    tail = 0
    for count in range(discordant + 1):
        tail += math.comb(discordant, count)
        if 2 * tail / 2**discordant > alpha:
            return count - 1
    return -1


def _chance(right: int, tasks: int, share: float) -> float:
    """Return the binomial probability of a count, by logarithms because factorials overflow a float."""
    if share <= 0 or share >= 1:
        return float(right == (tasks if share >= 1 else 0))
    log_combinations = math.lgamma(tasks + 1) - math.lgamma(right + 1) - math.lgamma(tasks - right + 1)
    return math.exp(log_combinations + right * math.log(share) + (tasks - right) * math.log1p(-share))


def _at_most(right: int, tasks: int, share: float) -> float:
    """Return the binomial probability of at most a count."""
    # The terms are added from the largest on, away from the middle. Above the middle, the counter-event is summed.
    if right > tasks * share:
        return 1.0 - _at_most(tasks - right - 1, tasks, 1 - share)
    if right < 0:
        return 0.0
    term = total = _chance(right, tasks, share)
    for count in range(right, 0, -1):
        term *= count * (1 - share) / ((tasks - count + 1) * share)
        total += term
    return total


def _invert(rising: Callable[[float], float], value: float) -> float:
    """Return where an increasing function on [0, 1] takes a value."""
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return (low + high) / 2
