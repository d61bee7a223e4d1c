"""The baseline run: trials of the unchanged code in two processes.

One process runs the failing tests without the others, traces them, and then traces tests near them for a
moment: that is enough to begin the search. The other process runs all tests in their order, and its outcomes
are compared with the user's run. That takes as long as the suite does, and the first candidates are tried in the
meantime. It runs only a part of a large suite.
"""

from __future__ import annotations

import asyncio
import posixpath
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.process_reports import CollectionReport, TestReport, unpack_lines
from suture.judge.trials.spectrum import (
    COMPARABLE_OUTCOMES,
    TraceData,
    build_spectrum,
    make_uncollected_spectrum,
)
from suture.judge.trials.trial_records import Spectrum
from suture.judge.trials.trial_worker import TrialWorker
from suture.judge.trials.tuning import (
    ENDLESS_SHARE,
    KNOWN_ENDLESS_CPU_S,
    MAX_NEARBY_TESTS_S,
    MAX_TRACED_COLLECTION_TESTS,
    MAX_TRACED_FAILING_TESTS,
    MAX_TRACED_PASSING_TESTS,
    MAX_WHOLE_SUITE_TESTS,
    MIN_BASELINE_S,
    MIN_ENDLESS_CPU_S,
    MIN_PHASE_S,
    NEARBY_TESTS_SHARE,
    TRACING_SLOWDOWN,
    WORKER_START_S,
)


class PrefetchedRun:
    """A process that runs all tests on the unchanged code, in their order, before the user's run has ended.

    It does not begin if there are more than `MAX_WHOLE_SUITE_TESTS`.

    A trial of the whole suite takes as long as the user's run of it. Because it runs at the same time, it has
    ended when the search begins, and its process can try candidates at once.

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
        """Start once another process has collected: two processes in addition to the user's run are enough."""
        self._task = asyncio.create_task(self._run(collecting))

    async def _run(self, collecting: asyncio.Task[CollectionReport | None]) -> None:
        # `collecting` must not be cancelled together with this task, so it is not awaited directly.
        await asyncio.wait([collecting])
        collection = None if collecting.cancelled() else collecting.result()
        if collection is None or len(collection.collected) > MAX_WHOLE_SUITE_TESTS:
            return
        self._has_begun = True
        await self.worker.start()
        trace = len(collection.collected) <= MAX_TRACED_COLLECTION_TESTS
        self.collection = await self.worker.collect(trace=trace, timeout_s=self._timeout_s)
        if self.collection is None:
            return
        # No test was measured yet, so each may take all the time. The minimum is by judgement.
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


async def run_baseline(
    command: TestCommand, files: Sequence[str], failing: Collection[str], timeout_s: float
) -> Spectrum:
    """Run the whole baseline in two processes of its own.

    Args:
        files: The project's files whose lines are recorded.
        failing: Ids of failing tests; if there are none, the tests that fail here.
        timeout_s: Wall-clock seconds after which the result is what was observed so far.
    """
    # The processes must outlive the whole run, which may take longer than `timeout_s` (see `MIN_BASELINE_S`).
    workers = [TrialWorker(command, {}, files, 2 * timeout_s + WORKER_START_S) for _ in range(2)]
    baseline = BaselineRun(workers, {}, failing, None, timeout_s)
    try:
        await baseline.run_failing_tests()
        return await baseline.run_all_tests()
    finally:
        await baseline.close()
        await asyncio.gather(*(worker.close() for worker in workers))


async def trace_tests(
    command: TestCommand, texts: Mapping[str, str], failing: Collection[str], timeout_s: float
) -> Spectrum:
    """Run failing tests and some passing ones once, with tracing, in one process.

    Which passing tests run depends on their number alone and not on the time, as far as that suffices, so that
    the result is the same each time.

    Args:
        texts: Path -> text of the files whose lines are recorded.
        failing: Ids of the failing tests.
        timeout_s: Wall-clock seconds after which the result is what was observed so far.

    Raises:
        SandboxError: The sandbox failed.
    """
    end_s = time.monotonic() + timeout_s
    worker = TrialWorker(command, {}, list(texts), timeout_s + WORKER_START_S)
    data = TraceData()
    try:
        await worker.start()
        data.collection = await worker.collect(trace=False, timeout_s=timeout_s)
        if data.collection is None:
            return make_uncollected_spectrum(frozenset(failing), texts)
        ids = list(dict.fromkeys(data.collection.collected))
        failing_tests = _select_failing(failing, ids)[:MAX_TRACED_FAILING_TESTS]
        limits = dict.fromkeys(failing_tests, timeout_s / 4)
        passing = _choose_passing(failing_tests, ids)
        if command.has_services:  # tests of a second run would find what the first one wrote
            chosen = {*failing_tests, *passing}
            tests = [test for test in ids if test in chosen]
            await _run_unchanged(worker, data.traced, tests, limits, timeout_s, trace=True)
            return build_spectrum(data.collection, data, texts, frozenset(failing), None)
        await _run_unchanged(worker, data.traced, failing_tests, limits, timeout_s / 2, trace=True)
        left_s = end_s - time.monotonic()
        await _run_unchanged(worker, data.traced, passing, {}, left_s, trace=True)
        return build_spectrum(data.collection, data, texts, frozenset(failing), None)
    finally:
        await worker.close()


