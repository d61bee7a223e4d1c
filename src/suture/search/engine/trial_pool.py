"""The processes of a search, which may be made ready before it is known whether there will be one.

What they do first needs none of what the first run of the command says, so it is done beside that run: to
start behind the wall, to import the project, to collect its tests, to run them all in their order. Once the
failing tests are known they are run and traced while triage looks at them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import BaselineRun
from suture.judge.trials.prefetched_run import Ahead
from suture.judge.trials.process_reports import CollectionReport
from suture.judge.trials.trial_records import Spectrum
from suture.judge.trials.trial_worker import Worker
from suture.search.search_limits import SearchLimits
from suture.search.ordering.candidate_order import MOST_SINGLES, OrderedCandidates, order_candidates
from suture.search.ordering.reverts import Hunk

LOCATE_SHARE = 0.34
"""Of a search's seconds, the most that localisation may take."""
WHOLE_SHARE = 0.7
"""Of them, the most until all tests have run in their order: the other process tries candidates by then."""


class BaselineCandidates:
    """What is seen of the unchanged code, and the changes that follow from it, made in the background."""

    def __init__(self, looking: BaselineRun, texts: Mapping[str, str], limits: SearchLimits) -> None:
        self._looking, self._texts, self._limits = looking, texts, limits
        self._early: asyncio.Future[OrderedCandidates] = asyncio.get_running_loop().create_future()
        self._first = asyncio.create_task(looking.first())
        self._ordered = asyncio.create_task(self._order_first())

    async def _order_first(self) -> OrderedCandidates | None:
        spectrum = await self._first
        return await self._order(spectrum) if spectrum.guiding else None

    async def _order(self, spectrum: Spectrum, hunks: Sequence[Hunk] = ()) -> OrderedCandidates:
        limits = self._limits
        return await order_candidates(
            spectrum,
            self._texts,
            hunks,
            seed=limits.seed,
            most=min(limits.max_candidates, MOST_SINGLES),
            seconds=limits.max_seconds,
            factors=limits.operator_factors,
            early=self._tell_early,
        )

    def _tell_early(self, made: OrderedCandidates) -> None:
        if not self._early.done():
            self._early.set_result(made)

    async def early(self, hunks: Sequence[Hunk]) -> OrderedCandidates | None:
        """The likeliest changes of the most suspicious lines, where all are not made yet.

        Args:
            hunks: What changed when the tests began to fail: that is to be tried before all others.
        """
        if hunks:
            return None
        await asyncio.wait((self._ordered, self._early), return_when=asyncio.FIRST_COMPLETED)
        return None if self._ordered.done() else self._early.result()

    def is_ordered(self) -> bool:
        """Whether all changes of the first look are made."""
        return self._ordered.done()

    async def ordered(self, spectrum: Spectrum, hunks: Sequence[Hunk]) -> OrderedCandidates:
        """Changes to try.

        Args:
            spectrum: What was seen; those of the first look are made already.
            hunks: What changed when the tests began to fail.
        """
        made = await self._ordered
        is_first = spectrum is self._first.result() and not hunks
        return made if made is not None and is_first else await self._order(spectrum, hunks)

    async def first(self) -> Spectrum:
        """See `Looking.first`."""
        return await self._first

    async def whole(self) -> Spectrum:
        """See `Looking.whole`."""
        return await self._looking.whole()

    async def close(self) -> None:
        """Look no more."""
        for task in (self._ordered, self._first):
            task.cancel()
        await asyncio.gather(self._ordered, self._first, return_exceptions=True)
        await self._looking.close()


class TrialPool:
    """Two processes: one collects as soon as it may, the other once code is compiled.

    Args:
        command: A pytest command; it need not be collected.
        wall_s: Wall-clock seconds that the processes live at most.
        paths: The project's Python files, where what candidates change is not known yet.
    """

    def __init__(self, command: TestCommand, wall_s: float, paths: Sequence[str] = ()) -> None:
        self._command, self._wall_s, self._paths = command, wall_s, paths
        self._near: Worker | None = None
        self._ahead: Ahead | None = None
        self._ending: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[CollectionReport | None] | None = None
        self._looked: BaselineCandidates | None = None
        self.workers: tuple[Worker, ...] = ()

    def start(self, *, run: bool = False) -> None:
        """Collect the tests in one process, with nobody waiting for it.

        Args:
            run: Whether they are run in the other one as well, which then runs beside the user's own run.
        """
        self._near = Worker(self._command, {}, self._paths, self._wall_s)
        self._collecting = asyncio.create_task(self._collect(self._near))
        if run:
            self._ahead = Ahead(Worker(self._command, {}, self._paths, self._wall_s), self._wall_s)
            self._ahead.begin(self._collecting)

    async def _collect(self, worker: Worker) -> CollectionReport | None:
        await worker.start()
        return await worker.collect(trace=False, seconds=self._wall_s)

    def start_baseline(
        self,
        command: TestCommand,
        texts: Mapping[str, str],
        failing: Collection[str],
        baseline: Mapping[str, str] | None,
        limits: SearchLimits,
    ) -> BaselineCandidates:
        """Look at the unchanged code; once only, and in the background.

        Args:
            command: The command, collected.
            texts: Path -> text of the files that may change.
            failing: Ids of tests that fail in the user's run.
            baseline: Id -> how it ended in the user's run.
            limits: What the search may use.
        """
        if self._looked is None:
            files = list(texts)
            near = self._near or Worker(command, texts, files, self._wall_s)
            ahead = self._ahead
            if ahead is not None and not ahead.is_of_use((baseline or {}).values()):
                self._ending = asyncio.create_task(ahead.close())
                ahead = None
            far = Worker(command, texts, files, self._wall_s) if ahead is None else ahead.worker
            self.workers = (near, far)
            looking = BaselineRun(
                self.workers,
                texts,
                failing,
                baseline,
                LOCATE_SHARE * limits.max_seconds,
                whole_s=WHOLE_SHARE * limits.max_seconds,
                collecting=self._collecting,
                ahead=ahead,
            )
            self._looked = BaselineCandidates(looking, texts, limits)
        return self._looked

    async def close(self) -> None:
        """End the processes, whatever they do; safe to call twice."""
        if self._looked is not None:
            await self._looked.close()
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.gather(self._collecting, return_exceptions=True)
        if self._ending is not None:
            await asyncio.gather(self._ending, return_exceptions=True)
        if self._ahead is not None:
            await self._ahead.close()
        near = () if self._near is None or self._near in self.workers else (self._near,)
        await asyncio.gather(*(worker.close() for worker in (*self.workers, *near)))
