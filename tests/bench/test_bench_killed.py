"""Law 7 for benchmarks: one that was killed continues, and never repeats a call whose reply it has."""

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

from bench.bench_tasks import LuckyModel, normalize_rows, read_calls, write_mbpp_tasks
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
    """Run the benchmark in the current process."""
    plan = BenchmarkPlan(ids={"mbpp": tuple(ids)}, arms=ARMS, models=("lucky:model",), caps=(700,))
    model = LuckyModel(folder / "calls", pause_s=pause_s)
    bench = BenchFolder(folder)
    await run_benchmark(plan, bench, Settings(), parallel=3, opener=lambda settings, name: model)
    return bench.rows()


async def run_and_kill(command: list[str], folder: Path, generator: random.Random) -> bool:
    """Start the benchmark and kill it; return whether it was killed before it had finished."""
    before = len(read_calls(folder / "calls"))
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    # Any moment is valid, but killing always before the first call would make no progress.
    while child.poll() is None and len(read_calls(folder / "calls")) < before + generator.choice((0, 1, 2)):
        await asyncio.sleep(0.005)
    await asyncio.sleep(generator.random() * 0.4)
    is_done = child.poll() is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return not is_done


@pytest.mark.timeout(600)
async def test_a_benchmark_killed_ten_times_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: BubblewrapSandbox
) -> None:
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path / "data"))
    ids = write_mbpp_tasks(tmp_path / "data", 6)
    complete_folder, killed_folder = tmp_path / "whole", tmp_path / "torn"
    for folder in (complete_folder, killed_folder):
        folder.mkdir()
    expected = await measure(complete_folder, ids)
    generator = random.Random(7)
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(killed_folder), ",".join(ids)]
    lost_calls: set[str] = set()
    for _ in range(KILLS):
        assert await run_and_kill(command, killed_folder, generator), (
            "the benchmark had finished before it was killed often enough"
        )
        lost_calls |= {
            call
            for call in read_calls(killed_folder / "calls")
            if not any((killed_folder / "pool").rglob(f"{call}-*.json"))
        }
    rows = await measure(killed_folder, ids)
    assert normalize_rows(rows) == normalize_rows(expected)

    calls = read_calls(killed_folder / "calls")
    assert set(calls) == set(read_calls(complete_folder / "calls"))
    assert {call for call in calls if calls.count(call) > 1} <= lost_calls, (
        "a call was repeated although its reply is on disk"
    )
