"""Law 7 over a benchmark: killed at any moment it goes on, and no received reply is asked for again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.bench_tasks import LuckyModel, calls_in, told_of, write_set
from suture.bench.rows import BenchmarkRow
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.settings import Settings
from suture.sandbox import BubblewrapSandbox

pytestmark = pytest.mark.heavy

KILLS = 10
ARMS = ("greedy", "best_of_k", "reflexion")
CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bench.test_bench_killed import measure
asyncio.run(measure(Path(sys.argv[2]), sys.argv[3].split(","), pause_s=0.15))
"""


async def measure(folder: Path, ids: list[str], *, pause_s: float = 0.0) -> list[BenchmarkRow]:
    """The benchmark, in whichever process."""
    plan = BenchmarkPlan(ids={"mbpp": tuple(ids)}, arms=ARMS, models=("lucky:model",), caps=(700,))
    model = LuckyModel(folder / "calls", pause_s=pause_s)
    bench = BenchFolder(folder)
    await run_benchmark(plan, bench, Settings(), parallel=3, opener=lambda settings, name: model)
    return bench.rows()


async def killed_in_the_middle(command: list[str], folder: Path, chance: random.Random) -> bool:
    """Start the benchmark and kill it; whether it was killed before it was done."""
    before = len(calls_in(folder / "calls"))
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    # Any moment will do, but where it is always before the first call nothing is ever done.
    while child.poll() is None and len(calls_in(folder / "calls")) < before + chance.choice((0, 1, 2)):
        await asyncio.sleep(0.005)
    await asyncio.sleep(chance.random() * 0.4)
    done = child.poll() is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return not done


@pytest.mark.timeout(600)
async def test_killed_ten_times_and_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = write_set(tmp_path / "data", 6)
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    for folder in (whole, torn):
        folder.mkdir()
    expected = await measure(whole, ids)
    chance = random.Random(7)
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(torn), ",".join(ids)]
    lost: set[str] = set()
    for _ in range(KILLS):
        assert await killed_in_the_middle(command, torn, chance), (
            "it was done before it was killed often enough"
        )
        lost |= {
            call for call in calls_in(torn / "calls") if not any((torn / "pool").rglob(f"{call}-*.json"))
        }
    rows = await measure(torn, ids)
    assert told_of(rows) == told_of(expected)
    calls = calls_in(torn / "calls")
    assert set(calls) == set(calls_in(whole / "calls"))
    assert {call for call in calls if calls.count(call) > 1} <= lost, "a reply on disk was asked for again"
