"""The search for a repair: mutants of suspicious lines, tried in the order of how likely they are.

A pass over single changes; then, in turns with them, changes that go on from those that did a part. What
comes through is plausible and no more: it is ranked elsewhere, and judged by the trusted suite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from suture.core.records import content_hash
from suture.judge.runners.test_command import TestCommand
from suture.judge.tampering import DEAD, literals_of, warnings_about
from suture.judge.trials.call_comparison import unguided
from suture.judge.trials.trial_records import Proposal, Spectrum, Trial
from suture.judge.trials.trial_runner import Bench, all_of
from suture.mutation.edits import apply_edits
from suture.search.engine.search_clock import SearchClock
from suture.search.search_limits import SearchLimits
from suture.search.ordering.reverts import Hunk
from suture.search.ranking.rivals import RivalQueue, count_idle_blocks
from suture.search.search_result import SearchResult
from suture.search.engine.trial_pool import BaselineCandidates, TrialPool
from suture.search.engine.turns import Turns

NONE_READY = "the tests could not be kept ready for trials in the time there was"
TICK_S = 0.1
"""Seconds between two looks at whether a process has run all tests; what it waits for takes tenths itself."""
GRACE_S = 1.0
"""Seconds after the search's own in which a trial that is being cut off may end."""
SPARE_S = 60.0
"""Seconds that the processes outlive the search's: to end is the search's own part."""
PATIENT_S = 8.0
"""CPU seconds of a test, for a candidate that did well until it was late."""
MOST_PATIENT = 6
"""Such candidates."""
PATIENT_SHARE = 0.3
"""Of the seconds: when they are over, such candidates are tried again, even if others wait."""


async def search_python(
    command: TestCommand,
    texts: Mapping[str, str],
    failing: Iterable[str],
    limits: SearchLimits,
    tests: Iterable[str] = (),
    hunks: Sequence[Hunk] = (),
    baseline: Mapping[str, str] | None = None,
    ready: TrialPool | None = None,
) -> SearchResult:
    """Search for changes with which all tests pass.

    Args:
        command: The project's pytest command, collected.
        texts: Path -> text of the files that may be changed.
        failing: Ids of the tests that fail.
        limits: What it may use.
        tests: Sources of the tests: a repair that names their literals does not end the search.
        hunks: What changed when the tests began to fail: it is taken back first, and suspected most.
        baseline: Test -> its status in the user's run of the unchanged code: what trials are held against.
        ready: Processes that were made ready for this search; they end with it.

    Raises:
        SandboxError: The wall failed.
    """
    began = PythonSearch(command, texts, limits, literals_of(tests), hunks, ready)
    try:
        return await began.run(frozenset(failing), baseline)
    finally:
        await began.close()


