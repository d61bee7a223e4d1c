"""A quality gate that measures a few tasks at a time until the test is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from suture.bench.gate.gate_decision import GateBaseline, GateResult, decide_gate
from suture.bench.gate.sequential_test import SequentialDesign
from suture.bench.ray_cluster.ray_tasks import ModelOpener
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan, extend_plan
from suture.bench.running.benchmark_progress import ProgressListener
from suture.core.settings import Settings
from suture.models import open_model

TASKS_PER_BATCH = 8
"""A larger batch would measure more tasks in vain. Chosen by judgement; not measured."""


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
    """Run the tasks that the test needs, a batch at a time, so that at most one batch runs in vain.

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
