"""The trial processes of a search, which may be started before it is known whether there will be a search.

The first steps of the processes do not depend on the first run of the user's command, so both happen at the
same time. The processes start in the sandbox, import the project, collect its tests, and run all tests in their
order. As soon as the failing tests are known, they are run and traced, while triage examines them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import BaselineRun, PrefetchedRun
from suture.judge.trials.failing_project import FailingProject
from suture.judge.trials.process_reports import CollectionReport
from suture.judge.trials.trial_worker import TrialWorker
from suture.mutation import Mutant, generate_mutants
from suture.mutation.changes import FaultReporter
from suture.mutation.expected_values import ValueDifference
from suture.project.mixed_files import find_test_lines
from suture.search.engine.baseline_candidates import BaselineCandidates
from suture.search.search_records import SearchLimits
from suture.search.tuning import FULL_SUITE_SHARE, LOCATE_SHARE


def generate_python_changes(
    path: str,
    text: str,
    lines: Mapping[int, float],
    on_fault: FaultReporter | None = None,
    differences: Sequence[ValueDifference] = (),
) -> Iterator[Mutant]:
    """Yield the single changes of a Python file, as `candidate_order` needs them; none of tests beside code."""
    closed = find_test_lines(path, text)
    open_lines = {line: score for line, score in lines.items() if line not in closed} if closed else lines
    return generate_mutants(text, open_lines, on_fault=on_fault, differences=differences)


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

    def start_baseline(self, project: FailingProject, limits: SearchLimits) -> BaselineCandidates:
        """Start the baseline run in the background; a second call returns the first run.

        Args:
            project: The project; its command is collected.
            limits: The limits of the search.
        """
        if self._baseline is None:
            command, texts, statuses = project.command, project.texts, project.statuses()
            paths = list(texts)
            first_worker = self._first_worker or TrialWorker(command, texts, paths, self._wall_s)
            prefetched = self._prefetched
            if prefetched is not None and not prefetched.is_usable(statuses.values()):
                self._closing = asyncio.create_task(prefetched.close())
                prefetched = None
            second_worker = (
                prefetched.worker if prefetched else TrialWorker(command, texts, paths, self._wall_s)
            )
            self.workers = (first_worker, second_worker)
            run = BaselineRun(
                self.workers,
                texts,
                project.failing(),
                statuses or None,
                LOCATE_SHARE * limits.max_seconds,
                suite_timeout_s=FULL_SUITE_SHARE * limits.max_seconds,
                collecting=self._collecting,
                prefetched=prefetched,
            )
            self._baseline = BaselineCandidates(run, texts, limits, generate_python_changes, project.outcomes)
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
