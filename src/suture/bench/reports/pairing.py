"""Two arms, task by task: who solved what, and what the sample can say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from suture.bench.measures.metrics import by_task
from suture.bench.measures.statistics import (
    Interval,
    bootstrap_difference,
    holm,
    mcnemar,
    minimum_detectable,
    paired_interval,
)
from suture.bench.rows import Row

ALPHA = 0.05
"""By convention; a report calls a difference significant from here on down."""


@dataclass(frozen=True, kw_only=True)
class ArmComparison:
    """The paired test of two arms at the same tokens.

    With several seeds a task counts for the arm that solved it in more of them; under the hypothesis that the
    arms are alike either is as likely, so the test stays exact. With one seed it is McNemar's.

    Attributes:
        first: An arm, with what tells it apart from the other.
        second: The arm that it is compared with.
        tasks: Tasks that both ran, with a known truth and a seed in common.
        runs: Of each arm, on these tasks: one for each common seed.
        only_first: Tasks on which the first is ahead.
        only_second: Tasks on which the second is ahead.
        missing_first: Tasks that only the second ran.
        missing_second: Tasks that only the first ran.
        unknown: Tasks that both ran, left out because a fault or a missing grade leaves no common seed.
        difference: Second minus first, in shares of tasks, with its 95% interval; `None` without tasks. With
            one seed the interval leaves 0 out just where `p_value` is below 0.05; with several it is a
            bootstrap over tasks and seeds.
        p_value: Of the exact two-sided test, in [0, 1].
        adjusted: After Holm, for all comparisons made together.
        detectable: The smallest true difference that such a sample finds with power 0.8 at this many
            comparisons; `None` where it finds none.
    """

    first: str
    second: str
    tasks: int
    runs: int
    only_first: int
    only_second: int
    missing_first: int
    missing_second: int
    unknown: int
    difference: Interval | None
    p_value: float
    adjusted: float
    detectable: float | None

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is at most 0.05."""
        return self.adjusted <= ALPHA


def compare_arms(
    first: str, first_rows: Sequence[Row], second: str, second_rows: Sequence[Row]
) -> ArmComparison:
    """The paired test of two arms, not yet adjusted."""
    ran = {row.problem for row in first_rows}, {row.problem for row in second_rows}
    pairs = paired_scores(first_rows, second_rows)
    only_first, only_second = ahead(pairs)
    p_value = mcnemar(only_first, only_second)
    return ArmComparison(
        first=first,
        second=second,
        tasks=len(pairs),
        runs=sum(len(a) for a, _ in pairs),
        only_first=only_first,
        only_second=only_second,
        missing_first=len(ran[1] - ran[0]),
        missing_second=len(ran[0] - ran[1]),
        unknown=len(ran[0] & ran[1]) - len(pairs),
        difference=_difference(pairs) if pairs else None,
        p_value=p_value,
        adjusted=p_value,
        detectable=_detectable(len(pairs), only_first + only_second, ALPHA),
    )


def paired_scores(
    first_rows: Sequence[Row], second_rows: Sequence[Row]
) -> list[tuple[list[float], list[float]]]:
    """Of each task that can be compared the scores of both arms, seed by seed."""
    ones, others = by_task(first_rows), by_task(second_rows)
    pairs = []
    for task in sorted(ones.keys() & others.keys()):
        if seeds := sorted(ones[task].keys() & others[task].keys()):
            pairs.append(([ones[task][seed] for seed in seeds], [others[task][seed] for seed in seeds]))
    return pairs


def ahead(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[int, int]:
    """On how many tasks the first arm is ahead, and on how many the second."""
    return sum(sum(a) > sum(b) for a, b in pairs), sum(sum(b) > sum(a) for a, b in pairs)


def _difference(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Interval:
    exact = paired_interval(*ahead(pairs), len(pairs))
    if all(len(a) == 1 for a, _ in pairs):
        return exact
    found = bootstrap_difference([a for a, _ in pairs], [b for _, b in pairs])
    # Without width only where no seed differs from another of its task: then one seed says as much as all.
    return exact if found.low == found.high else found


def adjusted(comparisons: Sequence[ArmComparison]) -> tuple[ArmComparison, ...]:
    """The same comparisons, with p-values and detectable differences for as many as were made together."""
    p_values = holm({str(n): one.p_value for n, one in enumerate(comparisons)})
    # Holm's first and strictest step: what every comparison must be able to bear.
    alpha = ALPHA / max(1, len(comparisons))
    return tuple(
        replace(
            one,
            adjusted=p_values[str(n)],
            detectable=_detectable(one.tasks, one.only_first + one.only_second, alpha),
        )
        for n, one in enumerate(comparisons)
    )


def _detectable(tasks: int, discordant: int, alpha: float) -> float | None:
    return minimum_detectable(tasks, discordant / tasks, alpha=alpha) if tasks else None
