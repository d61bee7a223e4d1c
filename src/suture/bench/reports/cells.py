"""Group rows into cells: rows of one data set, regime, model and cap, which is all that may be pooled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from suture.bench.problem import REGIMES, Regime
from suture.bench.rows import BenchmarkRow

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
