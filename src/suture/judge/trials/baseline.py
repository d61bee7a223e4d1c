"""Trials of the unchanged code, in two processes.

In one the tests that fail run without the others, and are traced; then those near them, for a moment: that is
enough to begin with. In the other all tests run in their own order, and what they say is compared with the
user's run. That takes as long as the suite does, and the first candidates are tried meanwhile.
"""

from __future__ import annotations

import asyncio
import posixpath
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.prefetched_run import LARGE, PrefetchedRun, keep
from suture.judge.trials.process_reports import CollectionReport, TestReport, lines_of
from suture.judge.trials.spectrum import FAILED, TraceData, build_spectrum, unseen
from suture.judge.trials.trial_records import Spectrum
from suture.judge.trials.trial_worker import TrialWorker

MOST_TRACED_FAILING = 80
"""Failing tests that are looked at: each is run once more, and then traced."""
LEAST_LOOK_S = 3.0
"""Wall-clock seconds for the failing tests, however few there are: without them there is nothing to go by."""
HANG_SHARE, LEAST_HANG_S = 0.03, 1.0
"""Of the seconds, what a failing test may take before it counts as endless; and at least."""
ENDLESS_S = 0.3
"""The same of one that had no end in the user's run."""
NEAR_SHARE, NEAR_S = 0.2, 1.5
"""Of the seconds for localisation, the most for the lines of passing tests; and at most."""
TRACED_SLOWER = 20.0
"""How much longer a failing test may take while its lines are noted; what it showed by then counts."""


async def run_baseline(
    command: TestCommand, files: Sequence[str], failing: Collection[str], seconds: float
) -> Spectrum:
    """All that a `Looking` shows, in processes of its own.

    Args:
        command: A pytest command.
        files: The project's files to look at.
        failing: Ids of tests that fail; where there are none, those that fail here.
        seconds: Wall-clock seconds, after which what was seen must do.

    Raises:
        SandboxError: The wall failed.
    """
    workers = [TrialWorker(command, {}, files, 2 * seconds + 30) for _ in range(2)]
    looking = BaselineRun(workers, {}, failing, None, seconds)
    try:
        await looking.run_failing_tests()
        return await looking.run_all_tests()
    finally:
        await looking.close()
        await asyncio.gather(*(worker.close() for worker in workers))


class BaselineRun:
    """Trials of the unchanged code in two processes, one of which is done long before the other.

    Args:
        workers: Two.
        texts: Path -> text of the files that may change.
        failing: Ids of tests that fail in the user's run; where there are none, those that fail here.
        baseline: Id -> how it ended in the user's run.
        seconds: Wall-clock seconds, after which what was seen must do.
        whole_s: The same of all tests in their order, where that may take longer.
        collecting: What the first of them will say, where it collects already and does not know the texts.
        ahead: The second, where it runs all tests already, and does not know the texts either.
    """

    def __init__(
        self,
        workers: Sequence[TrialWorker],
        texts: Mapping[str, str],
        failing: Collection[str],
        baseline: Mapping[str, str] | None,
        seconds: float,
        *,
        whole_s: float | None = None,
        collecting: asyncio.Task[CollectionReport | None] | None = None,
        ahead: PrefetchedRun | None = None,
    ) -> None:
        self._near, self._far = workers
        self._ahead = ahead
        self._collecting = collecting
        self._texts, self._failing, self._baseline = texts, frozenset(failing), baseline
        self._end_s = time.monotonic() + max(seconds, LEAST_LOOK_S)
        self._whole_end_s = time.monotonic() + (seconds if whole_s is None else whole_s)
        self._hang_s = max(LEAST_HANG_S, HANG_SHARE * seconds)
        self._seen = TraceData()
        self._in_order: asyncio.Task[None] | None = None

    async def run_failing_tests(self) -> Spectrum:
        """The failing tests without the others, then their lines; all tests go on to be looked at meanwhile.

        Raises:
            SandboxError: The wall failed.
        """
        self._in_order = asyncio.create_task(self._all_in_order())
        seen = self._seen
        seen.collection = await self._collect_near()
        if seen.collection is None:
            await self._in_order
        if seen.collection is None:
            return unseen(self._failing, self._texts)
        ids = list(dict.fromkeys(seen.collection.collected))
        wanted = _wanted(self._failing, ids)
        if not wanted:
            await self._in_order
            wanted = [test for test, own in seen.ordered.items() if FAILED[own.outcome] == "failed"]
        await _near(self._near, seen, self._patience(wanted), ids, self._end_s)
        return self._spectrum()

    def _patience(self, tests: Sequence[str]) -> dict[str, float]:
        """What each of these tests may take, in CPU seconds: those that may come to an end stand first."""
        known = self._baseline or {}
        endless = {test for test in tests if known.get(test) == "timeout"}
        return {
            **{test: self._hang_s for test in tests if test not in endless},
            **{test: ENDLESS_S for test in tests if test in endless},
        }

    async def _collect_near(self) -> CollectionReport | None:
        if self._collecting is None:
            if not self._near.alive:
                await self._near.start()
            return await self._near.collect(trace=False, seconds=self._left_s())
        await asyncio.wait([self._collecting], timeout=self._left_s())
        if not self._collecting.done():
            self._collecting.cancel()
            await asyncio.wait([self._collecting])
            await self._near.close()
            return None
        collection = self._collecting.result()
        if collection is None:
            return None
        await self._near.set_files(self._texts, list(self._texts))
        return self._of_texts(collection)

    def _of_texts(self, collection: CollectionReport) -> CollectionReport:
        """What a process said that did not know yet which files may change."""
        own = tuple(frame for frame in collection.frames if frame and frame[0] in self._texts)
        lines = {path: packed for path, packed in collection.lines.items() if path in self._texts}
        return replace(collection, frames=own, lines=lines)

    async def run_all_tests(self) -> Spectrum:
        """The same once all tests have run in their order, or the time for it is up.

        Raises:
            SandboxError: The wall failed.
        """
        if self._in_order is not None:
            await self._in_order
        return self._spectrum()

    async def close(self) -> None:
        """Look no more."""
        if self._in_order is not None:
            self._in_order.cancel()
            await asyncio.gather(self._in_order, return_exceptions=True)

    async def _all_in_order(self) -> None:
        seen, small = self._seen, len(self._baseline or ()) <= LARGE
        if self._ahead is not None:
            await self._take_ahead(self._ahead)
            return
        if not self._far.alive:
            await self._far.start()
        collection = await self._far.collect(trace=small, seconds=self._whole_left_s())
        if collection is None:
            return
        seen.imported = {path: lines_of(packed) for path, packed in collection.lines.items()}
        seen.collection = seen.collection or collection
        ids = list(dict.fromkeys(collection.collected))
        slow = self._patience(_wanted(self._failing, ids) or ids)
        await _walk(self._far, seen.ordered, None, slow, self._whole_left_s())

    async def _take_ahead(self, ahead: PrefetchedRun) -> None:
        """What was seen beside the user's run; where that does not come to its end, what there is of it."""
        seen = self._seen
        is_ready = await ahead.finish(self._texts, self._whole_left_s())
        if ahead.collection is not None:
            collection = self._of_texts(ahead.collection)
            seen.imported = {path: lines_of(packed) for path, packed in collection.lines.items()}
            seen.collection = seen.collection or collection
        seen.ordered.update(ahead.ordered)
        if not is_ready:
            await ahead.close()

    def _whole_left_s(self) -> float:
        return max(0.1, self._whole_end_s - time.monotonic())

    def _left_s(self) -> float:
        return max(0.1, self._end_s - time.monotonic())

    def _spectrum(self) -> Spectrum:
        collection = self._seen.collection
        if collection is None:
            return unseen(self._failing, self._texts)
        return build_spectrum(collection, self._seen, self._texts, self._failing, self._baseline)


