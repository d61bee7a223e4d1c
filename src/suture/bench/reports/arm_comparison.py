"""Paired comparisons of arms and of whole benchmark runs, task by task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from suture.bench.measures.arm_metrics import scores_by_task
from suture.bench.measures.paired_statistics import (
    Interval,
    bootstrap_difference,
    find_detectable_difference,
    holm,
    mcnemar,
    paired_interval,
)
from suture.bench.reports.cells import Cell, group_into_cells
from suture.bench.rows import BenchmarkRow
from suture.errors import UsageError

ALPHA = 0.05
"""By convention: a report calls a difference significant at this p-value or below."""


@dataclass(frozen=True, kw_only=True)
class ArmComparison:
    """The paired test of two arms at the same cap.

    With several seeds, a task counts for the arm that solved it more often. If the arms are equal, both are
    equally likely, so the test stays exact. With one seed it is McNemar's test.

    Attributes:
        tasks: Tasks that both arms ran, with results for a common seed.
        runs: Runs of each arm on these tasks, one per common seed.
        only_first: Tasks on which the first is ahead.
        only_second: Tasks on which the second is ahead.
        missing_first: Tasks that only the second ran.
        missing_second: Tasks that only the first ran.
        unknown: Tasks that both ran, without results for a common seed.
        difference: Second minus first, in shares of tasks, with its 95% interval; `None` without tasks. With
            one seed the interval excludes 0 exactly if `p_value` is below 0.05; with several it is a
            bootstrap over tasks and seeds.
        p_value: p-value of the exact two-sided test, in [0, 1].
        adjusted: The p-value after Holm's adjustment for all comparisons.
        detectable: The smallest true difference that such a sample finds with power 0.8 at this number of
            comparisons; `None` if it finds none.
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
    first: str, first_rows: Sequence[BenchmarkRow], second: str, second_rows: Sequence[BenchmarkRow]
) -> ArmComparison:
    """Return the paired test of two arms, not adjusted yet."""
    ran = {row.problem for row in first_rows}, {row.problem for row in second_rows}
    pairs = paired_scores(first_rows, second_rows)
    only_first, only_second = count_ahead(pairs)
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
    first_rows: Sequence[BenchmarkRow], second_rows: Sequence[BenchmarkRow]
) -> list[tuple[list[float], list[float]]]:
    """Return the scores of both arms for each comparable task, seed by seed."""
    ones, others = scores_by_task(first_rows), scores_by_task(second_rows)
    pairs = []
    for task in sorted(ones.keys() & others.keys()):
        if seeds := sorted(ones[task].keys() & others[task].keys()):
            pairs.append(([ones[task][seed] for seed in seeds], [others[task][seed] for seed in seeds]))
    return pairs


