"""Suites that are too large for a baseline run or a trial to run all tests."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from judge.trials.test_prefetched_run import COLLECTED, ScriptedWorker, make_report
from suture.judge.trials.baseline import BaselineRun, PrefetchedRun
from suture.judge.trials.process_reports import AttemptReport, CollectionReport, TestReport
from suture.judge.trials.spectrum import TraceData, build_spectrum
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.trial_runner import TrialRunner
from suture.judge.trials.tuning import MAX_WHOLE_SUITE_TESTS
from suture.mutation import Edit

TESTS = tuple(f"t_{number // 50}.py::test_{number}" for number in range(MAX_WHOLE_SUITE_TESTS + 1))
LARGE = CollectionReport(
    collected=TESTS, errors=0, seconds=0.1, wall_s=0.1, lines=COLLECTED.lines, frames=(), calls=()
)


class LargeSuiteWorker(ScriptedWorker):
    """A scripted worker with many tests."""

    chosen: Any = ()

    def __init__(self, *outcomes: TestReport) -> None:
        super().__init__(*outcomes)
        self.attempts: list[list[str] | None] = []

    async def set_limits(self, limits: object) -> None:
        pass

    async def attempt(self, proposal: Proposal, tests: list[str] | None, **options: object) -> AttemptReport:
        self.attempts.append(tests)
        return AttemptReport(outcomes="P", finished=True, unsupported=False)

    async def collect(self, **options: Any) -> CollectionReport:
        await super().collect(**options)
        return LARGE

    async def run_unchanged(self, tests: Any, **options: object) -> Any:
        self.chosen = tests
        async for report in super().run_unchanged(tests, **options):
            yield report


async def test_the_baseline_runs_a_part_of_a_large_suite() -> None:
    failing = TESTS[120]
    workers = [LargeSuiteWorker(make_report(failing, "failed")) for _ in range(2)]
    baseline = BaselineRun(cast(Any, workers), {}, {failing}, {failing: "failed"}, 5.0)

    await baseline.run_failing_tests()
    spectrum = await baseline.run_all_tests()

    chosen = workers[1].chosen
    assert {*TESTS[100:150]} <= {*chosen} < {*TESTS}
    assert chosen == sorted(chosen, key=TESTS.index)
    assert (spectrum.target_tests, len(spectrum.collected)) == ((failing,), len(TESTS))


async def test_a_large_suite_is_not_prefetched() -> None:
    async def collect() -> CollectionReport | None:
        return LARGE

    worker = LargeSuiteWorker()
    prefetched, collecting = PrefetchedRun(cast(Any, worker), 100.0), asyncio.create_task(collect())
    prefetched.begin(collecting)
    await collecting
    await asyncio.sleep(0.01)
    assert not prefetched.is_usable(())
    assert worker.requests == []
    await prefetched.close()


@pytest.mark.parametrize("is_large", [True, False])
async def test_a_trial_runs_no_large_suite(is_large: bool) -> None:
    collected = LARGE if is_large else replace(LARGE, collected=TESTS[:-1])
    spectrum = build_spectrum(collected, TraceData(), {}, frozenset(TESTS[:1]), {})
    worker = LargeSuiteWorker()
    runner = TrialRunner(cast(Any, worker), spectrum, {"m.py": "x = 1\n"})
    edit = Edit(start=4, end=5, text="2")
    proposal = Proposal(path="m.py", edits=(edit,), label="", score=1.0, operators=())

    trial = await runner.run_trial(proposal, timeout_s=60)

    assert trial is not None
    assert trial.is_plausible
    assert worker.attempts == ([[TESTS[0]]] if is_large else [[TESTS[0]], None])