def _wanted(failing: Collection[str], ids: Sequence[str]) -> list[str]:
    """The collected tests among those that fail; one may be known only by its function, or by its file."""
    own = [test for test in ids if test in failing]
    return own or [t for t in ids if t.partition("[")[0] in failing or t.partition("::")[0] in failing]


async def _near(
    worker: TrialWorker,
    sight: TraceData,
    failing: Mapping[str, float],
    ids: Sequence[str],
    end_s: float,
) -> None:
    """The failing tests without the others, then their lines, then those of the tests near them."""
    left_s = end_s - time.monotonic()
    shown = list(failing)[:MOST_TRACED_FAILING]
    await _walk(worker, sight.alone, shown, failing, left_s / 3)
    traced = [test for test in shown if test in sight.alone] or shown
    took = [seen.seconds for seen in sight.alone.values() if seen.outcome != "timeout"]
    longest_s = min(TRACED_SLOWER * max(took, default=0.0), left_s / 4)
    patience = {test: max(own, longest_s) if own > ENDLESS_S else own for test, own in failing.items()}
    await _walk(worker, sight.traced, traced, patience, left_s / 3, trace=True)
    others = _by_nearness(list(failing), ids)
    near_s = min(NEAR_SHARE * left_s, NEAR_S, end_s - time.monotonic())
    await _walk(worker, sight.traced, others, failing, near_s, trace=True)


def _by_nearness(failing: Sequence[str], ids: Sequence[str]) -> list[str]:
    """The other tests: those of the same files first, then of the same folders."""
    known = set(failing)
    files = {test.partition("::")[0] for test in failing}
    folders = {posixpath.dirname(path) for path in files}

    def distance(test: str) -> int:
        path = test.partition("::")[0]
        return 0 if path in files else 1 if posixpath.dirname(path) in folders else 2

    return sorted((test for test in ids if test not in known), key=distance)


async def _walk(
    worker: TrialWorker,
    into: dict[str, TestReport],
    tests: Sequence[str] | None,
    slow: Mapping[str, float],
    seconds: float,
    *,
    trace: bool = False,
) -> None:
    """Run tests, and take in what is seen of them."""
    if seconds <= 0 or tests == []:
        return
    limit_s = max(seconds, 1.0)
    entries = worker.walk(tests, trace=trace, slow=slow, limit_s=limit_s, seconds=seconds)
    async for seen in entries:
        keep(into, seen)
