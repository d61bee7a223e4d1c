"""Try mutants of a change in a process that has collected the tests: its functions get the mutated code in place."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from suture.judge.trials.changed_code import ChangedCode
from suture.judge.trials.process_reports import AttemptReport, TestReport
from suture.judge.trials.trial_records import Proposal
from suture.judge.tuning import MIN_MUTANT_CPU_S, MUTANT_TIMEOUT_FACTOR
from suture.mutation import Edit
from suture.mutation.edits import encode_source, trim_edit
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.scopes import FUNCTIONS


@dataclass(frozen=True, kw_only=True)
class _TestRuns:
    """Some tests that pass on the change, and what they took.

    Attributes:
        tests: Their ids, in the order of the run.
        limits: Test -> its limits, as for `TrialWorker.set_limits`.
        wall_s: Wall-clock seconds of all of them.
    """

    tests: tuple[str, ...] = ()
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    wall_s: float = 0.0


class MutantTrials:
    """Tries mutants of a change.

    Some mutants have no answer here. The import of a file would have to run again for those that are not inside a
    function, and for those of a function that the import itself calls. Others end the process.

    Args:
        code: The changed code.
        first_tests: Ids of the tests that run first.
        all_tests: Ids of the tests one of which must fail with a mutant that is noticed, with those that run first;
            `None` if other checks may notice it, too.
        timeout_s: Wall-clock seconds of the tests on one mutant.
    """

    def __init__(
        self,
        code: ChangedCode,
        first_tests: Collection[str],
        all_tests: Collection[str] | None,
        timeout_s: float,
    ) -> None:
        self._code, self._timeout_s = code, timeout_s
        self._chosen_first, self._chosen_all = frozenset(first_tests), all_tests
        self._first: _TestRuns | None = None
        self._all: _TestRuns | None = None
        self._lock = asyncio.Lock()
        self._is_trusted = True

    async def find_noticed(self, mutants: Sequence[Mapping[str, str]]) -> list[bool | None]:
        """Return for each mutant whether a test notices it; `None` if that is not known.

        The tests that notice one must pass on the change afterwards, because a mutant may leave changed files.
        """
        noticing: set[str] = set()
        answers = await asyncio.gather(*(self._find_noticed(mutant, noticing) for mutant in mutants))
        if noticing and not await self._pass_unchanged(noticing):
            self._is_trusted = False
            return [None] * len(mutants)
        return answers

    async def _find_noticed(self, mutant: Mapping[str, str], noticing: set[str]) -> bool | None:
        proposal = await self._make_proposal(mutant) if self._is_trusted else None
        if proposal is None:
            return None
        tried: tuple[str, ...] = ()
        for get_runs in (self._get_first, self._get_all):
            runs = await get_runs()
            if not runs.tests or runs.tests == tried:
                continue
            tried = runs.tests
            report = await self._attempt(proposal, runs)
            # Equal code counts as failing there, with no failure.
            if report is None or report.unsupported or (report.outcomes == "f" and not report.failures):
                return None
            passing = len(report.outcomes) - len(report.outcomes.lstrip("P"))
            if passing < max(len(runs.tests), len(report.outcomes)):
                noticing.add(runs.tests[min(passing, len(runs.tests) - 1)])
                return True
        return False if (await self._get_all()).tests else None

    async def _make_proposal(self, mutant: Mapping[str, str]) -> Proposal | None:
        """Return a mutant as a candidate for a trial; `None` if it cannot be put into a process."""
        (path, text), *others = mutant.items()
        source = self._code.texts.get(path)
        if others or source is None or source == text:
            return None
        raw = encode_source(source)
        edit = trim_edit(Edit(start=0, end=len(raw), text=text), raw)
        body = _find_function_body(
            source, raw.count(b"\n", 0, edit.start) + 1, raw.count(b"\n", 0, edit.end) + 1
        )
        if body is None or not (await self._code.find_import_lines(path)).isdisjoint(body):
            return None
        return Proposal(path=path, edits=(edit,), label="", score=1.0, operators=())

    async def _attempt(self, proposal: Proposal | None, runs: _TestRuns) -> AttemptReport | None:
        return await self._code.attempt(
            proposal, runs.tests, runs.limits, timeout_s=self._timeout_s, expected_s=runs.wall_s
        )

    async def _pass_unchanged(self, tests: Collection[str]) -> bool:
        limits = {**(await self._get_first()).limits, **(await self._get_all()).limits}
        chosen = await self._code.select(tests)
        runs = _TestRuns(tests=tuple(chosen), limits=limits)
        report = await self._attempt(None, runs)
        return report is not None and report.finished and report.outcomes == "P" * len(chosen)

    async def _get_first(self) -> _TestRuns:
        """Return those of the tests that run first which pass without the others."""
        async with self._lock:
            if self._first is None:
                self._first = await self._run(self._chosen_first)
            return self._first

    async def _get_all(self) -> _TestRuns:
        """Return all tests; none if one of them does not pass here."""
        if self._chosen_all is None:
            return _TestRuns()
        async with self._lock:
            if self._all is None:
                is_first = self._chosen_all == self._chosen_first and self._first is not None
                runs = self._first if is_first else await self._run(self._chosen_all)
                self._all = runs if runs and len(runs.tests) == len(self._chosen_all) else _TestRuns()
            return self._all

    async def _run(self, tests: Collection[str]) -> _TestRuns:
        reports = await self._code.run(await self._code.select(tests), self._timeout_s)
        passing = {test: report for test, report in reports.items() if report.outcome == "passed"}
        return _TestRuns(
            tests=tuple(passing),
            limits={test: _get_limits(report) for test, report in passing.items()},
            wall_s=sum(report.wall_s for report in passing.values()),
        )


def _get_limits(report: TestReport) -> tuple[float, float]:
    limit_s = max(MIN_MUTANT_CPU_S, MUTANT_TIMEOUT_FACTOR * report.seconds)
    return limit_s, limit_s


def _find_function_body(source: str, first: int, last: int) -> range | None:
    """Return the lines of the body of the innermost function around some lines; `None` if there is none."""
    tree = parse_module(source)
    bodies = [
        range(first_line(node.body[0]), (node.end_lineno or node.lineno) + 1)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, FUNCTIONS)
    ]
    around = [body for body in bodies if first in body and last in body]
    return max(around, key=lambda body: body.start, default=None)
