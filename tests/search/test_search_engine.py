"""The policies of the search engine, which are the same in each language: turns, rivals, endings, fallbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from failing_projects import make_failing_project
from suture.core.ledger.kinds import SearchEnding
from suture.core.records import CheckOutcome, Language
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.command_trials import CandidateRunner, TrialReport
from suture.judge.trials.trial_records import Proposal, Spectrum, TestRun, Trial
from suture.mutation import Edit, apply_edits
from suture.search import (
    FailingProject,
    SearchLimits,
    SearchProgress,
    SearchResult,
    find_repairs,
    listen_to_search,
)
from suture.search.engine.search_schedule import SearchClock, Turns
from suture.search.languages.language_adapter import TrialSession
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ordering.candidate_order import BaselineCandidates
from suture.search.ranking.rivals import RivalQueue

LANGUAGES: list[Language] = ["python", "javascript"]
PATHS = {"python": "a.py", "javascript": "a.js"}
CODE = {
    "python": "def f(a, b):\n    a = a - b\n    return a * 2 < b\n",
    "javascript": "function f(a, b) {\n  a = a - b;\n  return a * 2 < b;\n}\nmodule.exports = { f };\n",
}
TARGETS = ("t::one", "t::two")
FixedTests = Callable[[str], int]
"""Takes the text of a candidate, and returns how many of the two target tests pass with it."""


class ScriptedRunner(CandidateRunner):
    """Judges candidates by their text.

    Attributes:
        tried: The texts in the order in which they were tried.
    """

    max_rivals = 5

    def __init__(self, code: str, fixed_tests: FixedTests, size: int = 1, *, is_lost: bool = False) -> None:
        self.tried: list[str] = []
        self.notes = []
        self._code, self._fixed_tests, self._size, self.is_lost = code, fixed_tests, size, is_lost

    @property
    def usable(self) -> bool:
        return not (self.is_lost and self.tried)

    @property
    def batch_size(self) -> int:
        return self._size

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        await asyncio.sleep(0)
        reports: list[TrialReport] = []
        for proposal in proposals:
            text = apply_edits(self._code, proposal.edits)
            self.tried.append(text)
            fixed = self._fixed_tests(text)
            trial = Trial(
                passing=fixed,
                failing=2 - fixed,
                broken=0,
                is_plausible=fixed == 2,
                timed_out=False,
                now_passing=frozenset(TARGETS[:fixed]),
            )
            reports.append((proposal, trial))
        return [] if self.is_lost else reports


class ScriptedSession(TrialSession):
    """A session in which both tests fail and run all lines."""

    def __init__(self, project: FailingProject, limits: SearchLimits, *runners: ScriptedRunner) -> None:
        self._project, self._limits, self._runners = project, limits, runners

    def start(self) -> BaselineCandidates:
        adapter = get_adapter(self._project.language)
        return BaselineCandidates(self, self._project.texts, self._limits, adapter.generate_mutants)

    async def run_failing_tests(self) -> Spectrum:
        lines = {path: frozenset(range(1, 5)) for path in self._project.texts}
        runs = tuple(TestRun(id=name, outcome="failed", seconds=0.0, lines=lines) for name in TARGETS)
        return Spectrum(tests=runs, collected=TARGETS, target_tests=TARGETS)

    run_all_tests = run_failing_tests

    async def start_runners(
        self, spectrum: Spectrum, full_spectrum: asyncio.Task[Spectrum]
    ) -> Sequence[CandidateRunner]:
        return self._runners[:1]

    async def start_fallback(self) -> Sequence[CandidateRunner] | None:
        first, *others = self._runners
        return others if first.is_lost else None

    def explain_no_runner(self, spectrum: Spectrum) -> SearchEnding:
        return "no_failing_test"

    async def close(self) -> None:
        pass


class Command:
    """A command without test files, none of which these trials need."""

    test_files: tuple[str, ...] = ()


async def search(language: Language, *runners: ScriptedRunner, **limits: Any) -> SearchResult:
    code, failed = CODE[language], CheckOutcome(check_id="t::one", status="failed")
    command = cast(TestCommand, Command())
    project = make_failing_project(
        command, {"t": b"4711"}, {PATHS[language]: code}, failed, language=language
    )
    chosen = SearchLimits(**{"max_seconds": 60.0, **limits})
    return await find_repairs(project, chosen, session=ScriptedSession(project, chosen, *runners))


def fixes_all(*fragments: str) -> FixedTests:
    """Return a script in which both tests pass with a text that has all fragments."""
    return lambda text: 2 if all(fragment in text for fragment in fragments) else 0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", [1, 40])
async def test_rivals_of_a_repair_are_tried_before_all_other_changes(language: Language, size: int) -> None:
    runner = ScriptedRunner(CODE[language], fixes_all("a = a + b"), size)

    await search(language, runner)

    first = next(number for number, text in enumerate(runner.tried) if "a = a + b" in text)
    batch_end = (first // size + 1) * size
    following = runner.tried[batch_end : batch_end + 3]
    assert all("a * 2 < b" in text for text in following)  # the other statement is unchanged


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", [1, 40])
async def test_a_partial_repair_is_extended_by_a_second_change(language: Language, size: int) -> None:
    def fixed_tests(text: str) -> int:
        return ("a + b" in text) * (1 + ("<=" in text))

    result = await search(language, ScriptedRunner(CODE[language], fixed_tests, size))

    assert result.plausible
    assert all(fixed_tests(apply_edits(CODE[language], p.edits)) == 2 for p in result.plausible)
    assert any("a + b" in apply_edits(CODE[language], p.edits) for p, _ in result.partial)


class ScreeningRunner(ScriptedRunner):
    """Settles only candidates that fail, unless it tries one alone."""

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        reports = await super().run_batch(proposals, timeout_s, extra_cpu_s)
        return [
            (proposal, replace(trial, is_plausible=False, is_unsettled=True))
            if trial is not None and trial.passing and len(proposals) > 1
            else (proposal, trial)
            for proposal, trial in reports
        ]


async def test_a_candidate_that_a_batch_does_not_settle_is_tried_next_and_alone() -> None:
    runner = ScreeningRunner(CODE["python"], fixes_all("a = a + b"), size=8)

    result = await search("python", runner)

    assert result.plausible
    repaired = apply_edits(CODE["python"], result.plausible[0].edits)
    first, second = (number for number, text in enumerate(runner.tried) if text == repaired)
    assert first < second <= first + 16
    assert result.tried_count == len(set(runner.tried))


class BreakingRunner(ScriptedRunner):
    """Finds that each candidate which passes the target tests breaks another test, or is killed before the others."""

    is_killed = False

    async def run_batch(
        self, proposals: Sequence[Proposal], timeout_s: float, extra_cpu_s: float = 0.0
    ) -> list[TrialReport]:
        reports = await super().run_batch(proposals, timeout_s, extra_cpu_s)
        broken_test = "" if self.is_killed else "t::other"
        return [
            (
                proposal,
                replace(
                    trial, is_plausible=False, broken=1, timed_out=self.is_killed, broken_test=broken_test
                ),
            )
            if trial is not None and trial.is_plausible
            else (proposal, trial)
            for proposal, trial in reports
        ]


async def test_an_edit_that_breaks_another_test_is_a_near_miss_and_not_a_repair() -> None:
    heard: list[SearchProgress] = []
    with listen_to_search(heard.append):
        result = await search("python", BreakingRunner(CODE["python"], fixes_all("a = a + b")))

    assert not result.plausible
    assert {trial.broken_test for _, trial in result.near_misses} == {"t::other"}
    assert (heard[-1].best, heard[-1].targets, heard[-1].breaks_another) == (2, 2, True)
    assert heard[-1].tried == result.tried_count


async def test_an_edit_whose_trial_was_killed_is_no_near_miss() -> None:
    runner = BreakingRunner(CODE["python"], fixes_all("a = a + b"))
    runner.is_killed = True
    result = await search("python", runner)

    assert not result.plausible
    assert not result.near_misses


def test_progress_prefers_an_edit_that_breaks_nothing_to_one_that_breaks_a_test() -> None:
    breaking = Trial(passing=2, failing=0, broken=1, is_plausible=False, timed_out=False)
    clean = replace(breaking, broken=0, is_plausible=True)

    progress = SearchProgress().after_trial(breaking).after_trial(clean).after_trial(breaking)

    assert progress == SearchProgress(tried=3, best=2, targets=2, breaks_another=False)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_search_ends_at_its_limit_of_candidates(language: Language) -> None:
    runner = ScriptedRunner(CODE[language], fixes_all("no such text"), size=16)

    result = await search(language, runner, max_candidates=20)

    assert (result.ending, result.tried_count, len(runner.tried)) == ("candidate_limit", 20, 20)


async def test_trials_that_can_run_no_test_are_replaced_by_slower_ones() -> None:
    code = CODE["javascript"]
    lost = ScriptedRunner(code, fixes_all("a + b"), size=8, is_lost=True)
    slower = ScriptedRunner(code, fixes_all("a + b"))

    result = await search("javascript", lost, slower)

    assert len(lost.tried) == 8
    assert {*lost.tried} <= {*slower.tried}  # none of the lost candidates is left out
    assert result.plausible


async def test_trials_that_can_run_no_test_end_the_search_if_nothing_replaces_them() -> None:
    lost = ScriptedRunner(CODE["javascript"], fixes_all("a + b"), size=8, is_lost=True)

    result = await search("javascript", lost)

    assert (result.ending, result.tried_count) == ("no_failing_test", 0)


async def test_no_text_is_tried_twice() -> None:
    runner = ScriptedRunner(CODE["python"], fixes_all("no such text"))

    result = await search("python", runner, max_candidates=400)

    assert len(set(runner.tried)) == len(runner.tried) == result.tried_count


async def test_compound_changes_that_are_ready_late_are_known_to_wait() -> None:
    texts = {"a.py": CODE["python"]}
    lines = {"a.py": frozenset(range(1, 4))}
    tests = tuple(TestRun(id=name, outcome="failed", seconds=0.0, lines=lines) for name in TARGETS)
    result = SearchResult(texts=texts)
    result.spectrum = Spectrum(tests=tests, collected=TARGETS, target_tests=TARGETS)
    limits = SearchLimits(max_seconds=60.0)
    clock = SearchClock(limits, result, RivalQueue(lambda path, text, edits: None))
    turns = Turns(result, clock, compound_after=0)
    edits = (Edit(start=len("def f(a, b):\n    a = a "), end=len("def f(a, b):\n    a = a -"), text="+"),)
    partial = Proposal(path="a.py", edits=edits, label="first", score=1.0, operators=())
    trial = Trial(
        passing=1,
        failing=1,
        broken=0,
        is_plausible=False,
        timed_out=False,
        now_passing=frozenset(TARGETS[:1]),
    )

    async def trace_lines(proposal: Proposal) -> Any:
        return {}

    async def extend_start(start: Proposal, *_: Any) -> list[Proposal]:
        return [replace(start, label="first; second")]

    assert turns.record(partial, trial)
    assert turns.start_extending(trace_lines, extend_start)
    await turns.wait_until_extended()
    assert not turns.start_extending(trace_lines, extend_start, singles_are_over=True)
    assert turns.has_compounds  # the search goes on because of this
    assert [proposal.label for proposal in turns.interleave(iter(()))] == ["first; second"]
    assert not turns.has_compounds
