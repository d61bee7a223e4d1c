"""The search for a repair, in any language: mutants of suspicious lines, tried in order of likelihood.

Single changes are tried first. They take turns with compound changes, which extend partial repairs. Once a candidate
passes all tests, its rivals come next. Such a candidate is only *plausible*: `search.ranking` ranks it, and the
trusted suite judges it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

from suture.core.ledger.kinds import SearchEnding
from suture.core.records import content_hash
from suture.judge.signs import TamperingWarning
from suture.judge.trials.command_trials import CandidateRunner
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal, Spectrum, Trial
from suture.judge.trials.trial_runner import run_until_all_end
from suture.mutation import apply_edits
from suture.search import tuning
from suture.search.engine.search_schedule import SearchClock, Turns
from suture.search.languages.language_adapter import LanguageAdapter, TrialSession
from suture.search.languages.tree_adapter import get_adapter
from suture.search.ordering.candidate_order import BaselineCandidates, OrderedCandidates
from suture.search.ordering.compound_changes import CompoundMutations, combine_pairs
from suture.search.ordering.reverts import Hunk
from suture.search.ranking.rivals import RivalQueue, count_idle_blocks
from suture.search.search_records import SearchLimits, SearchProgress, SearchResult, report_progress


async def search_repairs(
    project: FailingProject,
    limits: SearchLimits,
    hunks: Sequence[Hunk] = (),
    session: TrialSession | None = None,
) -> SearchResult:
    """Search for changes with which all tests pass.

    Args:
        limits: The limits of the search.
        hunks: What changed when the tests began to fail: it is reverted first, and suspected most.
        session: Trials that were started for this search; they end with it.

    Raises:
        SandboxError: The sandbox failed.
    """
    adapter = get_adapter(project.language)
    session = session or adapter.open_session(project, limits)
    search = _Search(project, limits, hunks, adapter, session)
    try:
        return await search.run()
    finally:
        await search.close()


class _Search:
    """One search. All runners take candidates from the same queues."""

    def __init__(
        self,
        project: FailingProject,
        limits: SearchLimits,
        hunks: Sequence[Hunk],
        adapter: LanguageAdapter,
        session: TrialSession,
    ) -> None:
        self._limits, self._hunks, self._adapter, self._session = limits, hunks, adapter, session
        self._literals = adapter.collect_literals(project.test_texts())
        self.result = SearchResult(texts=project.texts)
        self._rivals = RivalQueue(adapter.find_location)
        self._clock = SearchClock(limits, self.result, self._rivals)
        self._turns = Turns(self.result, self._clock)
        self._mutations = CompoundMutations(
            project.texts, {}, adapter.generate_mutants, limits.seed, self._remaining_s
        )
        self._candidates: BaselineCandidates
        self._runners: Sequence[CandidateRunner] = ()
        self._all_tests: asyncio.Task[Spectrum] | None = None
        self._text_hashes: set[str] = set()
        # A candidate can pass the failing tests before the baseline run of all tests has ended. Its trial
        # stays unfinished until then: it waits in `_pending` to be tried again, and is in `_passed` until that
        # second trial has ended.
        self._pending: list[Proposal] = []
        self._passed: list[Proposal] = []
        self._unsettled: list[Proposal] = []
        self._timed_out: list[tuple[Proposal, Trial]] = []
        self._single_count = 0
        self._progress = SearchProgress()
        self._has_been_patient = False
        self._is_exhausted = False
        self._is_cut_short = False  # whether the time that is left is too short for another batch

    async def close(self) -> None:
        """End the trials of the search."""
        if self._all_tests is not None:
            self._all_tests.cancel()
            await asyncio.gather(self._all_tests, return_exceptions=True)
        await self._turns.close()
        await self._session.close()

    async def run(self) -> SearchResult:
        """Run the search."""
        result = self.result
        self._candidates = self._session.start()
        result.spectrum = await self._candidates.run_failing_tests()
        result.localisation_s = self._clock.now_s()
        self._all_tests = asyncio.create_task(self._candidates.run_all_tests())
        if not result.spectrum.target_tests:
            result.spectrum = await self._all_tests
        runners = await self._session.start_runners(result.spectrum, self._all_tests)
        ordered_count = await self._search_with(runners) if runners else 0
        fallback = None if result.tried_count else await self._session.start_fallback()
        if fallback is not None:
            self._runners = fallback
            # `SearchLimits.trial_s` begins again, because the lost trials tried no candidate.
            result.generation_s = self._clock.now_s()
            ordered_count = await self._search_with(fallback) if fallback else 0
        result.ending = self._explain_ending(ordered_count)
        result.seconds = self._clock.now_s()
        return result

    async def _search_with(self, runners: Sequence[CandidateRunner]) -> int:
        """Try candidates with some runners; return the number of single changes that were ready."""
        self._runners = runners
        self._text_hashes.clear()
        self._clock.max_rivals = runners[0].max_rivals
        self._turns.compound_after = self._adapter.compound_after
        overrun_s = max(runner.max_overrun_s for runner in runners)
        # The search ends on its own. The timeout is for a process that does not answer.
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._remaining_s() + overrun_s)):
                await self._search()
        self._conclude()
        return self._single_count

    async def _search(self) -> None:
        """Try the early candidates, then all single changes, then compound changes until there are no more."""
        result = self.result
        # Single changes come in two batches: the likeliest of the most suspicious lines while all changes are still
        # being generated, then all of them in their final order.
        early = await self._candidates.early_candidates(self._hunks)
        if early is not None:
            result.generation_s = result.generation_s or self._clock.now_s()
            self._use_candidates(early)
            is_ordered = self._candidates.is_ordered
            await self._try(self._turns.interleave(iter(early.singles), until=is_ordered), is_early=True)
            while not (is_ordered() or self._find_ending()) and self._start_extending():
                await self._turns.wait_until_extended()
                await self._try(self._turns.interleave(iter(()), until=is_ordered), is_early=True)
        ordered = await self._candidates.ordered_candidates(result.spectrum, self._hunks)
        result.operator_failures += ordered.operator_failures
        result.generation_s = result.generation_s or self._clock.now_s()
        self._use_candidates(ordered)
        singles = iter(ordered.singles)
        await self._try(self._turns.interleave(singles))
        # The extension of a start may also have ended just now, after the last candidate was taken.
        while self._continues() and (
            self._start_extending(singles_are_over=True) or self._turns.has_compounds
        ):
            await self._turns.wait_until_extended()
            await self._try(self._turns.interleave(singles))
        if self._adapter.tries_pairs and self._continues():
            await self._try(combine_pairs(ordered.singles))
        result.sort_plausible()
        # The ranking prefers repairs without idle blocks: blocks that a repair guards and that no test runs.
        result.idle_block_counts = await count_idle_blocks(
            result.plausible, result.texts, self._runners[0], self._adapter, self._remaining_s()
        )

    def _use_candidates(self, candidates: OrderedCandidates) -> None:
        self.result.suspect_lines = candidates.suspect_lines
        self._mutations.scores = candidates.line_scores
        self._single_count = len(candidates.singles)
        self._rivals.set_changes(candidates.singles)

    def _continues(self) -> bool:
        """Return whether further changes are worthwhile once the single changes are used up."""
        is_usable = any(runner.usable for runner in self._runners) and not self._is_cut_short
        return is_usable and not self.result.plausible and self._find_ending() is None

    def _start_extending(self, *, singles_are_over: bool = False) -> bool:
        return self._turns.start_extending(
            self._runners[0].trace_lines, self._mutations.extend_start, singles_are_over=singles_are_over
        )

    def _conclude(self) -> None:
        """Complete the result when trials have ended, or were cut off."""
        result = self.result
        if not result.plausible:
            # These fix the failing tests. Whether they break others is left to the verdict.
            result.plausible = [
                proposal for proposal in self._passed if not _adds_dead_code(self._warnings(proposal))
            ]
        result.sort_plausible()
        result.sort_partial()
        result.sort_near_misses()
        if self._all_tests is not None and self._all_tests.done():
            result.spectrum = self._all_tests.result()
        result.notes = tuple(dict.fromkeys(note for runner in self._runners for note in runner.notes))

    def _explain_ending(self, ordered_count: int) -> SearchEnding:
        if not self._runners:
            return self._session.explain_no_runner(self.result.spectrum)
        ending = self._find_ending()
        if ending is not None:
            return ending
        if self._is_cut_short:
            return "likely_changes_tried" if self.result.plausible else "time_over"
        if not any(runner.usable for runner in self._runners):
            return "workers_lost"
        return "nothing_could_be_tried" if ordered_count and not self.result.tried_count else "all_tried"

    def _remaining_s(self) -> float:
        return self._clock.remaining_s(has_passed=bool(self._passed))

    def _find_ending(self) -> SearchEnding | None:
        return self._clock.find_ending(has_passed=bool(self._passed))

    async def _try(self, waiting: Iterator[Proposal], *, is_early: bool = False) -> None:
        """Have each runner take the likeliest candidates that are left, until the search must end."""
        self._is_exhausted = False
        first, *others = self._runners
        late_workers = (self._work_later(waiting, runner, is_early) for runner in others)
        await run_until_all_end([self._work(waiting, first, is_early), *late_workers])
        if is_early:  # the other changes are still to come, and timed-out candidates are retried only once
            return
        self.result.sort_plausible()
        self.result.sort_partial()
        await self._retry_timed_out(first)

    async def _work_later(self, waiting: Iterator[Proposal], runner: CandidateRunner, is_early: bool) -> None:
        """Try candidates in the process that is busy with the baseline run of all tests, once that has ended."""
        while not (runner.can_finish or self._is_exhausted or self._find_ending()):
            await runner.wait_for_spectrum(tuning.POLL_S)
        if runner.can_finish:
            await self._work(waiting, runner, is_early)

    async def _work(self, waiting: Iterator[Proposal], runner: CandidateRunner, is_early: bool) -> None:
        """Try one batch of candidates after the other with one runner."""
        while runner.usable and not self._find_ending():
            self._start_extending()
            if self._clock.now_s() > tuning.PATIENT_SHARE * self._limits.max_seconds:
                await self._retry_timed_out(runner)
            if runner.waits_for_compounds:
                await self._turns.wait_until_extended()
            timeout_s = self._batch_timeout_s(runner)
            if timeout_s <= runner.min_run_s:
                self._is_cut_short = True
                return
            batch = self._take_batch(waiting, runner)
            if not batch:
                # After an early call of `_try`, a later one takes the pending candidates.
                self._is_exhausted = is_early or not self._pending
                if self._is_exhausted or not await runner.wait_for_spectrum(self._remaining_s()):
                    return
                continue
            for proposal, trial in await runner.run_batch(batch, timeout_s):
                self._handle(proposal, trial)

    def _batch_timeout_s(self, runner: CandidateRunner) -> float:
        """Return the time for the next batch; a large one must not outlast the time for rivals of a repair."""
        remaining_s = self._remaining_s()
        return min(remaining_s, self._clock.linger_s()) if runner.waits_for_compounds else remaining_s

    def _take_batch(self, waiting: Iterator[Proposal], runner: CandidateRunner) -> list[Proposal]:
        """Remove and return the next candidates: pending ones, rivals of repairs, then the likeliest."""
        has_repair = self.result.first_repair_s is not None
        size = min(runner.batch_size, runner.max_rivals) if has_repair else runner.batch_size
        size = min(size, self._clock.remaining_candidates())
        if self._unsettled and size:
            return [self._unsettled.pop(0)]
        batch: list[Proposal] = []
        while len(batch) < size:
            if self._pending and runner.can_finish:
                batch.append(self._pending.pop(0))
                continue
            proposal = self._rivals.pop() or next(waiting, None)
            if proposal is None:
                break
            if self._is_new(proposal):
                batch.append(proposal)
                if runner.ends_batch(proposal):
                    break
        return batch

    def _handle(self, proposal: Proposal, trial: Trial | None) -> None:
        if trial is not None and trial.is_unsettled:
            self._unsettled.append(proposal)
            return
        if trial is not None and trial.is_pending:
            if proposal not in self._passed:
                self._passed.append(proposal)
            self._pending.append(proposal)
            return
        self._passed = [passed for passed in self._passed if passed != proposal]
        self._record(proposal, trial)

    def _is_new(self, proposal: Proposal) -> bool:
        """Return whether no earlier candidate had the same source, and remember the source."""
        text = apply_edits(self.result.texts[proposal.path], proposal.edits)
        key = content_hash([proposal.path, text])
        is_new = key not in self._text_hashes
        self._text_hashes.add(key)
        return is_new

    async def _retry_timed_out(self, runner: CandidateRunner) -> None:
        """Retry, with longer timeouts, candidates that passed tests until one timed out."""
        is_over = self._has_been_patient or self.result.plausible or self._find_ending()
        if not self._timed_out or not runner.can_extend_timeouts or is_over:
            return
        self._has_been_patient = True
        self._timed_out.sort(key=lambda pair: (-pair[1].passing, -pair[0].score))
        # Until half of the remaining time is used. Chosen by judgement; not measured.
        end_s = (self._clock.now_s() + self._limits.max_seconds) / 2
        for proposal, _ in self._timed_out[: tuning.MAX_PATIENT_TRIALS]:
            if self._find_ending() or self._clock.now_s() > end_s or not runner.usable:
                return
            timeout_s = end_s - self._clock.now_s()
            for _, trial in await runner.run_batch([proposal], timeout_s, tuning.PATIENT_CPU_S):
                self._record(proposal, trial)

    def _record(self, proposal: Proposal, trial: Trial | None) -> None:
        """Add a candidate to the list that its trial calls for."""
        if trial is None:
            return
        self.result.tried_count += 1
        self._progress = self._progress.after_trial(trial)
        report_progress(self._progress)
        if trial.is_pending:  # a retry for which the time was up; `_handle` handles all others
            self._passed.append(proposal)
        elif trial.is_plausible:
            warnings = self._warnings(proposal)
            if _adds_dead_code(warnings):
                return
            self.result.plausible.append(proposal)
            self._rivals.add_repair(proposal, self.result.texts)
            self._clock.record_repair(is_suspicious=bool(warnings))
        elif trial.broken:  # a test fails that is not a target, or the trial ended early
            fixes_targets = trial.passing and not trial.failing
            breaks_test = trial.broken_test and not trial.timed_out
            if fixes_targets and breaks_test and not _adds_dead_code(self._warnings(proposal)):
                self.result.near_misses.append((proposal, trial))
        elif trial.timed_out and trial.passing and not trial.failing:
            self._timed_out.append((proposal, trial))
        else:
            is_partial = self._turns.record(proposal, trial)
            if is_partial and trial.passing:
                self.result.partial.append((proposal, trial))

    def _warnings(self, proposal: Proposal) -> tuple[TamperingWarning, ...]:
        text = self.result.texts[proposal.path]
        after = apply_edits(text, proposal.edits)
        return self._adapter.find_warnings(proposal.path, text, after, self._literals)


def _adds_dead_code(warnings: Sequence[TamperingWarning]) -> bool:
    """Return whether a change removes behaviour by leaving code that never runs. It is not a repair."""
    return any(warning.code == "dead_code" for warning in warnings)
