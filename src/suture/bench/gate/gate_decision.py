"""Decide from rows whether an arm still solves enough of a fixed list of tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from suture.bench.gate.sequential_test import SequentialDecision, SequentialDesign, Standing, decide
from suture.bench.problem import Regime
from suture.bench.ray_cluster.ray_tasks import ModelOpener
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan, ProgressListener, extend_plan
from suture.core.records import decode_record, encode_record
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.models import open_model

GateStanding = Literal[Standing, "broken"]
"""`broken`: the test machinery failed on too many tasks for the others to say anything about the arm."""
MAX_SKIPPED_SHARE = 0.1
"""Share of the tried tasks that may lack a result; a single one always may. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class GateTask:
    """One task of the list, and whether it was solved when the baseline was recorded."""

    problem: str
    problem_hash: str
    solved: bool


@dataclass(frozen=True, kw_only=True)
class GateBaseline:
    """A fixed list of tasks, and which of them were solved when it was recorded.

    Attributes:
        regime: What the loop could see of the checks.
        arm: The name of the recipe that is measured.
        cap: Reply tokens that each run could spend.
        tasks: The tasks in the order in which they are tried. They are sorted by the hash of their ids, so
            that easy and hard tasks are mixed, as the test requires.
        environment: Machine, versions, date and command of the measurement.
    """

    dataset: str
    regime: Regime
    arm: str
    model: str
    cap: int
    tasks: tuple[GateTask, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """The share of solved tasks."""
        return sum(task.solved for task in self.tasks) / len(self.tasks)


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The state of a gate.

    Attributes:
        decision: The decision of the test, on the tasks that have a result.
        next: Tasks that must run for the test to continue, in order; empty if it has ended.
        skipped: Tasks without a result, because of a fault or a missing grade.
        lost: Tried tasks that were solved in the baseline and are not solved now.
        won: Tried tasks that are solved now and were not solved in the baseline.
    """

    decision: SequentialDecision
    next: tuple[str, ...]
    skipped: tuple[str, ...]
    lost: tuple[str, ...]
    won: tuple[str, ...]

    @property
    def standing(self) -> GateStanding:
        """The decision, or `broken` if too many tasks have no result."""
        skipped, tried = len(self.skipped), self.decision.tasks
        if skipped and (not tried or skipped > max(1, MAX_SKIPPED_SHARE * (skipped + tried))):
            return "broken"
        return self.decision.standing


def decide_gate(
    baseline: GateBaseline, rows: Sequence[BenchmarkRow], design: SequentialDesign, model: str = ""
) -> GateResult:
    """Apply the test to rows, in the baseline's order.

    Args:
        rows: The rows. Those of other arms, data sets, regimes, caps, models and seeds above 0 are skipped.
        model: The model whose rows are judged; by default the baseline's.
    """
    # Only seed 0, as in `record_baseline`: the sequential test takes one result for each task.
    cell = (baseline.dataset, baseline.regime, baseline.arm, model or baseline.model, baseline.cap, 0)
    rows_by_task = {
        row.problem: row
        for row in rows
        if (row.dataset, row.regime, row.arm, row.model, row.cap, row.seed) == cell
    }
    tried: list[tuple[GateTask, bool]] = []
    skipped: list[str] = []
    missing: tuple[str, ...] = ()
    for index, task in enumerate(baseline.tasks):
        if decide(design, [solved for _, solved in tried]).standing != "undecided":
            break
        row = rows_by_task.get(task.problem)
        if row is None:
            # Later results must not be used instead: which tasks are tried would depend on what exists.
            names = [later_task.problem for later_task in baseline.tasks[index:]]
            missing = tuple(name for name in names if name not in rows_by_task)
            break
        if row.problem_hash != task.problem_hash:
            raise UsageError(
                f"task {task.problem!r} has changed since the baseline was recorded",
                remedy="record it again: suture bench baseline",
            )
        solved = row.solved()
        if solved is None:
            skipped.append(task.problem)
        else:
            tried.append((task, solved))
    return GateResult(
        decision=decide(design, [solved for _, solved in tried]),
        next=missing,
        skipped=tuple(skipped),
        lost=tuple(task.problem for task, solved in tried if task.solved and not solved),
        won=tuple(task.problem for task, solved in tried if solved and not task.solved),
    )


def record_baseline(
    rows: Sequence[BenchmarkRow],
    arm: str = "",
    tasks: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> GateBaseline:
    """Return the baseline of some rows: one arm, one data set, one model, seed 0.

    Args:
        rows: At least one row with a result.
        arm: The arm; not needed if the rows are of one arm.
        environment: Machine, versions, date and command of the measurement.
    """
    rows = [row for row in rows if row.seed == 0 and arm in ("", row.arm) and row.solved() is not None]
    cells = sorted({(row.dataset, row.regime, row.arm, row.model, row.cap) for row in rows})
    if len(cells) != 1:
        raise UsageError(
            f"a baseline is of one arm, set, regime, model and cap; these rows are of {cells or 'none'}",
            remedy="name the arm with --arm and the cap with --cap, and a benchmark of one set and model",
        )
    ((dataset, regime, arm, model, cap),) = cells
    ordered = sorted(rows, key=lambda row: hashlib.sha256(row.problem.encode()).hexdigest())
    return GateBaseline(
        dataset=dataset,
        regime=regime,
        arm=arm,
        model=model,
        cap=cap,
        tasks=tuple(
            GateTask(problem=row.problem, problem_hash=row.problem_hash, solved=bool(row.solved()))
            for row in ordered[:tasks]
        ),
        environment=dict(environment or {}),
    )


def read_baseline(path: Path) -> GateBaseline:
    """Load a baseline from its file."""
    try:
        baseline = decode_record(GateBaseline, json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError) as fault:
        raise UsageError(
            f"{str(path)!r} is not a baseline: {fault}", remedy="record one: suture bench baseline"
        ) from fault
    if not baseline.tasks:
        raise UsageError(f"the baseline {str(path)!r} has no tasks")
    return baseline


def write_baseline(baseline: GateBaseline, path: Path) -> None:
    """Write a baseline to its file."""
    try:
        path.write_text(json.dumps(encode_record(baseline), indent=1) + "\n", "utf-8")
    except OSError as fault:
        raise StorageError(f"{str(path)!r} cannot be written: {fault.strerror}") from fault


TASKS_PER_BATCH = 8
"""A larger batch would measure more tasks needlessly. Chosen by judgement; not measured."""


async def measure_until_decided(
    baseline: GateBaseline,
    design: SequentialDesign,
    folder: BenchFolder,
    settings: Settings,
    *,
    model: str,
    parallel: int = 4,
    recordings: Sequence[Path] = (),
    replayed: bool = False,
    environment: Mapping[str, str] | None = None,
    opener: ModelOpener = open_model,
    on_progress: ProgressListener = lambda progress: None,
) -> GateResult:
    """Run the tasks that the test needs, a batch at a time, so that at most one batch runs needlessly.

    Args:
        folder: The benchmark folder; its rows count.
        parallel: Maximum number of tasks that run at the same time.
        recordings: Files of replies to draw from.
        replayed: Whether a reply that is not recorded is an error, instead of a call of the model.
        environment: Machine, versions, date and command of this measurement; stored with the plan.
        on_progress: Called after each step.
    """
    while True:
        result = decide_gate(baseline, folder.rows(), design, model)
        if not result.next:
            return result
        batch = BenchmarkPlan(
            ids={baseline.dataset: result.next[:TASKS_PER_BATCH]},
            arms=(baseline.arm,),
            models=(model,),
            caps=(baseline.cap,),
            regime=baseline.regime,
            sessions=(dict(environment),) if environment else (),
        )
        await run_benchmark(
            extend_plan(folder.plan(), batch) if folder.exists else batch,
            folder,
            settings,
            parallel=parallel,
            recordings=recordings,
            replayed=replayed,
            opener=opener,
            on_progress=on_progress,
        )
