"""Rows grouped into cells: one dataset, regime, model and cap each, which is all that may be pooled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        model: `provider:model`.
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


def group_into_cells(rows: Iterable[BenchmarkRow]) -> tuple[Cell, ...]:
    """Group rows into cells; the regime of the headline and the largest cap come first."""
    sorted_rows: dict[tuple[str, Regime, str, int], list[BenchmarkRow]] = {}
    for row in rows:
        sorted_rows.setdefault((row.dataset, row.regime, row.model, row.cap), []).append(row)
    return tuple(
        _cell(dataset, regime, model, cap, sorted_rows[(dataset, regime, model, cap)])
        for dataset, regime, model, cap in sorted(
            sorted_rows, key=lambda cell: (REGIMES.index(cell[1]), *cell[:3], -cell[3])
        )
    )


def _cell(dataset: str, regime: Regime, model: str, cap: int, rows: Sequence[BenchmarkRow]) -> Cell:
    hashes: dict[str, set[str]] = {}
    for row in rows:
        hashes.setdefault(row.problem, set()).add(row.problem_hash)
    changed = {problem for problem, of in hashes.items() if len(of) > 1}
    names = {row.arm for row in rows}
    arms = {
        arm: tuple(row for row in rows if row.arm == arm and row.problem not in changed)
        for arm in (*(b for b in BASELINES if b in names), *sorted(names - set(BASELINES)))
    }
    return Cell(
        dataset=dataset,
        regime=regime,
        model=model,
        cap=cap,
        arms={arm: kept for arm, kept in arms.items() if kept},
        changed=tuple(sorted(changed)),
    )
