"""Errors of a cluster are reported, and its workers leave no files behind."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bench.bench_tasks import LuckyModel, write_mbpp_tasks
from bench.test_ray import make_remote_job, run_job_here
from requirements import Require
from suture.bench.ray_cluster.ray_tasks import LOST_WORKER_ERRORS, MAX_RETRIES, RayTaskRunner
from suture.bench.replies.reply_pool import ReplyPool
from suture.bench.running.bench_folder import BenchFolder
from suture.core.settings import Settings
from suture.sandbox import BubblewrapSandbox

pytestmark = pytest.mark.heavy

CHILD = """
import asyncio, sys, types
from pathlib import Path
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.benchmark import run_benchmark
from suture.core.settings import Settings

here_only = types.ModuleType("here_only")
exec("def opener(settings, name): raise AssertionError('never called')", here_only.__dict__)
sys.modules["here_only"] = here_only
plan = BenchmarkPlan(ids={"mbpp": (sys.argv[2],)}, arms=("greedy",), models=("lucky:model",))
asyncio.run(
    run_benchmark(
        plan, BenchFolder(Path(sys.argv[1])), Settings(), cluster="local", opener=here_only.opener
    )
)
"""


class RayError(Exception):
    """The base class of Ray's errors."""


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("a page of traceback")
        self.cause = cause


class WorkerCrashedError(RayError):
    """A stand-in for every error in `LOST_WORKER_ERRORS`."""


def fake_ray(error: Exception) -> ModuleType:
    """Make a stand-in for Ray whose tasks all raise an error."""

    class Remote:
        async def remote(self, job: object) -> object:
            raise error

    ray = ModuleType("ray")
    lost_worker_errors = {name: WorkerCrashedError for name in LOST_WORKER_ERRORS}
    ray.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, **lost_worker_errors)  # type: ignore[attr-defined]
    ray.init = lambda **keywords: None  # type: ignore[attr-defined]
    ray.shutdown = lambda: None  # type: ignore[attr-defined]
    ray.remote = lambda **keywords: lambda function: Remote()  # type: ignore[attr-defined]
    return ray


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RayTaskError(ModuleNotFoundError("No module named 'suture'")),
            "it failed on its worker: ModuleNotFoundError: No module named 'suture'",
        ),
        (
            RayTaskError(RuntimeError("Traceback:\n  a line\nImportError: no such name\n")),
            "it failed on its worker: RuntimeError: ImportError: no such name",
        ),
        (
            WorkerCrashedError("died"),
            f"its worker was lost {MAX_RETRIES + 1} times: WorkerCrashedError: died",
        ),
        (RayError(), "the cluster failed: RayError"),
    ],
)
async def test_an_error_of_the_cluster_is_reported_by_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", fake_ray(error))
    job = make_remote_job(tmp_path, monkeypatch, lambda settings, name: LuckyModel(tmp_path / "calls")).job
    pool = ReplyPool(tmp_path / "pool")
    async with RayTaskRunner("local", home=tmp_path, settings=Settings(), pool=pool, opener=None) as cluster:
        row = await cluster.row(job)
        assert row.fault == message


def test_a_worker_leaves_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()

    result = run_job_here(
        make_remote_job(tmp_path, monkeypatch, lambda settings, name: LuckyModel(tmp_path / "calls"))
    )

    assert result.row is not None
    assert result.row.fault == ""
    assert result.run
    assert result.draws
    assert list((tmp_path / "tmp").glob("suture-bench-*")) == []


@pytest.mark.timeout(300)
def test_a_module_that_a_real_worker_lacks_is_reported(
    tmp_path: Path, sandbox: BubblewrapSandbox, require: Require
) -> None:
    """The model's opener is in a module that only the calling process has."""
    require("ray", importlib.util.find_spec("ray") is not None, "the extra `ray` is not installed")
    (task_id,) = write_mbpp_tasks(tmp_path / "data", 1)
    folder = tmp_path / "bench"
    env = {**os.environ, "SUTURE_DATA": str(tmp_path / "data"), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), task_id], env=env, check=True, capture_output=True
    )

    (row,) = BenchFolder(folder).rows()

    assert row.fault.startswith("it failed on its worker: ")
    assert "here_only" in row.fault