def _choose_passing(failing: Collection[str], ids: Sequence[str]) -> list[str]:
    """Return passing tests to trace: the nearest ones, and some of the others."""
    passing = _sort_by_nearness(failing, ids)
    near, far = passing[: MAX_TRACED_PASSING_TESTS // 2], passing[MAX_TRACED_PASSING_TESTS // 2 :]
    step = max(1, -(-2 * len(far) // MAX_TRACED_PASSING_TESTS))
    return near + far[::step]


class BaselineRun:
    """Trials of the unchanged code in two processes, one of which ends long before the other.

    Args:
        workers: (the process for the failing tests, the process for all tests).
        texts: Path -> text of the files that candidates may change.
        failing: Ids of tests that fail in the user's run; if there are none, the tests that fail here.
        user_outcomes: Test id -> outcome in the user's run.
        timeout_s: Wall-clock seconds after which the result is what was observed so far.
        suite_timeout_s: The same limit for the run of all tests; `timeout_s` by default.
        collecting: The task of the first process, if it is already collecting; it does not know `texts` yet.
        prefetched: The second process, if it is already running all tests; it does not know `texts` either.
    """

    def __init__(
        self,
        workers: Sequence[TrialWorker],
        texts: Mapping[str, str],
        failing: Collection[str],
        user_outcomes: Mapping[str, str] | None,
        timeout_s: float,
        *,
        suite_timeout_s: float | None = None,
        collecting: asyncio.Task[CollectionReport | None] | None = None,
        prefetched: PrefetchedRun | None = None,
    ) -> None:
        self._failing_worker, self._suite_worker = workers
        self._prefetched = prefetched
        self._collecting = collecting
        self._texts, self._failing, self._user_outcomes = texts, frozenset(failing), user_outcomes
        self._end_s = time.monotonic() + max(timeout_s, MIN_BASELINE_S)
        self._suite_end_s = time.monotonic() + (timeout_s if suite_timeout_s is None else suite_timeout_s)
        self._endless_cpu_s = max(MIN_ENDLESS_CPU_S, ENDLESS_SHARE * timeout_s)
        self._data = TraceData()
        self._suite_task: asyncio.Task[None] | None = None

    async def run_failing_tests(self) -> Spectrum:
        """Run and trace the failing tests without the others, while all tests run in the other process."""
        self._suite_task = asyncio.create_task(self._run_suite())
        data = self._data
        data.collection = await self._collect()
        if data.collection is None:
            await self._suite_task  # the other process may have collected the tests
        if data.collection is None:
            return make_uncollected_spectrum(self._failing, self._texts)
        ids = list(dict.fromkeys(data.collection.collected))
        failing_tests = _select_failing(self._failing, ids)
        if not failing_tests:
            await self._suite_task
            failing_tests = [
                test for test, run in data.ordered.items() if COMPARABLE_OUTCOMES[run.outcome] == "failed"
            ]
        await _run_and_trace(
            self._failing_worker, data, self._get_cpu_limits(failing_tests), ids, self._end_s
        )
        return self._build_spectrum()

    def _get_cpu_limits(self, tests: Sequence[str]) -> dict[str, float]:
        """Return failing test -> CPU seconds that it may take; known endless tests come last."""
        outcomes = self._user_outcomes or {}
        limits = {test: self._endless_cpu_s for test in tests if outcomes.get(test) != "timeout"}
        return limits | {test: KNOWN_ENDLESS_CPU_S for test in tests if test not in limits}

    async def _collect(self) -> CollectionReport | None:
        if self._collecting is None:
            if not self._failing_worker.alive:
                await self._failing_worker.start()
            return await self._failing_worker.collect(trace=False, timeout_s=self._left_s())
        await asyncio.wait([self._collecting], timeout=self._left_s())
        if not self._collecting.done():
            self._collecting.cancel()
            await asyncio.wait([self._collecting])
            await self._failing_worker.close()
            return None
        collection = self._collecting.result()
        if collection is None:
            return None
        await self._failing_worker.set_files(self._texts, list(self._texts))
        return self._restrict_to_texts(collection)

    def _restrict_to_texts(self, collection: CollectionReport) -> CollectionReport:
        """Return a collection's report without files that cannot change: its process did not know which can."""
        frames = tuple(frame for frame in collection.frames if frame and frame[0] in self._texts)
        lines = {path: packed for path, packed in collection.lines.items() if path in self._texts}
        return replace(collection, frames=frames, lines=lines)

    async def run_all_tests(self) -> Spectrum:
        """Return the spectrum once all tests have run in their order, or the time for that is up."""
        if self._suite_task is not None:
            await self._suite_task
        return self._build_spectrum()

    async def close(self) -> None:
        """Stop the run."""
        if self._suite_task is not None:
            self._suite_task.cancel()
            await asyncio.gather(self._suite_task, return_exceptions=True)

    async def _run_suite(self) -> None:
        if self._prefetched is not None:
            await self._use_prefetched(self._prefetched)
            return
        data = self._data
        if not self._suite_worker.alive:
            await self._suite_worker.start()
        trace = len(self._user_outcomes or ()) <= MAX_TRACED_COLLECTION_TESTS
        collection = await self._suite_worker.collect(trace=trace, timeout_s=self._suite_left_s())
        if collection is None:
            return
        data.import_lines = {path: unpack_lines(packed) for path, packed in collection.lines.items()}
        data.collection = data.collection or collection
        ids = list(dict.fromkeys(collection.collected))
        failing_tests = _select_failing(self._failing, ids)
        # Where it is not known which tests fail, each may be one that never ends.
        slow = self._get_cpu_limits(failing_tests or ids)
        tests = None
        if failing_tests and len(ids) > MAX_WHOLE_SUITE_TESTS:
            chosen = {*failing_tests, *_choose_passing(failing_tests, ids)}
            tests = [test for test in ids if test in chosen]
        await _run_unchanged(self._suite_worker, data.ordered, tests, slow, self._suite_left_s())

    async def _use_prefetched(self, prefetched: PrefetchedRun) -> None:
        """Adopt the reports of the prefetched run; if it does not end in time, those that exist."""
        data = self._data
        is_ready = await prefetched.finish(self._texts, self._suite_left_s())
        if prefetched.collection is not None:
            collection = self._restrict_to_texts(prefetched.collection)
            data.import_lines = {path: unpack_lines(packed) for path, packed in collection.lines.items()}
            data.collection = data.collection or collection
        data.ordered.update(prefetched.ordered)
        if not is_ready:
            await prefetched.close()

    def _suite_left_s(self) -> float:
        return max(MIN_PHASE_S, self._suite_end_s - time.monotonic())

    def _left_s(self) -> float:
        return max(MIN_PHASE_S, self._end_s - time.monotonic())

    def _build_spectrum(self) -> Spectrum:
        collection = self._data.collection
        if collection is None:
            return make_uncollected_spectrum(self._failing, self._texts)
        return build_spectrum(collection, self._data, self._texts, self._failing, self._user_outcomes)


def _select_failing(failing: Collection[str], ids: Sequence[str]) -> list[str]:
    """Return the collected tests that fail. A failing id may be a function without parameters, or a file."""
    exact = [test for test in ids if test in failing]
    return exact or [
        test for test in ids if test.partition("[")[0] in failing or test.partition("::")[0] in failing
    ]


async def _run_and_trace(
    worker: TrialWorker, data: TraceData, failing: Mapping[str, float], ids: Sequence[str], end_s: float
) -> None:
    """Run the failing tests without the others, trace them, then trace the tests near them.

    `failing` has the CPU seconds of each failing test, and `end_s` is on the monotonic clock.
    """
    # Shares of the time for each step: chosen by judgement; not measured.
    left_s = end_s - time.monotonic()
    examined = list(failing)[:MAX_TRACED_FAILING_TESTS]
    await _run_unchanged(worker, data.alone, examined, failing, left_s / 3)
    traced = [test for test in examined if test in data.alone] or examined
    durations_s = [report.seconds for report in data.alone.values() if report.outcome != "timeout"]
    traced_cpu_s = min(TRACING_SLOWDOWN * max(durations_s, default=0.0), left_s / 4)
    limits = {
        test: max(limit_s, traced_cpu_s) if limit_s > KNOWN_ENDLESS_CPU_S else limit_s
        for test, limit_s in failing.items()
    }
    await _run_unchanged(worker, data.traced, traced, limits, left_s / 3, trace=True)
    other_tests = _sort_by_nearness(failing, ids)
    timeout_s = min(NEARBY_TESTS_SHARE * left_s, MAX_NEARBY_TESTS_S, end_s - time.monotonic())
    await _run_unchanged(worker, data.traced, other_tests, failing, timeout_s, trace=True)


def _sort_by_nearness(failing: Collection[str], ids: Sequence[str]) -> list[str]:
    """Return the other tests: those in the same files first, then those in the same folders."""
    files = {test.partition("::")[0] for test in failing}
    folders = {posixpath.dirname(path) for path in files}

    def distance(test: str) -> int:
        path = test.partition("::")[0]
        return 0 if path in files else 1 if posixpath.dirname(path) in folders else 2

    return sorted((test for test in ids if test not in failing), key=distance)


async def _run_unchanged(
    worker: TrialWorker,
    reports: dict[str, TestReport],
    tests: Sequence[str] | None,
    slow: Mapping[str, float],
    timeout_s: float,
    *,
    trace: bool = False,
) -> None:
    """Run tests on the unchanged code and record their reports."""
    if timeout_s <= 0 or tests == []:
        return
    run = worker.run_unchanged(
        tests, trace=trace, slow=slow, limit_cpu_s=max(timeout_s, 1.0), timeout_s=timeout_s
    )
    async for report in run:
        record_report(reports, report)
