"""A quality gate that measures as it goes: a few tasks at a time, until the test is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from suture.bench.gate.gate_decision import GateBaseline, GateResult, decide_gate
from suture.bench.gate.sequential_test import SequentialDesign
from suture.bench.ray_cluster.ray_tasks import ModelOpener
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import ProgressListener, run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan, extend_plan
from suture.core.settings import Settings
from suture.models import open_model

BATCH = 8


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
    made: Mapping[str, str] | None = None,
    opener: ModelOpener = open_model,
    on_progress: ProgressListener = lambda advance: None,
) -> GateResult:
    """Run the tasks that the test asks for, and no more than eight too many.

    Args:
        baseline: The tasks that are measured, and the rate that they were solved at.
        design: Where the sequential test stops.
        folder: Where rows are kept; those that are there count.
        settings: All settings.
        model: The model that is asked.
        parallel: Tasks that run at the same time, at most.
        recordings: Files of replies to draw from.
        replayed: Whether a reply that none of them holds is an error, in place of asking the model.
        made: The circumstances, for a folder that is new.
        opener: Makes a model of its name.
        on_progress: Called after each step.

    Raises:
        SutureError: As `suture.bench.running.benchmark.run_benchmark` does.
    """
    while True:
        found = decide_gate(baseline, folder.rows(), design, model)
        if not found.next:
            return found
        batch = BenchmarkPlan(
            ids={baseline.dataset: found.next[:BATCH]},
            arms=(baseline.arm,),
            models=(model,),
            caps=(baseline.cap,),
            regime=baseline.regime,
            sessions=(dict(made),) if made else (),
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
