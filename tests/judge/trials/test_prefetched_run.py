"""All tests are prefetched during the user's own run, for use by the search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest

from suture.judge.trials.baseline import BaselineRun, PrefetchedRun
from suture.judge.trials.process_reports import CollectionReport, TestReport
from suture.judge.trials.trial_worker import TrialWorker

COLLECTED = CollectionReport(
    collected=("t.py::a", "t.py::b"),
    errors=0,
    seconds=0.1,
    wall_s=0.1,
    lines={"m.py": "02", "t.py": "06"},
    frames=(),
    calls=(),
)


def make_report(test: str, outcome: str) -> TestReport:
    return TestReport(
        test=test, outcome=cast(Any, outcome), seconds=0.1, wall_s=0.2, lines={}, frames=(), calls=()
    )


class ScriptedWorker:
    """A worker that returns scripted reports, and records the requests."""

    def __init__(self, *outcomes: TestReport, hangs: bool = False) -> None:
        self._outcomes, self._hangs = outcomes, hangs
        self.alive = False
        self.requests: list[str] = []

    async def start(self) -> None:
        self.alive = True
        self.requests.append("start")

    async def close(self) -> None:
        self.alive = False

    async def collect(self, *, trace: bool, timeout_s: float) -> CollectionReport:
        self.requests.append("collect, traced" if trace else "collect")
        return COLLECTED

    async def set_files(self, texts: Mapping[str, str], files: list[str]) -> None:
        self.requests.append(f"set_files {', '.join(texts)}")

    async def run_unchanged(self, tests: object, **options: object) -> AsyncIterator[TestReport]:
        self.requests.append("run all" if tests is None else "run some")
        for outcome in self._outcomes:
            yield outcome
        if self._hangs:
            await asyncio.sleep(600)


async def start_run(worker: ScriptedWorker) -> tuple[PrefetchedRun, asyncio.Task[CollectionReport | None]]:
    async def collect() -> CollectionReport | None:
        await asyncio.sleep(0)
        return COLLECTED

    prefetched, first = PrefetchedRun(cast(TrialWorker, worker), 100.0), asyncio.create_task(collect())
    prefetched.begin(first)
    assert not prefetched.is_usable(())  # no test is running yet
    await first
    await asyncio.sleep(0.01)
    return prefetched, first


async def test_prefetched_tests_do_not_run_again() -> None:
    worker = ScriptedWorker(
        make_report("t.py::a", "passed"), make_report("t.py::b", "failed"), make_report("t.py::b", "passed")
    )
    prefetched, _ = await start_run(worker)
    assert prefetched.is_usable(("passed", "failed"))

    failing_worker = ScriptedWorker(make_report("t.py::b", "failed"))
    baseline = BaselineRun(
        (cast(TrialWorker, failing_worker), prefetched.worker),
        {"m.py": "x = 1\n"},
        {"t.py::b"},
        {"t.py::a": "passed", "t.py::b": "failed"},
        5.0,
        prefetched=prefetched,
    )
    await baseline.run_failing_tests()
    spectrum = await baseline.run_all_tests()
    await prefetched.close()
    assert {test.id: test.outcome for test in spectrum.tests} == {"t.py::a": "passed", "t.py::b": "failed"}
    assert spectrum.import_lines == {"m.py": frozenset({1})}
    assert (spectrum.compared, spectrum.disagreements) == (2, ())
    assert worker.requests == ["start", "collect, traced", "run all", "set_files m.py"]


async def test_a_run_with_an_endless_test_is_not_usable() -> None:
    prefetched, _ = await start_run(ScriptedWorker(hangs=True))
    assert not prefetched.is_usable(("passed", "timeout"))
    assert not await prefetched.finish({}, 0.01)
    await prefetched.close()


@pytest.mark.parametrize("collects", [True, False])
async def test_closing_does_not_cancel_the_other_process(collects: bool) -> None:
    gate = asyncio.Event()

    async def collect() -> CollectionReport | None:
        await gate.wait()
        return COLLECTED

    worker = ScriptedWorker()
    prefetched, first = PrefetchedRun(cast(TrialWorker, worker), 100.0), asyncio.create_task(collect())
    prefetched.begin(first)
    await asyncio.sleep(0)
    if collects:
        gate.set()

    await prefetched.close()
    gate.set()

    assert await first is COLLECTED
    assert not worker.alive
