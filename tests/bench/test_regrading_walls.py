"""Grading anew when walls break: what breaks under one row costs no other row its grade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.bench_tasks import LuckyModel, told_of, write_set
from suture.bench.rows import BenchmarkRow
from suture.bench.running import regrading
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.evaluation import build_row
from suture.core.settings import Settings
from suture.errors import SandboxBroken
from suture.sandbox import BubblewrapSandbox


@pytest.mark.heavy
async def test_a_wall_that_breaks_under_one_row_leaves_the_others_their_grades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = {"mbpp": tuple(write_set(tmp_path / "data", 2))}
    folder = BenchFolder(tmp_path / "bench")
    plan = BenchmarkPlan(ids=ids, arms=("greedy", "best_of_k"), models=("lucky:model",), caps=(700,))
    model = LuckyModel(tmp_path / "log")
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: model)
    rows = folder.rows()

    async def breaking(job: Any, run: Any, *rest: Any, **more: Any) -> BenchmarkRow:
        if run.id == rows[1].run:
            raise SandboxBroken("the wall fell")
        return await build_row(job, run, *rest, **more)

    monkeypatch.setattr(regrading, "build_row", breaking)
    ((was, now),) = await regrading.regrade(folder, Settings(), parallel=2)
    assert (was, now.run, now.fault) == (rows[1], rows[1].run, "grading failed: the wall fell")
    left = [row for row in folder.rows() if row.run != rows[1].run]
    assert told_of(left) == told_of([row for row in rows if row.run != rows[1].run])
