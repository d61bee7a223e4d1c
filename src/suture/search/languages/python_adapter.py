"""Python, parsed by `ast`, with trials in pytest processes that stay loaded.

The trial processes of a search, which may be started before it is known whether there will be a search.

The first steps of the processes do not depend on the first run of the user's command, so both happen at the
same time. The processes start in the sandbox, import the project, collect its tests, and run all tests in their
order. As soon as the failing tests are known, they are run and traced, while triage examines them.
"""

from __future__ import annotations

import ast
import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence

from suture.core.ledger.kinds import SearchEnding
from suture.judge.runners.test_command import TestCommand
from suture.judge.signs import collect_literals, find_tampering_warnings
from suture.judge.trials.baseline import BaselineRun, PrefetchedRun, trace_tests
from suture.judge.trials.command_trials import CandidateRunner
from suture.judge.trials.process_reports import CollectionReport
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.judge.trials.trial_runner import TrialRunner
from suture.judge.trials.trial_worker import TrialWorker
from suture.mutation import Edit, Mutant, generate_mutants
from suture.mutation.changes import FaultReporter
from suture.mutation.python.edit_locations import find_block_stops, find_location
from suture.mutation.syntax_repair import find_parsable_texts
from suture.mutation.syntax_repair.source_lines import find_python_stop
from suture.project.mixed_files import find_test_lines
from suture.project.python_source.parsing import parse_module
from suture.search import tuning
from suture.search.languages.language_adapter import CommandSession, LanguageAdapter, TrialSession
from suture.search.ordering.candidate_order import NOTHING_OBSERVED, BaselineCandidates, ObservedValues
from suture.search.ranking.call_outcomes import (
    EXCEPTION,
    NO_VISIBLE_EFFECT,
    TIMED_OUT,
    CallOutcomes,
    RepairAnswers,
    collect_outcomes,
    count_broken_examples,
    find_doctest_calls,
    generate_calls,
)
from suture.search.ranking.expression_distance import count_redundant_operations, measure_distance
from suture.search.search_records import SearchLimits, SearchResult
from suture.search.tuning import FULL_SUITE_SHARE, LOCATE_SHARE


def generate_python_changes(
    path: str,
    text: str,
    lines: Mapping[int, float],
    on_fault: FaultReporter | None = None,
    observed: ObservedValues = NOTHING_OBSERVED,
) -> Iterator[Mutant]:
    """Yield the mutants of a Python file, except on lines of tests in the same file."""
    test_lines = find_test_lines(path, text)
    code_lines = {line: score for line, score in lines.items() if line not in test_lines}
    return generate_mutants(
        text,
        code_lines,
        on_fault=on_fault,
        differences=observed.differences,
        kinds=observed.kinds.get(path, {}),
    )


