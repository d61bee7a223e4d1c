"""The trial processes of a search, which may be started before it is known whether there will be a search.

The first steps of the processes do not depend on the first run of the user's command, so both happen at the
same time. The processes start in the sandbox, import the project, collect its tests, and run all tests in their
order. As soon as the failing tests are known, they are run and traced, while triage examines them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import BaselineRun, PrefetchedRun
from suture.judge.trials.process_reports import CollectionReport
from suture.judge.trials.trial_records import Spectrum
from suture.judge.trials.trial_worker import TrialWorker
from suture.search.ordering.candidate_order import OrderedCandidates, order_candidates
from suture.search.ordering.reverts import Hunk
from suture.search.search_records import SearchLimits
from suture.search.tuning import FULL_SUITE_SHARE, LOCATE_SHARE, MAX_SINGLES


class BaselineCandidates:
    """Runs the baseline of one search and generates its candidates, both in the background."""

    def __init__(self, baseline: BaselineRun, texts: Mapping[str, str], limits: SearchLimits) -> None:
        self._baseline, self._texts, self._limits = baseline, texts, limits
        self._early: asyncio.Future[OrderedCandidates] = asyncio.get_running_loop().create_future()
        self._failing_tests = asyncio.create_task(baseline.run_failing_tests())
        self._ordered = asyncio.create_task(self._order_by_failing_tests())

    async def _order_by_failing_tests(self) -> OrderedCandidates | None:
        spectrum = await self._failing_tests
        return await self._order(spectrum) if spectrum.target_tests else None

    async def _order(self, spectrum: Spectrum, hunks: Sequence[Hunk] = ()) -> OrderedCandidates:
        limits = self._limits
        return await order_candidates(
            spectrum,
            self._texts,
            hunks,
            seed=limits.seed,
            limit=min(limits.max_candidates, MAX_SINGLES),
            seconds=limits.max_seconds,
            factors=limits.operator_factors,
            on_early=self._set_early,
        )

    def _set_early(self, candidates: OrderedCandidates) -> None:
        if not self._early.done():
            self._early.set_result(candidates)

    async def early_candidates(self, hunks: Sequence[Hunk]) -> OrderedCandidates | None:
        """Return the likeliest changes of the most suspicious lines; `None` if all changes are ready.

        Args:
            hunks: What changed when the tests began to fail. Reverts of it are tried before everything else,
                so that there are no early candidates then.
        """
        if hunks:
            return None
        await asyncio.wait((self._ordered, self._early), return_when=asyncio.FIRST_COMPLETED)
        return None if self._ordered.done() else self._early.result()

    def is_ordered(self) -> bool:
        """Return whether all candidates that follow from the failing tests are ready."""
        return self._ordered.done()

    async def ordered_candidates(self, spectrum: Spectrum, hunks: Sequence[Hunk]) -> OrderedCandidates:
        """Return the candidates of a search.

        Args:
            spectrum: The result of a baseline run. The candidates for that of the failing tests exist
                already.
            hunks: What changed when the tests began to fail.
        """
        candidates = await self._ordered
        is_for_spectrum = spectrum is self._failing_tests.result() and not hunks
        if candidates is not None and is_for_spectrum:
            return candidates
        return await self._order(spectrum, hunks)

    async def run_failing_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_failing_tests`."""
        return await self._failing_tests

    async def run_all_tests(self) -> Spectrum:
        """Return the result of `BaselineRun.run_all_tests`."""
        return await self._baseline.run_all_tests()

    async def close(self) -> None:
        """Cancel the baseline run and the generation of candidates."""
        for task in (self._ordered, self._failing_tests):
            task.cancel()
        await asyncio.gather(self._ordered, self._failing_tests, return_exceptions=True)
        await self._baseline.close()


class TrialPool:
    """The two trial processes of a search.

    The first one collects the tests at once. The second one starts after that, because two processes beside the
    user's own run are enough, and because it finds the project's code compiled then.

    Args:
        command: A pytest command; it need not be collected.
        wall_s: Wall-clock seconds after which the processes are ended at the latest.
        paths: The project's Python files. Give them if `start` is called, because it is not known then which
            of them candidates will change.
    """

    def __init__(self, command: TestCommand, wall_s: float, paths: Sequence[str] = ()) -> None:
        self._command, self._wall_s, self._paths = command, wall_s, paths
        self._first_worker: TrialWorker | None = None
        self._prefetched: PrefetchedRun | None = None
        self._closing: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[CollectionReport | None] | None = None
        self._baseline: BaselineCandidates | None = None
        self.workers: tuple[TrialWorker, ...] = ()

    def start(self, *, run: bool = False) -> None:
        """Start to collect the tests in one process, in the background.

        Args:
            run: Whether the other process also runs all tests, beside the user's own run.
        """
        self._first_worker = TrialWorker(self._command, {}, self._paths, self._wall_s)
        self._collecting = asyncio.create_task(self._collect(self._first_worker))
        if run:
            worker = TrialWorker(self._command, {}, self._paths, self._wall_s)
            self._prefetched = PrefetchedRun(worker, self._wall_s)
            self._prefetched.begin(self._collecting)

    async def _collect(self, worker: TrialWorker) -> CollectionReport | None:
        await worker.start()
        return await worker.collect(trace=False, timeout_s=self._wall_s)

    def start_baseline(
        self,
        command: TestCommand,
        texts: Mapping[str, str],
        failing: Collection[str],
        user_outcomes: Mapping[str, str] | None,
        limits: SearchLimits,
    ) -> BaselineCandidates:
        """Start the baseline run in the background; a second call returns the first run.

        Args:
            command: The command, collected.
            texts: Path -> text of the files that may be changed.
            failing: Ids of the tests that fail in the user's run.
            user_outcomes: Id of a test -> its status in the user's run.
            limits: The limits of the search.
        """
        if self._baseline is None:
            paths = list(texts)
            first_worker = self._first_worker or TrialWorker(command, texts, paths, self._wall_s)
            prefetched = self._prefetched
            if prefetched is not None and not prefetched.is_usable((user_outcomes or {}).values()):
                self._closing = asyncio.create_task(prefetched.close())
                prefetched = None
            second_worker = (
                prefetched.worker if prefetched else TrialWorker(command, texts, paths, self._wall_s)
            )
            self.workers = (first_worker, second_worker)
            run = BaselineRun(
                self.workers,
                texts,
                failing,
                user_outcomes,
                LOCATE_SHARE * limits.max_seconds,
                suite_timeout_s=FULL_SUITE_SHARE * limits.max_seconds,
                collecting=self._collecting,
                prefetched=prefetched,
            )
            self._baseline = BaselineCandidates(run, texts, limits)
        return self._baseline

    async def close(self) -> None:
        """End the processes, whatever they do; safe to call twice."""
        if self._baseline is not None:
            await self._baseline.close()
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.gather(self._collecting, return_exceptions=True)
        if self._closing is not None:
            await asyncio.gather(self._closing, return_exceptions=True)
        if self._prefetched is not None:
            await self._prefetched.close()
        first = self._first_worker
        unused = () if first is None or first in self.workers else (first,)
        await asyncio.gather(*(worker.close() for worker in (*self.workers, *unused)))
