"""Compare arms, and whole benchmark runs, by paired tests over the tasks that both have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from suture.bench.measures.arm_metrics import scores_by_task
from suture.bench.measures.paired_statistics import (
    Interval,
    bootstrap_difference,
    find_detectable_difference,
    holm,
    mcnemar,
    paired_interval,
)
from suture.bench.problem import REGIMES, Regime
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
    first_tasks, second_tasks = {row.problem for row in first_rows}, {row.problem for row in second_rows}
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
        missing_first=len(second_tasks - first_tasks),
        missing_second=len(first_tasks - second_tasks),
        unknown=len(first_tasks & second_tasks) - len(pairs),
        difference=_difference(pairs) if pairs else None,
        p_value=p_value,
        adjusted=p_value,
        detectable=_detectable(len(pairs), only_first + only_second, ALPHA),
    )


def paired_scores(
    first_rows: Sequence[BenchmarkRow], second_rows: Sequence[BenchmarkRow]
) -> list[tuple[list[float], list[float]]]:
    """Return (first arm's scores, second arm's scores) of each task with results for common seeds."""
    first, second = scores_by_task(first_rows), scores_by_task(second_rows)
    pairs = []
    for task in sorted(first.keys() & second.keys()):
        if seeds := sorted(first[task].keys() & second[task].keys()):
            pairs.append(([first[task][seed] for seed in seeds], [second[task][seed] for seed in seeds]))
    return pairs


def count_ahead(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[int, int]:
    """Return on how many tasks the first arm is better, and on how many the second."""
    return sum(sum(a) > sum(b) for a, b in pairs), sum(sum(b) > sum(a) for a, b in pairs)


def _difference(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Interval:
    exact_interval = paired_interval(*count_ahead(pairs), len(pairs))
    if all(len(a) == 1 for a, _ in pairs):
        return exact_interval
    interval = bootstrap_difference([a for a, _ in pairs], [b for _, b in pairs])
    # The bootstrap has no width only if no seed differs from another of its task; then one seed says as much as all.
    return exact_interval if interval.low == interval.high else interval


def adjust_comparisons(comparisons: Sequence[ArmComparison]) -> tuple[ArmComparison, ...]:
    """Return the comparisons with p-values and detectable differences adjusted for their number."""
    p_values = holm({str(number): test.p_value for number, test in enumerate(comparisons)})
    # The first and strictest step of Holm's method.
    alpha = ALPHA / max(1, len(comparisons))
    return tuple(
        replace(
            test,
            adjusted=p_values[str(number)],
            detectable=_detectable(test.tasks, test.only_first + test.only_second, alpha),
        )
        for number, test in enumerate(comparisons)
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

    Raises:
        UsageError: There are more than two arms, or nothing can be compared.
    """
    if len(arms) > 2:
        raise UsageError(f"two arms are compared, not {len(arms)}", remedy="give --arm at most twice")
    tests: list[ArmComparison] = []
    cells: list[tuple[Cell, Cell, int]] = []  # (first cell, second cell, number of their tests)
    for first_cell, second_cell in _cell_pairs(first, second):
        arm_pairs = _arm_pairs(first_cell, second_cell, arms)
        for a, b in arm_pairs:
            first_name, second_name = f"{a} in {names[0]}", f"{b} in {names[1]}"
            tests.append(compare_arms(first_name, first_cell.arms[a], second_name, second_cell.arms[b]))
        cells.append((first_cell, second_cell, len(arm_pairs)))
    if not tests:
        raise UsageError(
            f"nothing to compare: the runs hold {_describe_cells(first)} and {_describe_cells(second)}",
            remedy="compare runs of the same dataset, regime, model and cap, or name two arms with --arm",
        )
    adjusted_tests = iter(adjust_comparisons(tests))
    return tuple(
        BenchmarkRunComparison(
            title=first_cell.title,
            warnings=tuple(_warnings(first_cell, second_cell, names)),
            comparisons=tuple(islice(adjusted_tests, count)),
        )
        for first_cell, second_cell, count in cells
        if count
    )


def render_arm_comparison(test: ArmComparison) -> str:
    """Return the test as a sentence."""
    first, second = test.first, test.second
    if test.difference is None:
        return f"{second} and {first} have no common task with a result, so they cannot be compared."
    counts = f"of {test.tasks} tasks {test.only_second} go to {second} alone and {test.only_first} to {first} alone"
    numbers = (
        f"difference {100 * test.difference.estimate:+.1f} points "
        f"[{100 * test.difference.low:+.1f}, {100 * test.difference.high:+.1f}], p = {test.adjusted:.4f}"
    )
    if test.significant:
        winner, loser = (second, first) if test.only_second > test.only_first else (first, second)
        return f"{winner} solves more tasks than {loser}: {counts}; {numbers}."
    if test.detectable is None:
        limit = "So few tasks could not show any difference."
    else:
        limit = (
            f"A true difference of less than {100 * test.detectable:.1f} points "
            "would be missed more than one time in five."
        )
    return f"{second} and {first} cannot be distinguished: {counts}; {numbers}. {limit}"