class TrialPool:
    """The two trial processes of a search.

    The first one collects the tests at once. The second one starts after that, because two processes in addition to the
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

    def start(self, *, prefetch: bool = False) -> None:
        """Start to collect the tests in one process, in the background.

        Args:
            prefetch: Whether the other process also runs all tests, in parallel with the user's own run.
        """
        self._first_worker = TrialWorker(self._command, {}, self._paths, self._wall_s)
        self._collecting = asyncio.create_task(self._collect(self._first_worker))
        if prefetch:
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


async def _answer_calls(
    result: SearchResult, proposals: Sequence[Proposal], project: FailingProject, seed: int, seconds: float
) -> RepairAnswers:
    """Run calls with arguments near those of the tests, and the examples of docstrings."""
    calls = generate_calls(result.spectrum, proposals, result.texts, random.Random(seed))
    paths = dict.fromkeys(proposal.path for proposal in proposals)
    examples = find_doctest_calls({path: result.texts[path] for path in paths})
    all_calls = [*calls, *(call for call, _ in examples)]
    outcomes, unchanged = [CallOutcomes() for _ in proposals], list[str]()
    if all_calls and len(proposals) > 1:
        outcomes, unchanged = await collect_outcomes(
            proposals, all_calls, result.texts, project.command, seconds
        )
    broken = [count_broken_examples(outcome.answers, examples, len(calls)) for outcome in outcomes]
    return RepairAnswers(calls=all_calls, outcomes=outcomes, broken_examples=broken, unchanged=unchanged)


def _render_answer(answer: str) -> str:
    """Return an answer in a form for people.

    An answer without an exception is the `repr` of `(result, arguments)`; only the result is shown.
    """
    if answer.startswith(EXCEPTION):
        return "no end in time" if answer == TIMED_OUT else f"raises {answer[1:]}"
    text = answer.removeprefix(NO_VISIBLE_EFFECT)
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # some object's `repr` is no expression
        return text
    result = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node
    return ast.get_source_segment(text, result) or text


def _distance_factor(before: str, edits: Sequence[Edit], after: str) -> float:
    """Return the factor on a score: lower for a change far from the original, or with redundant operations."""
    added = count_redundant_operations(after) - count_redundant_operations(before)
    redundancy_factor = tuning.REDUNDANT_OPERATION_FACTOR ** max(0, added)
    return (1 - tuning.DISTANCE_PENALTY * measure_distance(before, edits, ())) * redundancy_factor


def _node_count(text: str) -> int:
    tree = parse_module(text)
    return sum(1 for _ in ast.walk(tree)) if tree is not None else 0


class PythonRunner(TrialRunner, CandidateRunner):
    """Tries candidates in one pytest process that stays loaded."""

    can_extend_timeouts = True
    max_rivals = tuning.MIN_RIVALS


class PythonSession(TrialSession):
    """Two pytest processes: one runs the failing tests, the other one all tests, and then both try candidates."""

    def __init__(self, project: FailingProject, limits: SearchLimits, pool: TrialPool | None = None) -> None:
        self._project, self._limits = project, limits
        wall_s = limits.max_seconds + limits.reserve_s + tuning.PROCESS_SPARE_S
        self._pool = pool or TrialPool(project.command, wall_s)

    def start(self) -> BaselineCandidates:
        """Start the baseline run and the generation of candidates, unless the pool has started them."""
        return self._pool.start_baseline(self._project, self._limits)

    async def start_runners(
        self, spectrum: Spectrum, full_spectrum: asyncio.Task[Spectrum]
    ) -> Sequence[CandidateRunner]:
        """Return a runner for each process; none if no failing test is a target."""
        if not spectrum.target_tests:
            return ()
        return [
            PythonRunner(worker, spectrum, self._project.texts, full_spectrum)
            for worker in self._pool.workers
        ]

    def explain_no_runner(self, spectrum: Spectrum) -> SearchEnding:
        """Return why no failing test of the user's run can be used as a target."""
        disagreements = [test for test in spectrum.disagreements if test.run not in ("passed", "skipped")]
        if not disagreements:
            not_run = spectrum.failing_in_suite - {test.id for test in spectrum.tests}
            return "targets_not_reached" if not_run else "no_failing_test"
        pass_alone = all(test.only_in_isolation for test in disagreements)
        return "targets_pass_alone" if pass_alone else "trials_disagree"

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()


class TracedBaseline:
    """One traced run of the unchanged code, which shows the lines that the failing tests run; see `Baseline`."""

    def __init__(self, project: FailingProject, timeout_s: float) -> None:
        self._tracing = asyncio.create_task(
            trace_tests(project.command, project.texts, project.failing(), timeout_s)
        )

    async def run_failing_tests(self) -> Spectrum:
        """Return what the run showed."""
        return await self._tracing

    async def run_all_tests(self) -> Spectrum:
        """Return the same, because the outcomes of all tests are known from the user's command."""
        return await self._tracing

    async def close(self) -> None:
        """Cancel the run."""
        self._tracing.cancel()
        await asyncio.gather(self._tracing, return_exceptions=True)


def _open_session(project: FailingProject, limits: SearchLimits) -> TrialSession:
    """Return a session of pytest processes.

    Tests that use services run by the command instead: a process would keep what a candidate wrote to a service.
    """
    if not project.command.has_services:
        return PythonSession(project, limits)
    baseline = TracedBaseline(project, tuning.LOCATE_SHARE * limits.max_seconds)
    return CommandSession(project, limits, baseline, generate_python_changes)


PYTHON = LanguageAdapter(
    generate_mutants=generate_python_changes,
    find_location=lambda path, text, edits: find_location(text, edits),
    find_block_stops=lambda path, text, start: [(stop,) for stop in find_block_stops(text, start)],
    collect_literals=lambda tests: collect_literals(tests.values()),
    find_warnings=lambda path, before, after, literals: find_tampering_warnings(before, after, literals),
    open_session=_open_session,
    parses=lambda path, text: find_python_stop(text.replace("\r\n", "\n")) is None,
    find_parsable_texts=lambda project, path, line, seconds: find_parsable_texts(
        project.texts[path], seconds=seconds
    ),
    answer_calls=_answer_calls,
    render_answer=_render_answer,
    distance_factor=_distance_factor,
    are_equal=lambda text, left, right: measure_distance(text, left, right) == 0,
    is_shorter=lambda text, other: _node_count(text) < _node_count(other),
)