class PythonSearch:
    """One search."""

    def __init__(
        self,
        command: TestCommand,
        texts: Mapping[str, str],
        limits: SearchLimits,
        literals: frozenset[str],
        hunks: Sequence[Hunk] = (),
        ready: TrialPool | None = None,
    ) -> None:
        self._hunks = hunks
        self._literals = literals
        self._limits = limits
        self._slow: list[tuple[Proposal, Trial]] = []
        self._rivals = RivalQueue()
        self._was_patient = False
        self._seen: set[str] = set()
        self._held: list[Proposal] = []
        self._passed: list[Proposal] = []
        self._are_tried = False
        self._command = command
        self._looked: BaselineCandidates
        self._benches: list[Bench] = []
        self._is_lost = False
        self._all: asyncio.Task[Spectrum] | None = None
        self._ready = ready or TrialPool(command, limits.max_seconds + limits.reserve_s + SPARE_S)
        self.found = SearchResult(texts=texts)
        self._ending = SearchClock(limits, self.found, self._rivals)
        self._turns = Turns(limits, self.found, self._ending)

    async def close(self) -> None:
        """End its processes."""
        if self._all is not None:
            self._all.cancel()
            await asyncio.gather(self._all, return_exceptions=True)
        await self._turns.close()
        await self._ready.close()

    async def run(self, failing: frozenset[str], baseline: Mapping[str, str] | None = None) -> SearchResult:
        """Locate, then try single changes, then pairs, then what was late, while there is time."""
        found, limits = self.found, self._limits
        self._looked = looked = self._ready.start_baseline(self._command, found.texts, failing, baseline, limits)
        found.spectrum = await looked.first()
        found.localisation_s = self._now_s()
        self._all = asyncio.create_task(looked.whole())
        if not found.spectrum.guiding:
            found.spectrum = await self._all
        if not found.spectrum.guiding:
            found.ending = unguided(found.spectrum)
        else:
            with suppress(TimeoutError):  # whatever a process does, the time is up then
                async with asyncio.timeout(max(0.0, self._end_s() + GRACE_S - self._now_s())):
                    await self._search()
            self._conclude()
            found.ending = self._reason() or (NONE_READY if self._is_lost else "everything was tried")
        found.seconds = self._now_s()
        return found

    async def _search(self) -> None:
        found = self.found
        assert self._all is not None
        workers, coming = self._ready.workers, self._all
        self._benches = benches = [Bench(worker, found.spectrum, found.texts, coming) for worker in workers]
        early = await self._looked.early(self._hunks)
        if early is not None:
            found.suspect_lines, found.generation_s = early.faults, self._now_s()
            self._rivals.know(early.singles)
            waiting = self._turns.over(iter(early.singles), until=self._looked.is_ordered)
            await self._try(waiting, benches, is_early=True)
            await self._go_on_until_ordered()
        ordered = await self._looked.ordered(found.spectrum, self._hunks)
        found.suspect_lines = ordered.faults
        found.operator_failures += ordered.broken
        found.generation_s = found.generation_s or self._now_s()
        self._rivals.know(ordered.singles)
        waiting = iter(ordered.singles)
        await self._try(self._turns.over(waiting), benches)
        while not (found.plausible or self._reason()) and self._begin_longer(anyhow=True):
            await self._turns.longer_made()
            await self._try(self._turns.over(waiting), benches)
        left_s = self._end_s() - self._now_s()
        found.idle_block_counts = await count_idle_blocks(found.plausible, found.texts, benches[0], left_s)

    async def _go_on_until_ordered(self) -> None:
        """Try what goes on from others while single changes are still being made."""
        is_ordered = self._looked.is_ordered
        while not (is_ordered() or self._reason()) and self._begin_longer():
            await self._turns.longer_made()
            waiting = self._turns.over(iter(()), until=is_ordered)
            await self._try(waiting, self._benches, is_early=True)

    def _begin_longer(self, *, anyhow: bool = False) -> bool:
        return self._turns.begin_longer(self._benches[0].lines_with, anyhow=anyhow)

    def _conclude(self) -> None:
        """What is known when the search has ended, or was ended."""
        found, benches = self.found, self._benches
        self._is_lost = not any(bench.usable for bench in benches)
        if not found.plausible:  # what mended the failing tests is the verdict's to judge
            found.plausible = [proposal for proposal in self._passed if DEAD not in self._warnings(proposal)]
        found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
        if self._all is not None and self._all.done():
            found.spectrum = self._all.result()
        found.notes = tuple(dict.fromkeys(note for bench in benches for note in bench.notes))

    def _now_s(self) -> float:
        return self._ending.now_s()

    def _end_s(self) -> float:
        return self._ending.end_s(bool(self._passed))

    def _reason(self) -> str:
        return self._ending.reason(bool(self._passed))

    async def _try(
        self, waiting: Iterator[Proposal], benches: Sequence[Bench], *, is_early: bool = False
    ) -> None:
        """Each process takes the likeliest that is left, until there is a reason to end."""
        self._are_tried = False
        first, *others = benches
        joining = (self._join(waiting, bench, is_early) for bench in others)
        await all_of([self._take(waiting, first, is_early), *joining])
        if is_early:
            return
        self.found.plausible.sort(key=lambda proposal: -round(proposal.score, 6))
        self.found.partial.sort(key=lambda pair: (-pair[1].passing, pair[1].failing, -pair[0].score))
        await self._try_slow(benches[0])

    async def _join(self, waiting: Iterator[Proposal], bench: Bench, is_early: bool) -> None:
        """As `_take`, in the process that runs all tests on the unchanged code first."""
        while not (bench.can_finish or self._are_tried or self._reason()):
            await bench.knows_all(TICK_S)
        if bench.can_finish:
            await self._take(waiting, bench, is_early)

    async def _take(self, waiting: Iterator[Proposal], bench: Bench, is_early: bool) -> None:
        while bench.usable and not self._reason():
            left_s = self._end_s() - self._now_s()
            self._begin_longer()
            if self._now_s() > PATIENT_SHARE * self._limits.max_seconds:
                await self._try_slow(bench)
            again = bool(self._held) and bench.can_finish
            proposal = self._held.pop(0) if again else self._next(waiting)
            if proposal is None:
                self._are_tried = is_early or not self._held
                if self._are_tried or not await bench.knows_all(left_s):
                    return
                continue
            if not again and not self._is_new(proposal):
                continue
            trial = await bench.trial(proposal, left_s)
            if trial is not None and trial.held:
                self._passed.append(proposal)
                self._held.append(proposal)
            else:
                self._passed = [other for other in self._passed if other != proposal]
                self._note(proposal, trial)

    def _next(self, waiting: Iterator[Proposal]) -> Proposal | None:
        """A rival of what was found, or the likeliest that is left."""
        return self._rivals.pop() or next(waiting, None)

    def _is_new(self, proposal: Proposal) -> bool:
        """Two operators may make the same text."""
        text = apply_edits(self.found.texts[proposal.path], proposal.edits)
        key = content_hash([proposal.path, text])
        fresh = key not in self._seen
        self._seen.add(key)
        return fresh

    async def _try_slow(self, bench: Bench) -> None:
        """Candidates that passed what they came to, once more and with patience."""
        if not self._slow or self._was_patient or self.found.plausible or self._reason():
            return
        self._was_patient = True
        self._slow.sort(key=lambda pair: (-pair[1].passing, -pair[0].score))
        end_s = (self._now_s() + self._limits.max_seconds) / 2
        for proposal, _ in self._slow[:MOST_PATIENT]:
            if self._reason() or self._now_s() > end_s or not bench.usable:
                return
            self._note(proposal, await bench.trial(proposal, end_s - self._now_s(), PATIENT_S))

    def _note(self, proposal: Proposal, trial: Trial | None) -> None:
        if trial is None:
            return
        self.found.tried_count += 1
        if trial.held:
            self._passed.append(proposal)
        elif trial.plausible:
            warnings = self._warnings(proposal)
            if DEAD in warnings:
                return
            self.found.plausible.append(proposal)
            self._rivals.note(proposal, self.found.texts)
            self._ending.note(is_suspicious=bool(warnings))
        elif trial.broken:
            return
        elif trial.late and trial.passing and not trial.failing:
            self._slow.append((proposal, trial))
        elif self._turns.note(proposal, trial) and trial.passing:
            self.found.partial.append((proposal, trial))

    def _warnings(self, proposal: Proposal) -> tuple[str, ...]:
        text = self.found.texts[proposal.path]
        return warnings_about(text, apply_edits(text, proposal.edits), self._literals)
