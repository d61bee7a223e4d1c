"""Two benchmark runs against each other: the same tasks, task by task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suture.bench.reports.cells import Cell, cells_of
from suture.bench.reports.pairing import ArmComparison, adjusted, compare_arms
from suture.bench.rows import Row
from suture.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Versus:
    """The tests of two runs in one cell.

    Attributes:
        title: Dataset, regime, model and cap of the cell.
        warnings: What must be read before the numbers.
        comparisons: One a pair of arms, adjusted over all cells together.
    """

    title: str
    warnings: tuple[str, ...]
    comparisons: tuple[ArmComparison, ...]


def compare_runs(
    first: Sequence[Row], second: Sequence[Row], arms: Sequence[str] = (), names: tuple[str, str] = ("A", "B")
) -> tuple[Versus, ...]:
    """The paired tests of two runs, in every cell that both have.

    Args:
        first: Rows of the one run.
        second: Rows of the other; it may be the same run, where `arms` are two.
        arms: None: each arm against itself in the other run. One: only that arm. Two: the first in the one
            run against the second in the other.
        names: What to call the runs.

    Raises:
        UsageError: There are more than two arms, or nothing that can be compared.
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
    tests = adjusted(
        [
            compare_arms(f"{a} in {names[0]}", one.arms[a], f"{b} in {names[1]}", other.arms[b])
            for one, other, a, b in wanted
        ]
    )
    return tuple(
        Versus(
            title=one.title,
            warnings=tuple(_warnings(one, other, names)),
            comparisons=tuple(
                test for test, (cell, *_) in zip(tests, wanted, strict=True) if cell.title == one.title
            ),
        )
        for one, other in pairs
        if any(cell.title == one.title for cell, *_ in wanted)
    )


def in_words(found: ArmComparison) -> str:
    """The test as a sentence."""
    if found.difference is None:
        return f"{found.second} and {found.first} have no task in common whose truth is known: no comparison."
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
    return f"{found.second} and {found.first} cannot be told apart: {counts}; {numbers}. {_limit(found)}"


def _limit(found: ArmComparison) -> str:
    if found.detectable is None:
        return "So few tasks could not show any difference."
    return (
        f"A true difference of less than {100 * found.detectable:.1f} points "
        "would be missed more than one time in five."
    )


def _cell_pairs(first: Sequence[Row], second: Sequence[Row]) -> Iterator[tuple[Cell, Cell]]:
    """Cells that both runs have, without the tasks whose content differs between the runs."""
    changed = {cell.title: frozenset(cell.changed) for cell in cells_of([*first, *second])}
    ones = {cell.title: cell for cell in cells_of(first)}
    for other in cells_of(second):
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


def _held(rows: Sequence[Row]) -> str:
    cells = (f"{cell.title} ({', '.join(cell.arms)})" for cell in cells_of(rows))
    return "; ".join(cells) or "no rows"
