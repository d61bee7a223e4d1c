"""A real Ray cluster on this machine, one worker of which is killed: the table is the one of a local run."""

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

from bench.bench_tasks import LuckyModel, calls_in, told_of, write_set
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
from suture.core.settings import Settings
from suture.core.settings.writing import encode_settings
from suture.errors import PrerequisiteError
from suture.models import Message, Model, Reply, Sampling, ScriptedModel
from suture.sandbox import BubblewrapSandbox, Sandbox

pytestmark = pytest.mark.heavy

ARMS = ("greedy", "best_of_k")
# In a process of its own: Ray starts servers, and is not meant to be started twice in one.
CHILD = """
import asyncio, sys
from pathlib import Path
from bench.test_ray import measure
asyncio.run(measure(Path(sys.argv[1]), sys.argv[2].split(","), cluster="local"))
"""


def open_lucky(settings: Settings, name: str) -> Model:
    """The workers' model; what it says depends on the prompt alone."""
    folder = Path(os.environ["LUCKY"])
    with (folder / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    return LuckyModel(folder / "calls", pause_s=0.2)


async def measure(folder: Path, ids: list[str], *, cluster: str | None = None) -> None:
    """The benchmark, here or on a cluster."""
    plan = BenchmarkPlan(ids={"mbpp": tuple(ids)}, arms=ARMS, models=("lucky:model",), caps=(700,))
    await run_benchmark(plan, BenchFolder(folder), Settings(), parallel=2, cluster=cluster, opener=open_lucky)


@pytest.mark.timeout(600)
async def test_a_lost_worker_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("ray", importlib.util.find_spec("ray") is not None, "the extra `ray` is not installed")
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = write_set(tmp_path / "data", 5)
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    monkeypatch.setenv("LUCKY", str(here))
    await measure(here, ids)
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, sys.path)))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(there), ",".join(ids)],
        env={**os.environ, "LUCKY": str(there), "PYTHONPATH": paths, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
        stdout=subprocess.DEVNULL,
    )
    try:
        while child.poll() is None and len(calls_in(there / "calls")) < 3:
            await asyncio.sleep(0.02)
        lost = int((there / "pids").read_text().split()[0])
        assert lost != child.pid
        os.kill(lost, signal.SIGKILL)
        while child.poll() is None:
            await asyncio.sleep(0.2)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    rows = BenchFolder(there).rows()
    assert told_of(rows) == told_of(BenchFolder(here).rows())
    assert all((there / "runs" / row.run / "ledger.jsonl").is_file() for row in rows)
    assert len(set((there / "pids").read_text().split())) > 1, "another worker took its place"
    # The lost worker's own draws are drawn again; no other.
    calls = calls_in(there / "calls")
    assert set(calls) == set(calls_in(here / "calls"))
    assert len(calls) - len(set(calls)) <= 12


def errand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opener: ModelOpener) -> ray_tasks.RemoteJob:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(ray_tasks, "_worker_states", {})
    problem = load_problems("mbpp", ids=write_set(tmp_path / "data", 1))[0]
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


def carried_out(errand: ray_tasks.RemoteJob) -> ray_tasks.RemoteResult:
    """What a worker brings, in this process."""
    try:
        return ray_tasks.run_remote_job(errand)
    finally:
        for there in ray_tasks._worker_states.values():
            there.runner.run(there.sandbox.close())
            there.runner.run(there.judge.close())
            there.runner.close()


def test_what_a_worker_lacks_is_told_and_is_no_lost_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    def no_key(settings: Settings, name: str) -> Model:
        raise PrerequisiteError("there is no key", remedy="set it")

    def no_wall(*args: object, **named: object) -> Sandbox:
        raise PrerequisiteError("there is no wall", remedy="install one")

    asked = errand(tmp_path, monkeypatch, no_key)
    assert carried_out(asked).aborting_error == ("PrerequisiteError", "there is no key", "set it")
    monkeypatch.setattr(ray_tasks, "_worker_states", {})
    monkeypatch.setattr(ray_tasks, "open_sandbox", no_wall)
    assert carried_out(asked).aborting_error == ("PrerequisiteError", "there is no wall", "install one")


def test_a_crash_on_a_worker_brings_back_the_replies_that_were_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    class Breaking(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
            if self.calls:
                raise ZeroDivisionError("a bug of the machinery")
            return await super().complete(messages, sampling)

    wrong = "```python\ndef times_2(x):\n    return 7\n```"
    brought = carried_out(errand(tmp_path, monkeypatch, lambda settings, name: Breaking([wrong])))
    assert brought.row is not None
    assert brought.row.fault == "ZeroDivisionError: a bug of the machinery"
    assert [draw.reply for draw in brought.draws] == [wrong]


def test_without_ray_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PrerequisiteError, match="needs Ray") as raised:
        RayTaskRunner("local", home=tmp_path, settings=Settings(), pool=ReplyPool(tmp_path), opener=None)
    assert raised.value.remedy == 'pip install "suture[ray]"'
