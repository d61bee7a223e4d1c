"""A real Ray cluster on this machine gives the rows of a local run, even when a worker is killed."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, normalize_rows, read_calls, write_mbpp_tasks
from requirements import Require
from suture.bench.datasets import load_problems
from suture.bench.grading.hidden_checks import Grade
from suture.bench.ray_cluster import ray_tasks
from suture.bench.ray_cluster.ray_tasks import ModelOpener, RayTaskRunner
from suture.bench.replies.reply_pool import ReplyPool
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.bench.running.evaluation import EvaluationJob
from suture.core.installation import format_install_command
from suture.core.settings import SandboxSettings, Settings
from suture.core.settings.setting_changes import encode_settings
from suture.errors import PrerequisiteError
from suture.models import Message, Model, Reply, Sampling, ScriptedModel
from suture.sandbox import BubblewrapSandbox, Sandbox

pytestmark = pytest.mark.heavy

ARMS = ("greedy", "best_of_k")
# The cluster runs in its own process, because Ray cannot be started twice in one process.
CHILD = """
import asyncio, sys
from pathlib import Path
from bench.test_ray import measure
asyncio.run(measure(Path(sys.argv[1]), sys.argv[2].split(","), cluster="local"))
"""


def open_lucky(settings: Settings, name: str) -> Model:
    """Open the model of a worker, whose reply depends only on the prompt."""
    folder = Path(os.environ["LUCKY"])
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    return LuckyModel(folder / "calls", pause_s=0.2)


async def measure(folder: Path, ids: list[str], *, cluster: str | None = None) -> None:
    """Run the benchmark, in this process or on a cluster."""
    plan = BenchmarkPlan(ids={"mbpp": tuple(ids)}, arms=ARMS, models=("lucky:model",), caps=(700,))
    settings = Settings(sandbox=SandboxSettings(check_timeout_s=60))  # a busy machine must not decide a row
    await run_benchmark(plan, BenchFolder(folder), settings, parallel=2, cluster=cluster, opener=open_lucky)


@pytest.mark.timeout(600)
async def test_a_lost_worker_does_not_change_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ray", importlib.util.find_spec("ray") is not None, "the extra `ray` is not installed")
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = write_mbpp_tasks(tmp_path / "data", 3)
    local_folder, cluster_folder = tmp_path / "here", tmp_path / "there"
    for folder in (local_folder, cluster_folder):
        folder.mkdir()
    monkeypatch.setenv("LUCKY", str(local_folder))
    await measure(local_folder, ids)
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, sys.path)))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(cluster_folder), ",".join(ids)],
        env={
            **os.environ,
            "LUCKY": str(cluster_folder),
            "PYTHONPATH": paths,
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        },
        stdout=subprocess.DEVNULL,
    )
    try:
        while child.poll() is None and len(read_calls(cluster_folder / "calls")) < 3:
            await asyncio.sleep(0.02)
        lost_pid = int((cluster_folder / "pids").read_text().split()[0])
        assert lost_pid != child.pid

        os.kill(lost_pid, signal.SIGKILL)
        while child.poll() is None:
            await asyncio.sleep(0.2)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0

    rows = BenchFolder(cluster_folder).rows()
    assert normalize_rows(rows) == normalize_rows(BenchFolder(local_folder).rows())
    assert all((cluster_folder / "runs" / row.run / "ledger.jsonl").is_file() for row in rows)
    assert len(set((cluster_folder / "pids").read_text().split())) > 1, "no other worker took its place"

    # Only the draws of the lost worker are drawn again.
    calls = read_calls(cluster_folder / "calls")
    assert set(calls) == set(read_calls(local_folder / "calls"))
    assert len(calls) - len(set(calls)) <= 12


def make_remote_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opener: ModelOpener
) -> ray_tasks.RemoteJob:
    """Return a job for a worker, with a problem of MBPP."""
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(ray_tasks, "_worker_states", {})
    problem = load_problems("mbpp", ids=write_mbpp_tasks(tmp_path / "data", 1))[0]
    job = EvaluationJob(
        problem=problem,
        arm="always_repair",
        model="lucky:model",
        seed=0,
        cap=700,
        regime="visible",
        reference=Grade(status="right"),
    )
    settings = json.dumps(encode_settings(Settings()))
    return ray_tasks.RemoteJob(job=job, settings=settings, draws=(), opener=opener)


def run_job_here(remote_job: ray_tasks.RemoteJob) -> ray_tasks.RemoteResult:
    """Run a remote job in this process, as a worker does."""
    try:
        return ray_tasks.run_remote_job(remote_job)
    finally:
        for state in ray_tasks._worker_states.values():
            state.runner.run(state.sandbox.close())
            state.runner.run(state.judge.close())
            state.runner.close()


def test_a_missing_prerequisite_of_a_worker_aborts_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    def open_without_key(settings: Settings, name: str) -> Model:
        raise PrerequisiteError("there is no key", remedy="set it")

    def open_without_sandbox(*args: object, **keywords: object) -> Sandbox:
        raise PrerequisiteError("there is no sandbox", remedy="install one")

    remote_job = make_remote_job(tmp_path, monkeypatch, open_without_key)
    assert run_job_here(remote_job).aborting_error == ("PrerequisiteError", "there is no key", "set it")

    monkeypatch.setattr(ray_tasks, "_worker_states", {})
    monkeypatch.setattr(ray_tasks, "open_sandbox", open_without_sandbox)
    assert run_job_here(remote_job).aborting_error == (
        "PrerequisiteError",
        "there is no sandbox",
        "install one",
    )


def test_a_crash_on_a_worker_returns_the_paid_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    class FailingModel(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
            if self.calls:
                raise ZeroDivisionError("a bug of the machinery")
            return await super().complete(messages, sampling)

    wrong_reply = "```python\ndef times_2(x):\n    return 7\n```"

    result = run_job_here(
        make_remote_job(tmp_path, monkeypatch, lambda settings, name: FailingModel([wrong_reply]))
    )

    assert result.row is not None
    assert result.row.fault == "ZeroDivisionError: a bug of the machinery"
    assert [draw.reply for draw in result.draws] == [wrong_reply]


def test_a_missing_ray_is_an_error_that_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PrerequisiteError, match="needs Ray") as raised:
        RayTaskRunner("local", home=tmp_path, settings=Settings(), pool=ReplyPool(tmp_path), opener=None)
    assert raised.value.remedy == format_install_command("ray")
