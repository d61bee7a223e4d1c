"""All tests run beside the user's own run, and what of it serves the search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest

from suture.judge.trials.baseline import BaselineRun
from suture.judge.trials.prefetched_run import PrefetchedRun
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


def seen(test: str, outcome: str) -> TestReport:
    return TestReport(
        test=test, outcome=cast(Any, outcome), seconds=0.1, wall_s=0.2, lines={}, frames=(), calls=()
    )


class Told:
    """A worker that says what it was told to say, and notes what it is asked."""

    def __init__(self, *outcomes: TestReport, hangs: bool = False) -> None:
        self._outcomes, self._hangs = outcomes, hangs
        self.alive = False
        self.asked: list[str] = []

    async def start(self) -> None:
        self.alive = True
        self.asked.append("start")

    async def close(self) -> None:
        self.alive = False

    async def collect(self, *, trace: bool, seconds: float) -> CollectionReport:
        self.asked.append("collect, traced" if trace else "collect")
        return COLLECTED

    async def know(self, texts: Mapping[str, str], files: list[str]) -> None:
        self.asked.append(f"know {', '.join(texts)}")

    async def walk(self, tests: object, **given: object) -> AsyncIterator[TestReport]:
        self.asked.append("walk" if tests is None else "walk some")
        for outcome in self._outcomes:
            yield outcome
        if self._hangs:
            await asyncio.sleep(600)


async def begun(worker: Told) -> tuple[PrefetchedRun, asyncio.Task[CollectionReport | None]]:
    async def collect() -> CollectionReport | None:
        await asyncio.sleep(0)
        return COLLECTED

    ahead, first = PrefetchedRun(cast(TrialWorker, worker), 100.0), asyncio.create_task(collect())
    ahead.begin(first)
    assert not ahead.is_usable(())  # nothing is running yet that could be waited for
    await first
    await asyncio.sleep(0.01)
    return ahead, first


async def test_what_ran_beside_the_users_run_is_not_run_again() -> None:
    worker = Told(seen("t.py::a", "passed"), seen("t.py::b", "failed"), seen("t.py::b", "passed"))
    ahead, _ = await begun(worker)
    assert ahead.is_usable(("passed", "failed"))
    near = Told(seen("t.py::b", "failed"))
    looking = BaselineRun(
        (cast(TrialWorker, near), ahead.worker),
        {"m.py": "x = 1\n"},
        {"t.py::b"},
        {"t.py::a": "passed", "t.py::b": "failed"},
        5.0,
        ahead=ahead,
    )
    await looking.run_failing_tests()
    whole = await looking.run_all_tests()
    await ahead.close()
    assert {test.id: test.outcome for test in whole.tests} == {"t.py::a": "passed", "t.py::b": "failed"}
    assert whole.import_lines == {"m.py": frozenset({1})}
    assert (whole.compared, whole.disagreements) == (2, ())
    assert worker.asked == ["start", "collect, traced", "walk", "know m.py"]


async def test_it_is_of_no_use_where_a_test_has_no_end() -> None:
    ahead, _ = await begun(Told(hangs=True))
    assert not ahead.is_usable(("passed", "timeout"))
    assert not await ahead.finish({}, 0.01)
    await ahead.close()


@pytest.mark.parametrize("collects", [True, False])
async def test_to_end_it_leaves_the_other_process_alone(collects: bool) -> None:
    gate = asyncio.Event()

    async def collect() -> CollectionReport | None:
        await gate.wait()
        return COLLECTED

    worker = Told()
    ahead, first = PrefetchedRun(cast(TrialWorker, worker), 100.0), asyncio.create_task(collect())
    ahead.begin(first)
    await asyncio.sleep(0)
    if collects:
        gate.set()
    await ahead.close()
    gate.set()
    assert await first is COLLECTED
    assert not worker.alive
