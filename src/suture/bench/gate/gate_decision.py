"""A quality gate: does an arm still solve a fixed list of tasks often enough? Computed from rows alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from suture.bench.gate.sequential_test import SequentialDecision, SequentialDesign, Standing, decide
from suture.bench.problem import Regime
from suture.bench.rows import BenchmarkRow
from suture.core.records import decode_record, encode_record
from suture.errors import StorageError, UsageError

GateStanding = Literal[Standing, "broken"]
"""`broken`: the machinery failed on so many tasks that the others say nothing of the arm."""
MOST_SKIPPED = 0.1
"""Of the tasks that were come to, those that may be without a truth; a single one always may."""


@dataclass(frozen=True, kw_only=True)
class GateTask:
    """One task of the list, and whether it was solved when that was recorded."""

    problem: str
    problem_hash: str
    solved: bool


@dataclass(frozen=True, kw_only=True)
class GateBaseline:
    """A fixed list of tasks, and what was solved of it once.

    Attributes:
        dataset: The data set's name, such as `humaneval`.
        regime: What the loop could see of the checks.
        arm: The name of the recipe that is measured.
        model: `provider:model`.
        cap: Generated tokens that each run could spend.
        tasks: In the order in which they are tried. It follows the hash of their ids, so that no one chose it
            and easy and hard tasks are mixed; the test needs that.
        made: Machine, versions, date and command of the measurement.
    """

    dataset: str
    regime: Regime
    arm: str
    model: str
    cap: int
    tasks: tuple[GateTask, ...]
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """The share that was solved."""
        return sum(task.solved for task in self.tasks) / len(self.tasks)


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """How a gate stands.

    Attributes:
        decision: The test's, on the tasks that have a truth.
        next: Tasks that must be run for the test to go on, in order; none where it is decided or at its end.
        skipped: Tasks passed over because a fault, or a missing grade, leaves them without a truth.
        lost: Of the tasks tried, those that were solved when the baseline was recorded and are not now.
        won: Likewise the other way round.
    """

    decision: SequentialDecision
    next: tuple[str, ...]
    skipped: tuple[str, ...]
    lost: tuple[str, ...]
    won: tuple[str, ...]

    @property
    def standing(self) -> GateStanding:
        """What a user is told: the decision, unless too much of what it should rest on is missing."""
        skipped, tried = len(self.skipped), self.decision.tasks
        if skipped and (not tried or skipped > max(1, MOST_SKIPPED * (skipped + tried))):
            return "broken"
        return self.decision.standing


def decide_gate(
    baseline: GateBaseline, rows: Sequence[BenchmarkRow], design: SequentialDesign, model: str = ""
) -> GateResult:
    """Follow the test through rows, in the baseline's order.

    Args:
        baseline: The tasks that are measured, and the rate that they were solved at.
        rows: Those of other arms, sets, regimes, caps, models and of seeds above 0 are passed over.
        design: The test, for as many tasks as the baseline has.
        model: Whose rows to judge; the baseline's where not given.

    Raises:
        UsageError: A task is not what it was when the baseline was recorded.
    """
    found = {row.problem: row for row in rows if _is_of(row, baseline, model or baseline.model)}
    tried: list[tuple[GateTask, bool]] = []
    skipped: list[str] = []
    missing: tuple[str, ...] = ()
    for place, task in enumerate(baseline.tasks):
        if decide(design, [right for _, right in tried]).standing != "undecided":
            break
        row = found.get(task.problem)
        if row is None:
            # A later result must not take the place of this one: what is tried would depend on what is there.
            missing = tuple(t.problem for t in baseline.tasks[place:] if t.problem not in found)
            break
        if row.problem_hash != task.problem_hash:
            raise UsageError(
                f"task {task.problem!r} has changed since the baseline was recorded",
                remedy="record it anew: suture bench baseline",
            )
        solved = row.solved()
        if solved is None:
            skipped.append(task.problem)
        else:
            tried.append((task, solved))
    return GateResult(
        decision=decide(design, [right for _, right in tried]),
        next=missing,
        skipped=tuple(skipped),
        lost=tuple(task.problem for task, right in tried if task.solved and not right),
        won=tuple(task.problem for task, right in tried if right and not task.solved),
    )


def record_baseline(
    rows: Sequence[BenchmarkRow],
    arm: str = "",
    tasks: int | None = None,
    made: Mapping[str, str] | None = None,
) -> GateBaseline:
    """The baseline that some rows make: one arm, one set, one model, seed 0.

    Args:
        rows: At least one whose truth is known.
        arm: The arm; not needed where the rows are of one.
        tasks: The first so many in the order of the test; all where not given.
        made: Machine, versions, date and command of the measurement.

    Raises:
        UsageError: The rows are of several arms, sets, regimes, models or caps, or there is none.
    """
    chosen = [
        row for row in rows if row.seed == 0 and (not arm or row.arm == arm) and _truth(row) is not None
    ]
    cells = sorted({(row.dataset, row.regime, row.arm, row.model, row.cap) for row in chosen})
    if len(cells) != 1:
        raise UsageError(
            f"a baseline is of one arm, set, regime, model and cap; these rows are of {cells or 'none'}",
            remedy="name the arm with --arm and the cap with --cap, and a benchmark of one set and model",
        )
    ((dataset, regime, name, model, cap),) = cells
    ordered = sorted(chosen, key=lambda row: hashlib.sha256(row.problem.encode()).hexdigest())
    return GateBaseline(
        dataset=dataset,
        regime=regime,
        arm=name,
        model=model,
        cap=cap,
        tasks=tuple(
            GateTask(problem=row.problem, problem_hash=row.problem_hash, solved=bool(_truth(row)))
            for row in ordered[:tasks]
        ),
        made=dict(made or {}),
    )


def read_baseline(path: Path) -> GateBaseline:
    """A baseline from its file.

    Raises:
        UsageError: It cannot be read, is none, or has no tasks.
    """
    try:
        found = decode_record(GateBaseline, json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError) as fault:
        raise UsageError(
            f"{str(path)!r} holds no baseline: {fault}", remedy="record one: suture bench baseline"
        ) from fault
    if not found.tasks:
        raise UsageError(f"the baseline {str(path)!r} has no tasks")
    return found


def write_baseline(baseline: GateBaseline, path: Path) -> None:
    """Write a baseline to its file.

    Raises:
        StorageError: It cannot be written.
    """
    try:
        path.write_text(json.dumps(encode_record(baseline), indent=1) + "\n", "utf-8")
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault


def _is_of(row: BenchmarkRow, baseline: GateBaseline, model: str) -> bool:
    wanted = (baseline.dataset, baseline.regime, baseline.arm, baseline.cap)
    return (row.dataset, row.regime, row.arm, row.cap) == wanted and row.model == model and row.seed == 0


def _truth(row: BenchmarkRow) -> bool | None:
    return row.solved()
