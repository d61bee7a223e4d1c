"""What the benchmark costs for each task beyond the run and its grading, with a model that answers at once.

    SUTURE_DATA=... python benchmarks/harness.py --dataset humaneval --first 40

Measured is the time from one finished row to the next without the two calls that it is about: `solve`, and
the grading of each candidate. CPU time of the one thread stands beside it: what else the machine does counts
in wall-clock time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from ending import exit_code_of

from suture.bench.running import evaluation as evaluating
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import BenchmarkProgress, run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan, choose_ids
from suture.core.settings import load_settings
from suture.models import ScriptedModel

Clock = tuple[float, float]
"""Wall-clock seconds, and CPU seconds of this thread."""


def now() -> Clock:
    """Both."""
    return time.perf_counter(), time.thread_time()


class Meter:
    """Adds up what is not the harness, and notes what is, row by row."""

    def __init__(self) -> None:
        self.elsewhere: Clock = (0.0, 0.0)
        self.last: Clock | None = None
        self.harness_ms: list[Clock] = []

    def timed(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same, with its time taken out."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            began = now()
            try:
                return await function(*args, **kwargs)
            finally:
                ended = now()
                self.elsewhere = (
                    self.elsewhere[0] + ended[0] - began[0],
                    self.elsewhere[1] + ended[1] - began[1],
                )

        return call

    def on_progress(self, advance: BenchmarkProgress) -> None:
        """A row is finished."""
        if advance.row is None:
            return
        moment = now()
        if self.last is not None:
            spent = [(moment[i] - self.last[i] - self.elsewhere[i]) * 1000 for i in (0, 1)]
            self.harness_ms.append((spent[0], spent[1]))
        self.last, self.elsewhere = moment, (0.0, 0.0)


def main() -> None:
    """Run, then say what was left over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dataset", default="humaneval", help="a set")
    parser.add_argument("--first", type=int, default=40, help="so many tasks of it")
    wanted = parser.parse_args()
    ids = choose_ids([wanted.dataset], first=wanted.first)
    plan = BenchmarkPlan(ids=ids, arms=("greedy",), models=("scripted:x",))
    model = ScriptedModel(["```python\nx = 1\n```"], name="scripted:x", repeat_last=True)
    meter = Meter()
    names = vars(evaluating)
    for name in ("solve", "grade_code"):
        names[name] = meter.timed(names[name])
    with tempfile.TemporaryDirectory() as folder:
        bench = BenchFolder(Path(folder) / "bench")
        settings = load_settings(Path()).settings
        run = run_benchmark(
            plan,
            bench,
            settings,
            parallel=1,
            opener=lambda settings, name: model,
            on_progress=meter.on_progress,
        )
        asyncio.run(run)
    for what, place in (("wall-clock", 0), ("CPU", 1)):
        spent = [one[place] for one in meter.harness_ms]
        print(f"{what}: {median(spent):.1f} ms a task (median of {len(spent)}), {max(spent):.1f} at most")


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
