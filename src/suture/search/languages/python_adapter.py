"""Python, parsed by `ast`, with trials in pytest processes that stay loaded."""

from __future__ import annotations

import ast
import asyncio
import random
import time
from collections.abc import Sequence

from suture.core.ledger.kinds import SearchEnding
from suture.judge.signs import collect_literals, find_tampering_warnings
from suture.judge.trials.baseline import trace_tests
from suture.judge.trials.candidate_runner import CandidateRunner, TrialReport
from suture.judge.trials.failing_project import FailingProject
from suture.judge.trials.trial_records import Proposal, Spectrum
from suture.judge.trials.trial_runner import TrialRunner
from suture.mutation import Edit
from suture.mutation.python.edit_locations import find_block_stops, find_location
from suture.mutation.syntax_repair import find_parsable_texts
from suture.mutation.syntax_repair.source_lines import find_python_stop
from suture.project.python_source.parsing import parse_module
from suture.search import tuning
from suture.search.engine.baseline_candidates import BaselineCandidates
from suture.search.languages.command_session import CommandSession
from suture.search.languages.language_adapter import LanguageAdapter, TrialSession
from suture.search.languages.trial_pool import TrialPool, generate_python_changes
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
    """Return an answer as people read it.

    An answer without an exception is the `repr` of `(result, arguments)`; only the result is shown.
    """
    if answer.startswith(EXCEPTION):
        return "no end in time" if answer == TIMED_OUT else f"raises {answer[1:]}"
    text = answer.removeprefix(NO_VISIBLE_EFFECT)
    try:
        return repr(ast.literal_eval(text)[0])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return text


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

    is_patient = True
    max_rivals = tuning.MIN_RIVALS

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> Sequence[TrialReport]:
        """Try candidates one after the other."""
        end_s = time.monotonic() + timeout_s
        reports: list[TrialReport] = []
        for proposal in proposals:
            remaining_s = end_s - time.monotonic()
            if (remaining_s > 0 or not reports) and self.usable:
                reports.append((proposal, await self.run_trial(proposal, remaining_s, extra_cpu_s)))
        return reports


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
    """Return pytest processes; for tests with services runs of the command, because a process would keep what a
    candidate wrote to them.
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
