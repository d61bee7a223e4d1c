"""The search for a repair of a Python project: mutants of suspicious lines, tried in order of likelihood.

Single changes are tried first. Later they take turns with compound changes, which extend partial repairs.
A candidate that passes all tests here is only *plausible*: `search.ranking` ranks it, and the trusted suite
judges it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from suture.core.ledger.kinds import SearchEnding
from suture.core.records import content_hash
from suture.judge.runners.test_command import TestCommand
from suture.judge.signs import TamperingWarning, collect_literals, find_tampering_warnings
from suture.judge.trials.trial_records import Proposal, Spectrum, Trial
from suture.judge.trials.trial_runner import TrialRunner, run_until_all_end
from suture.mutation import apply_edits
from suture.search import tuning
from suture.search.engine.search_schedule import SearchClock, Turns
from suture.search.engine.trial_pool import BaselineCandidates, TrialPool
from suture.search.ordering.reverts import Hunk
from suture.search.ranking.rivals import RivalQueue, count_idle_blocks
from suture.search.search_records import SearchLimits, SearchResult


async def search_python(
    command: TestCommand,
    texts: Mapping[str, str],
    failing: Iterable[str],
    limits: SearchLimits,
    tests: Iterable[str] = (),
    hunks: Sequence[Hunk] = (),
    user_outcomes: Mapping[str, str] | None = None,
    pool: TrialPool | None = None,
) -> SearchResult:
    """Search for changes with which all tests pass.

    Args:
        command: The project's pytest command, collected.
        texts: Path -> text of the files that may be changed.
        failing: Ids of the tests that fail.
        limits: The limits of the search.
        tests: Sources of the tests: a repair that mentions their literals does not end the search.
        hunks: What changed when the tests began to fail: it is reverted first, and suspected most.
        user_outcomes: Id of a test -> its status in the user's run of the unchanged code, with which trials are
            compared.
        pool: Trial processes that were started for this search; they end with it.

    Raises:
        SandboxError: The sandbox failed.
    """
    search = PythonSearch(command, texts, limits, collect_literals(tests), hunks, pool)
    try:
        return await search.run(frozenset(failing), user_outcomes)
    finally:
        await search.close()


class PythonSearch:
    """One search. Two trial processes, each behind a `TrialRunner`, take candidates from the same queues."""

    def __init__(
        self,
        command: TestCommand,
        texts: Mapping[str, str],
        limits: SearchLimits,
        literals: frozenset[str],
        hunks: Sequence[Hunk] = (),
        pool: TrialPool | None = None,
    ) -> None:
        self._command, self._limits, self._literals, self._hunks = command, limits, literals, hunks
        wall_s = limits.max_seconds + limits.reserve_s + tuning.PROCESS_SPARE_S
        self._pool = pool or TrialPool(command, wall_s)
        self.result = SearchResult(texts=texts)
        self._rivals = RivalQueue()
        self._clock = SearchClock(limits, self.result, self._rivals)
        self._turns = Turns(limits, self.result, self._clock)
        self._candidates: BaselineCandidates
        self._runners: list[TrialRunner] = []
        self._all_tests: asyncio.Task[Spectrum] | None = None
        self._text_hashes: set[str] = set()
        # A candidate can pass the failing tests before the baseline run of all tests has ended. Its trial
        # stays unfinished until then: it waits in `_pending` to be tried again, and is in `_passed` until that
        # second trial has ended.
        self._pending: list[Proposal] = []
        self._passed: list[Proposal] = []
        self._timed_out: list[tuple[Proposal, Trial]] = []
        self._has_been_patient = False
        self._is_exhausted = False
        self._has_lost_workers = False

    async def close(self) -> None:
        """End the processes of the search."""
        if self._all_tests is not None:
            self._all_tests.cancel()
            await asyncio.gather(self._all_tests, return_exceptions=True)
        await self._turns.close()
        await self._pool.close()

    async def run(
        self, failing: frozenset[str], user_outcomes: Mapping[str, str] | None = None
    ) -> SearchResult:
        """Run the search.

        Args:
            user_outcomes: Id of a test -> its status in the user's run of the unchanged code.
        """
        result, limits = self.result, self._limits
        self._candidates = self._pool.start_baseline(
            self._command, result.texts, failing, user_outcomes, limits
        )
        result.spectrum = await self._candidates.run_failing_tests()
        result.localisation_s = self._clock.now_s()
        self._all_tests = asyncio.create_task(self._candidates.run_all_tests())
        if not result.spectrum.target_tests:
            result.spectrum = await self._all_tests
        if not result.spectrum.target_tests:
            result.ending = explain_missing_targets(result.spectrum)
        else:
            # The search ends by itself. The timeout is for a process that does not answer.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._remaining_s() + tuning.GRACE_S)):
                    await self._search()
            self._conclude()
            exhausted: SearchEnding = "workers_lost" if self._has_lost_workers else "all_tried"
            result.ending = self._find_ending() or exhausted
        result.seconds = self._clock.now_s()
        return result

    async def _search(self) -> None:
        """Try the early candidates, then all single changes, then compound changes until there are no more."""
        result, all_tests = self.result, self._all_tests
        assert all_tests is not None
        self._runners = [
            TrialRunner(worker, result.spectrum, result.texts, all_tests) for worker in self._pool.workers
        ]
        # Single changes come in two batches: the likeliest of the most suspicious lines while all changes are still
        # being generated, then all of them in their final order.
        early = await self._candidates.early_candidates(self._hunks)
        if early is not None:
            result.suspect_lines, result.generation_s = early.suspect_lines, self._clock.now_s()
            self._rivals.set_changes(early.singles)
            is_ordered = self._candidates.is_ordered
            await self._try(self._turns.interleave(iter(early.singles), until=is_ordered), is_early=True)
            await self._try_compounds_until_ordered()
        ordered = await self._candidates.ordered_candidates(result.spectrum, self._hunks)
        result.suspect_lines = ordered.suspect_lines
        result.operator_failures += ordered.operator_failures
        result.generation_s = result.generation_s or self._clock.now_s()
        self._rivals.set_changes(ordered.singles)
        singles = iter(ordered.singles)
        await self._try(self._turns.interleave(singles))
        while not (result.plausible or self._find_ending()) and self._start_extending(singles_are_over=True):
            await self._turns.wait_until_extended()
            await self._try(self._turns.interleave(singles))
        # The ranking prefers repairs without idle blocks: blocks that a repair guards and that no test runs.
        result.idle_block_counts = await count_idle_blocks(
            result.plausible, result.texts, self._runners[0], self._remaining_s()
        )

    async def _try_compounds_until_ordered(self) -> None:
        """Try compound changes while single changes are still being generated."""
        is_ordered = self._candidates.is_ordered
        while not (is_ordered() or self._find_ending()) and self._start_extending():
            await self._turns.wait_until_extended()
            await self._try(self._turns.interleave(iter(()), until=is_ordered), is_early=True)

    def _start_extending(self, *, singles_are_over: bool = False) -> bool:
        trace_lines = self._runners[0].trace_lines
        return self._turns.start_extending(trace_lines, singles_are_over=singles_are_over)

    def _conclude(self) -> None:
        """Complete the result when the search has ended, or was cut off."""
        result = self.result
        self._has_lost_workers = not any(runner.usable for runner in self._runners)
        if not result.plausible:
            # These fix the failing tests. Whether they break others is left to the verdict.
            result.plausible = [
                proposal for proposal in self._passed if not _adds_dead_code(self._warnings(proposal))
            ]
        result.sort_plausible()
        if self._all_tests is not None and self._all_tests.done():
            result.spectrum = self._all_tests.result()
        result.notes = tuple(dict.fromkeys(note for runner in self._runners for note in runner.notes))

    def _remaining_s(self) -> float:
        return self._clock.remaining_s(has_passed=bool(self._passed))

    def _find_ending(self) -> SearchEnding | None:
        return self._clock.find_ending(has_passed=bool(self._passed))

    async def _try(self, waiting: Iterator[Proposal], *, is_early: bool = False) -> None:
        """Have each process take the likeliest candidate that is left, until the search must end."""
        self._is_exhausted = False
        first, *others = self._runners
        late_workers = (self._work_later(waiting, runner, is_early) for runner in others)
        await run_until_all_end([self._work(waiting, first, is_early), *late_workers])
        if is_early:  # the other changes are still to come, and timed-out candidates are retried only once
            return
        self.result.sort_plausible()
        self.result.sort_partial()
        await self._retry_timed_out(first)

    async def _work_later(self, waiting: Iterator[Proposal], runner: TrialRunner, is_early: bool) -> None:
        """Try candidates in the process that is busy with the baseline run of all tests, once that has ended."""
        while not (runner.can_finish or self._is_exhausted or self._find_ending()):
            await runner.wait_for_spectrum(tuning.POLL_S)
        if runner.can_finish:
            await self._work(waiting, runner, is_early)

    async def _work(self, waiting: Iterator[Proposal], runner: TrialRunner, is_early: bool) -> None:
        """Try one candidate after the other in one process."""
        while runner.usable and not self._find_ending():
            remaining_s = self._remaining_s()
            self._start_extending()
            if self._clock.now_s() > tuning.PATIENT_SHARE * self._limits.max_seconds:
                await self._retry_timed_out(runner)
            is_retry = bool(self._pending) and runner.can_finish
            proposal = self._pending.pop(0) if is_retry else self._rivals.pop() or next(waiting, None)
            if proposal is None:
                # After an early call of `_try`, a later one takes the pending candidates.
                self._is_exhausted = is_early or not self._pending
                if self._is_exhausted or not await runner.wait_for_spectrum(remaining_s):
                    return
                continue
            if not is_retry and not self._is_new(proposal):
                continue
            trial = await runner.run_trial(proposal, remaining_s)
            if trial is not None and trial.is_pending:
                self._passed.append(proposal)
                self._pending.append(proposal)
            else:
                self._passed = [passed for passed in self._passed if passed != proposal]
                self._record(proposal, trial)

    def _is_new(self, proposal: Proposal) -> bool:
        """Return whether no earlier candidate made the same text, and remember the text."""
        text = apply_edits(self.result.texts[proposal.path], proposal.edits)
        key = content_hash([proposal.path, text])
        is_new = key not in self._text_hashes
        self._text_hashes.add(key)
        return is_new

    async def _retry_timed_out(self, runner: TrialRunner) -> None:
        """Try candidates that passed tests until one timed out once more, with longer timeouts."""
        if not self._timed_out or self._has_been_patient or self.result.plausible or self._find_ending():
            return
        self._has_been_patient = True
        self._timed_out.sort(key=lambda pair: (-pair[1].passing, -pair[0].score))
        # Until half of the remaining time is used. Chosen by judgement; not measured.
        end_s = (self._clock.now_s() + self._limits.max_seconds) / 2
        for proposal, _ in self._timed_out[: tuning.MAX_PATIENT_TRIALS]:
            if self._find_ending() or self._clock.now_s() > end_s or not runner.usable:
                return
            trial = await runner.run_trial(proposal, end_s - self._clock.now_s(), tuning.PATIENT_CPU_S)
            self._record(proposal, trial)

    def _record(self, proposal: Proposal, trial: Trial | None) -> None:
        """Add a candidate to the list that its trial calls for."""
        if trial is None:
            return
        self.result.tried_count += 1
        if trial.is_pending:  # a retry for which the time was up; `_work` handles all others
            self._passed.append(proposal)
        elif trial.is_plausible:
            warnings = self._warnings(proposal)
            if _adds_dead_code(warnings):
                return
            self.result.plausible.append(proposal)
            self._rivals.add_repair(proposal, self.result.texts)
            self._clock.record_repair(is_suspicious=bool(warnings))
        elif trial.broken:  # a test fails that is no target
            return
        elif trial.timed_out and trial.passing and not trial.failing:
            self._timed_out.append((proposal, trial))
        else:
            is_partial = self._turns.record(proposal, trial)
            if is_partial and trial.passing:
                self.result.partial.append((proposal, trial))

    def _warnings(self, proposal: Proposal) -> tuple[TamperingWarning, ...]:
        text = self.result.texts[proposal.path]
        return find_tampering_warnings(text, apply_edits(text, proposal.edits), self._literals)


def explain_missing_targets(spectrum: Spectrum) -> SearchEnding:
    """Return why no failing test of the user's run can be used as a target."""
    disagreements = [test for test in spectrum.disagreements if test.run not in ("passed", "skipped")]
    if not disagreements:
        not_run = spectrum.failing_in_suite - {test.id for test in spectrum.tests}
        return "targets_not_reached" if not_run else "no_failing_test"
    pass_alone = all(test.only_in_isolation for test in disagreements)
    return "targets_pass_alone" if pass_alone else "trials_disagree"


def _adds_dead_code(warnings: Sequence[TamperingWarning]) -> bool:
    """Return whether a change removes behaviour by leaving code that never runs. It is no repair."""
    return any(warning.code == "dead_code" for warning in warnings)
