"""A run of all tests on the unchanged code that starts before the user's run has ended.

A trial of the whole suite takes as long as the user's run of it. If it ran afterwards, the search would wait
for it. It runs at the same time, so it has ended when the search begins, and its process can try candidates
at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from suture.judge.trials.process_reports import CollectionReport, TestReport
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import MAX_TRACED_COLLECTION_TESTS


class PrefetchedRun:
    """A process that collects all tests and runs them in their order, in the background.

    Args:
        worker: A process for this run alone, not started yet.

    Attributes:
        collection: The report of the collection; `None` until it ends.
        ordered: Test id -> report, for the tests that have run.
    """

    def __init__(self, worker: TrialWorker, timeout_s: float) -> None:
        self.worker = worker
        self.collection: CollectionReport | None = None
        self.ordered: dict[str, TestReport] = {}
        self._timeout_s = timeout_s
        self._has_begun = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, collecting: asyncio.Task[CollectionReport | None]) -> None:
        """Start once another process has collected: two processes beside the user's run are enough."""
        self._task = asyncio.create_task(self._run(collecting))

    async def _run(self, collecting: asyncio.Task[CollectionReport | None]) -> None:
        # `collecting` must not be cancelled together with this task, so it is not awaited directly.
        await asyncio.wait([collecting])
        collection = None if collecting.cancelled() else collecting.result()
        if collection is None:
            return
        self._has_begun = True
        await self.worker.start()
        trace = len(collection.collected) <= MAX_TRACED_COLLECTION_TESTS
        self.collection = await self.worker.collect(trace=trace, timeout_s=self._timeout_s)
        if self.collection is None:
            return
        limit_cpu_s = max(self._timeout_s, 1.0)
        reports = self.worker.run_unchanged(
            None, trace=False, slow={}, limit_cpu_s=limit_cpu_s, timeout_s=self._timeout_s
        )
        async for report in reports:
            record_report(self.ordered, report)

    def is_usable(self, outcomes: Iterable[str]) -> bool:
        """Return whether to wait for this run, given the outcomes of the tests in the user's run.

        A test that timed out in the user's run does not end in this run either, because no limit was known
        when this run began.
        """
        return self._has_begun and "timeout" not in outcomes

    async def finish(self, texts: Mapping[str, str], timeout_s: float) -> bool:
        """Wait for the end, send the files that candidates change, and return whether candidates can be tried."""
        assert self._task is not None
        await asyncio.wait([self._task], timeout=max(0.0, timeout_s))
        if not self._task.done():
            return False
        self._task.result()
        if not self.worker.alive:
            return False
        await self.worker.set_files(texts, list(texts))
        return True

    async def close(self) -> None:
        """End the process, whatever it is doing; safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.worker.close()


def record_report(reports: dict[str, TestReport], report: TestReport) -> None:
    """Add a test's report. If a test is reported twice, because two items have its id, the failure stays."""
    earlier = reports.get(report.test)
    if earlier is None or earlier.outcome not in ("failed", "timeout"):
        reports[report.test] = report
