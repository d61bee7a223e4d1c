"""The schedule of a search: when it ends, and whether a single or a compound change is tried next."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from itertools import islice

from suture.core.ledger.kinds import SearchEnding
from suture.judge.trials.trial_records import Proposal, TestRun, Trial
from suture.search import tuning
from suture.search.ordering.compound_changes import CompoundQueue, LineTracer, StartExtender
from suture.search.ranking.rivals import RivalQueue
from suture.search.search_records import SearchLimits, SearchResult


class SearchClock:
    """Decides when one search ends.

    It ends when its time is over, when enough repairs are found, or when their rivals have been tried.

    Args:
        rivals: Changes at the places of the repairs found, which are to be compared with them.
        max_rivals: Candidates that are tried after the first plausible repair, if they are quick to try.
    """

    def __init__(
        self,
        limits: SearchLimits,
        result: SearchResult,
        rivals: RivalQueue,
        max_rivals: int = tuning.MIN_RIVALS,
    ) -> None:
        self._limits, self._result, self._rivals = limits, result, rivals
        self.max_rivals = max_rivals
        self._began_s = time.monotonic()
        self._first_repair_rank = 0
        self._first_suspicious_s: float | None = None

    def now_s(self) -> float:
        """Return the seconds since the search began."""
        return time.monotonic() - self._began_s

    def remaining_s(self, has_passed: bool) -> float:
        """Return the seconds that are left.

        Args:
            has_passed: Whether a candidate has passed the failing tests and has yet to run the others. Like a
                repair, it ends the use of `SearchLimits.reserve_s` and the limit `trial_s`.
        """
        return self._end_s(has_passed) - self.now_s()

    def _end_s(self, has_passed: bool) -> float:
        return self._limits.end_s(has_repair=True) if has_passed else self._result.end_s(self._limits)

    def linger_s(self) -> float:
        """Return the seconds that are left for rivals of the first plausible repair; infinite without one."""
        first_repair_s = self._result.first_repair_s
        if first_repair_s is None:
            return math.inf
        linger_s = max(tuning.MIN_LINGER_S, tuning.LINGER_SHARE * self._trial_s(first_repair_s))
        return linger_s - (self.now_s() - first_repair_s)

    def _trial_s(self, first_repair_s: float) -> float:
        return first_repair_s - self._result.generation_s

    def remaining_candidates(self) -> int:
        """Return how many candidates may still be tried."""
        return max(0, self._limits.max_candidates - self._result.tried_count)

    def record_repair(self, *, is_suspicious: bool) -> None:
        """Record that a plausible repair was found.

        Args:
            is_suspicious: Whether the repair has tampering warnings. Then the search continues for longer.
        """
        if self._result.first_repair_s is None and not is_suspicious:
            self._result.first_repair_s, self._first_repair_rank = self.now_s(), self._result.tried_count
        if self._first_suspicious_s is None:
            self._first_suspicious_s = self.now_s()

    def find_ending(self, has_passed: bool) -> SearchEnding | None:
        """Return why the search must end now; `None` if it continues.

        Args:
            has_passed: As for `remaining_s`.
        """
        now_s, result, limits = self.now_s(), self._result, self._limits
        if len(result.plausible) >= limits.max_repairs:
            return "enough_repairs"
        if result.first_repair_s is not None and self._has_lingered(result.first_repair_s, now_s):
            return "likely_changes_tried"
        if self._first_suspicious_s is not None:
            # A repair without warnings gets at least as much time as this one needed. Chosen by judgement;
            # not measured.
            patience_s = 2 * self._first_suspicious_s + tuning.MIN_LINGER_S
            if now_s > max(patience_s, tuning.SUSPICIOUS_SHARE * limits.max_seconds):
                return "likely_changes_tried"
        if now_s >= self._end_s(has_passed):
            return "time_over"
        return None if self.remaining_candidates() else "candidate_limit"

    def _has_lingered(self, first_repair_s: float, now_s: float) -> bool:
        """Return whether there was enough time for rivals of the first plausible repair.

        It ends after `LINGER_SHARE` of the trial time until the repair was found, and `max_rivals` further candidates:
        a repair that ranked high is believed soon. Where trials are so slow that these would take too long, it ends
        after `LINGER_SHARE` of the whole time until the repair was found, or `MIN_LINGER_S`.
        """
        since_s = now_s - first_repair_s
        if self._rivals.has_waiting and since_s < tuning.MAX_RIVALS_S:
            return False
        if self._result.tried_count >= self._first_repair_rank + self.max_rivals:
            return since_s >= tuning.LINGER_SHARE * self._trial_s(first_repair_s)
        return since_s > max(tuning.MIN_LINGER_S, tuning.LINGER_SHARE * first_repair_s)


class Turns:
    """Interleaves single changes and compound changes of one search.

    Args:
        compound_after: Tried candidates after which partial repairs are extended even if none is promising.
    """

    def __init__(
        self, result: SearchResult, clock: SearchClock, compound_after: int = tuning.COMPOUND_AFTER
    ) -> None:
        self._result, self._clock, self.compound_after = result, clock, compound_after
        self._compounds = CompoundQueue()
        self._extending: asyncio.Task[None] | None = None
        self._baseline_runs: dict[str, TestRun] = {}

    async def close(self) -> None:
        """Cancel the generation of compound changes."""
        if self._extending is not None:
            self._extending.cancel()
            await asyncio.gather(self._extending, return_exceptions=True)

    def interleave(
        self, singles: Iterator[Proposal], until: Callable[[], bool] = lambda: False
    ) -> Iterator[Proposal]:
        """Yield single and compound changes in turns until both run out.

        Args:
            until: Once the single changes run out, whether waiting compound changes may be postponed, because more
                single changes are ready.
        """
        is_over = False
        while not is_over:
            compound = self._compounds.pop()
            if compound is not None:
                yield compound
            batch = list(islice(singles, 1 if self._is_late() else tuning.SINGLES_PER_COMPOUND))
            yield from batch
            is_over = not batch and (compound is None or until())

    @property
    def has_compounds(self) -> bool:
        """Whether compound changes wait to be tried."""
        return self._compounds.has_waiting

    def _is_late(self) -> bool:
        """Return whether compound changes are due as often as single changes."""
        return self._result.tried_count >= tuning.COMPOUND_AFTER

    def start_extending(
        self, trace_lines: LineTracer, extend_start: StartExtender, *, singles_are_over: bool = False
    ) -> bool:
        """Start to generate compound changes in the background; return whether they are being generated.

        Args:
            singles_are_over: Whether single changes have run out, so that there is nothing to wait for.
        """
        result = self._result
        if self._extending is not None:
            if not self._extending.done():
                return True
            self._extending.result()  # raises the exception of a task that failed
        is_time = (
            singles_are_over
            or result.tried_count >= self.compound_after
            or self._compounds.has_promising_start()
        )
        if result.plausible or not is_time or not self._compounds.is_due(result.tried_count):
            return False
        extending = self._compounds.extend(
            result.spectrum,
            result.texts,
            trace_lines,
            extend_start,
            limit=self._clock.remaining_candidates(),
        )
        self._extending = asyncio.create_task(extending)
        return True

    async def wait_until_extended(self) -> None:
        """Wait until the compound changes that `start_extending` generates, if any, are ready."""
        if self._extending is not None:
            await self._extending

    def record(self, proposal: Proposal, trial: Trial) -> bool:
        """Keep a candidate that still fails if it made progress, so that it will be extended; return whether it did."""
        if not self._baseline_runs:
            self._baseline_runs = {test.id: test for test in self._result.spectrum.tests}
        return self._compounds.record(proposal, trial, self._baseline_runs, self._result.tried_count)