def count_ahead(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[int, int]:
    """Return on how many tasks the first arm is better, and on how many the second."""
    return sum(sum(a) > sum(b) for a, b in pairs), sum(sum(b) > sum(a) for a, b in pairs)


def _difference(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Interval:
    exact = paired_interval(*count_ahead(pairs), len(pairs))
    if all(len(a) == 1 for a, _ in pairs):
        return exact
    found = bootstrap_difference([a for a, _ in pairs], [b for _, b in pairs])
    # It has no width only if no seed differs from another of its task; then one seed says as much as all.
    return exact if found.low == found.high else found


def adjust_comparisons(comparisons: Sequence[ArmComparison]) -> tuple[ArmComparison, ...]:
    """Return the comparisons with p-values and detectable differences adjusted for their number."""
    p_values = holm({str(n): one.p_value for n, one in enumerate(comparisons)})
    # The first and strictest step of Holm's method.
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
    return find_detectable_difference(tasks, discordant / tasks, alpha=alpha) if tasks else None


@dataclass(frozen=True, kw_only=True)
class BenchmarkRunComparison:
    """The tests of two benchmark runs in one cell.

    Attributes:
        title: Dataset, regime, model and cap of the cell.
        warnings: What must be read before the numbers.
        comparisons: One per pair of arms, adjusted over all cells together.
    """

    title: str
    warnings: tuple[str, ...]
    comparisons: tuple[ArmComparison, ...]


def compare_runs(
    first: Sequence[BenchmarkRow],
    second: Sequence[BenchmarkRow],
    arms: Sequence[str] = (),
    names: tuple[str, str] = ("A", "B"),
) -> tuple[BenchmarkRunComparison, ...]:
    """Return the paired tests of two benchmark runs, in every cell that both have.

    Args:
        first: Rows of one run.
        second: Rows of the other run; with two arms it may be the same run.
        arms: Without arms, each arm is compared with itself in the other run. With one arm, only that arm.
            With two, the first in one run is compared with the second in the other.
        names: Names of the runs.

    Raises:
        UsageError: There are more than two arms, or nothing can be compared.
    """
    if len(arms) > 2:
        raise UsageError(f"two arms are compared, not {len(arms)}", remedy="give --arm at most twice")
    pairs = list(_cell_pairs(first, second))
    wanted = [(one, other, a, b) for one, other in pairs for a, b in _arm_pairs(one, other, arms)]
    if not wanted:
        raise UsageError(
            f"nothing to compare: the runs hold {_held(first)} and {_held(second)}",
            remedy="compare runs of the same dataset, regime, model and cap, or name two arms with --arm",
        )
    tests = adjust_comparisons(
        [
            compare_arms(f"{a} in {names[0]}", one.arms[a], f"{b} in {names[1]}", other.arms[b])
            for one, other, a, b in wanted
        ]
    )
    return tuple(
        BenchmarkRunComparison(
            title=one.title,
            warnings=tuple(_warnings(one, other, names)),
            comparisons=tuple(
                test for test, (cell, *_) in zip(tests, wanted, strict=True) if cell.title == one.title
            ),
        )
        for one, other in pairs
        if any(cell.title == one.title for cell, *_ in wanted)
    )


def render_arm_comparison(found: ArmComparison) -> str:
    """Return the test as a sentence."""
    if found.difference is None:
        return (
            f"{found.second} and {found.first} have no common task with a result, so they cannot be compared."
        )
    counts = (
        f"of {found.tasks} tasks {found.only_second} go to {found.second} alone "
        f"and {found.only_first} to {found.first} alone"
    )
    numbers = (
        f"difference {100 * found.difference.estimate:+.1f} points "
        f"[{100 * found.difference.low:+.1f}, {100 * found.difference.high:+.1f}], p = {found.adjusted:.4f}"
    )
    if found.significant:
        more = found.only_second > found.only_first
        winner, loser = (found.second, found.first) if more else (found.first, found.second)
        return f"{winner} solves more tasks than {loser}: {counts}; {numbers}."
    return f"{found.second} and {found.first} cannot be distinguished: {counts}; {numbers}. {_limit(found)}"


def _limit(found: ArmComparison) -> str:
    if found.detectable is None:
        return "So few tasks could not show any difference."
    return (
        f"A true difference of less than {100 * found.detectable:.1f} points "
        "would be missed more than one time in five."
    )


def _cell_pairs(first: Sequence[BenchmarkRow], second: Sequence[BenchmarkRow]) -> Iterator[tuple[Cell, Cell]]:
    """Yield the cells that both runs have, without tasks whose content differs between the runs."""
    changed = {cell.title: frozenset(cell.changed) for cell in group_into_cells([*first, *second])}
    ones = {cell.title: cell for cell in group_into_cells(first)}
    for other in group_into_cells(second):
        if one := ones.get(other.title):
            yield _without(one, changed[one.title]), _without(other, changed[one.title])


def _without(cell: Cell, changed: frozenset[str]) -> Cell:
    kept = {arm: tuple(row for row in rows if row.problem not in changed) for arm, rows in cell.arms.items()}
    return Cell(
        dataset=cell.dataset,
        regime=cell.regime,
        model=cell.model,
        cap=cell.cap,
        arms=kept,
        changed=tuple(sorted(changed)),
    )


def _arm_pairs(one: Cell, other: Cell, arms: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [(arms[0], arms[1])] if len(arms) == 2 else [(arm, arm) for arm in arms or one.arms]
    return [(a, b) for a, b in pairs if a in one.arms and b in other.arms]


def _warnings(one: Cell, other: Cell, names: tuple[str, str]) -> Iterator[str]:
    for cell, name in ((one, names[0]), (other, names[1])):
        if cell.missing_baselines:
            yield f"NO EQUAL-BUDGET BASELINE: {name} has no rows of {' or '.join(cell.missing_baselines)}."
    if one.changed:
        yield f"Left out, because their content differs between the runs: {len(one.changed)} tasks."


def _held(rows: Sequence[BenchmarkRow]) -> str:
    cells = (f"{cell.title} ({', '.join(cell.arms)})" for cell in group_into_cells(rows))
    return "; ".join(cells) or "no rows"