def _cell_pairs(first: Sequence[BenchmarkRow], second: Sequence[BenchmarkRow]) -> Iterator[tuple[Cell, Cell]]:
    """Yield the cells that both runs have, without tasks whose content differs between the runs."""
    changed = {cell.title: cell.changed for cell in group_into_cells([*first, *second])}
    first_cells = {cell.title: cell for cell in group_into_cells(first)}
    for second_cell in group_into_cells(second):
        title = second_cell.title
        if first_cell := first_cells.get(title):
            yield _leave_out(first_cell, changed[title]), _leave_out(second_cell, changed[title])


def _leave_out(cell: Cell, changed: tuple[str, ...]) -> Cell:
    arms = {arm: tuple(row for row in rows if row.problem not in changed) for arm, rows in cell.arms.items()}
    return replace(cell, arms=arms, changed=changed)


def _arm_pairs(first: Cell, second: Cell, arms: Sequence[str]) -> list[tuple[str, str]]:
    """Return (arm of the first cell, arm of the second cell) of each comparison."""
    pairs = [(arms[0], arms[1])] if len(arms) == 2 else [(arm, arm) for arm in arms or first.arms]
    return [(a, b) for a, b in pairs if a in first.arms and b in second.arms]


def _warnings(first: Cell, second: Cell, names: tuple[str, str]) -> Iterator[str]:
    for cell, name in ((first, names[0]), (second, names[1])):
        if cell.missing_baselines:
            yield f"NO EQUAL-BUDGET BASELINE: {name} has no rows of {' or '.join(cell.missing_baselines)}."
    if first.changed:
        yield f"Left out, because their content differs between the runs: {len(first.changed)} tasks."


def _describe_cells(rows: Sequence[BenchmarkRow]) -> str:
    cells = (f"{cell.title} ({', '.join(cell.arms)})" for cell in group_into_cells(rows))
    return "; ".join(cells) or "no rows"


BASELINES = ("greedy", "best_of_k")
"""Arms that every table needs: a number without them says nothing about healing."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Rows that may be in one table.

    Attributes:
        regime: What the loop could see of the checks.
        cap: Generated tokens that each run could spend.
        arms: Arm -> its rows; baselines first, then by name.
        changed: Ids of tasks that are not in `arms`, because their content differs between rows.
    """

    dataset: str
    regime: Regime
    model: str
    cap: int
    arms: dict[str, tuple[BenchmarkRow, ...]]
    changed: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What distinguishes the cell from others."""
        return f"{self.dataset}, regime {self.regime}, {self.model}, at most {self.cap:,} generated tokens"

    @property
    def missing_baselines(self) -> tuple[str, ...]:
        """Baselines of which the cell has no rows."""
        return tuple(arm for arm in BASELINES if arm not in self.arms)


def sort_arms(names: Collection[str]) -> list[str]:
    """Return names of arms with the baselines first, and the others in alphabetical order."""
    baselines = [name for name in BASELINES if name in names]
    return [*baselines, *sorted(set(names) - set(BASELINES))]


def group_into_cells(rows: Iterable[BenchmarkRow]) -> tuple[Cell, ...]:
    """Group rows into cells; the regime `visible`, which headlines use, and the largest cap come first."""
    rows_by_cell: dict[tuple[str, Regime, str, int], list[BenchmarkRow]] = {}
    for row in rows:
        rows_by_cell.setdefault((row.dataset, row.regime, row.model, row.cap), []).append(row)
    keys = sorted(rows_by_cell, key=lambda key: (REGIMES.index(key[1]), *key[:3], -key[3]))
    return tuple(_make_cell(rows_by_cell[key]) for key in keys)


def _make_cell(rows: Sequence[BenchmarkRow]) -> Cell:
    hashes: dict[str, set[str]] = {}
    for row in rows:
        hashes.setdefault(row.problem, set()).add(row.problem_hash)
    changed = {problem for problem, problem_hashes in hashes.items() if len(problem_hashes) > 1}
    unchanged_rows = [row for row in rows if row.problem not in changed]
    return Cell(
        dataset=rows[0].dataset,
        regime=rows[0].regime,
        model=rows[0].model,
        cap=rows[0].cap,
        arms={
            arm: tuple(row for row in unchanged_rows if row.arm == arm)
            for arm in sort_arms({row.arm for row in unchanged_rows})
        },
        changed=tuple(sorted(changed)),
    )
