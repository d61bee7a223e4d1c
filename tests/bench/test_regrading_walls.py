"""A sandbox that breaks while one row is regraded does not affect other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.bench_tasks import LuckyModel, normalize_rows, write_mbpp_tasks
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
async def test_a_sandbox_that_breaks_for_one_row_does_not_affect_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = {"mbpp": tuple(write_mbpp_tasks(tmp_path / "data", 2))}
    folder = BenchFolder(tmp_path / "bench")
    plan = BenchmarkPlan(ids=ids, arms=("greedy", "best_of_k"), models=("lucky:model",), caps=(700,))
    model = LuckyModel(tmp_path / "log")
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: model)
    rows = folder.rows()

    async def break_for_one_run(job: Any, run: Any, *rest: Any, **keywords: Any) -> BenchmarkRow:
        if run.id == rows[1].run:
            raise SandboxBroken("the sandbox failed")
        return await build_row(job, run, *rest, **keywords)

    monkeypatch.setattr(regrading, "build_row", break_for_one_run)
    ((before, after),) = await regrading.regrade(folder, Settings(), parallel=2)
    assert (before, after.run, after.fault) == (rows[1], rows[1].run, "grading failed: the sandbox failed")

    other_rows = [row for row in folder.rows() if row.run != rows[1].run]
    assert normalize_rows(other_rows) == normalize_rows([row for row in rows if row.run != rows[1].run])
