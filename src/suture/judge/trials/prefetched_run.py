"""All tests in their own order on the unchanged code, begun before the first run has said how they end.

A trial of the whole suite takes as long as the user's own run of it. Done after that run, it is what a search
waits for; done beside it, it is over when the search begins, and the process tries candidates at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from suture.judge.trials.process_reports import CollectionReport, TestReport
from suture.judge.trials.trial_worker import TrialWorker

LARGE = 5000
"""Tests from which on the collection itself is not traced."""
WORST = {"passed": 0, "skipped": 0, "failed": 1, "timeout": 1}
"""A test that is reported twice, as one that two items stand for, keeps its failure."""


class PrefetchedRun:
    """A process that collects all tests and runs them in their order, in the background.

    Args:
        worker: Of its own; it has not started.
        wall_s: Wall-clock seconds that it has.

    Attributes:
        worker: The process.
        collection: What it said when it had collected; `None` until then.
        ordered: Test -> what was seen of it, as far as it came.
    """

    def __init__(self, worker: TrialWorker, wall_s: float) -> None:
        self.worker = worker
        self.collection: CollectionReport | None = None
        self.ordered: dict[str, TestReport] = {}
        self._wall_s = wall_s
        self._has_begun = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, after: asyncio.Task[CollectionReport | None]) -> None:
        """Begin once another process has collected: two at a time are enough beside the run itself."""
        self._task = asyncio.create_task(self._go(after))

    async def _go(self, after: asyncio.Task[CollectionReport | None]) -> None:
        await asyncio.wait([after])  # which is another's, and goes on where this is ended
        known = None if after.cancelled() else after.result()
        if known is None:
            return
        self._has_begun = True
        await self.worker.start()
        trace = len(known.collected) <= LARGE
        self.collection = await self.worker.collect(trace=trace, seconds=self._wall_s)
        if self.collection is None:
            return
        entries = self.worker.walk(
            None, trace=False, slow={}, limit_s=max(self._wall_s, 1.0), seconds=self._wall_s
        )
        async for seen in entries:
            keep(self.ordered, seen)

    def is_usable(self, statuses: Iterable[str]) -> bool:
        """Whether it may be waited for, by how the tests ended in the user's run.

        A test that has no end there has none here: nothing was known of that when this began.
        """
        return self._has_begun and "timeout" not in statuses

    async def finish(self, texts: Mapping[str, str], seconds: float) -> bool:
        """Wait for its end, and say which files candidates change; whether it can try candidates then."""
        assert self._task is not None
        await asyncio.wait([self._task], timeout=max(0.0, seconds))
        if not self._task.done():
            return False
        self._task.result()
        if not self.worker.alive:
            return False
        await self.worker.set_files(texts, list(texts))
        return True

    async def close(self) -> None:
        """End the process, whatever it does; safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.worker.close()


def keep(into: dict[str, TestReport], seen: TestReport) -> None:
    """Take in what was seen of a test."""
    before = into.get(seen.test)
    if before is None or not WORST[before.outcome]:
        into[seen.test] = seen
