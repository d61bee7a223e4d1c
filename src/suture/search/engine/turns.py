"""Whose turn it is in a search: a single change, the likeliest first, or one that goes on from a part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from suture.judge.trials.trial_records import Proposal, TestRun, Trial
from suture.search.engine.search_clock import SearchClock
from suture.search.search_limits import SearchLimits
from suture.search.ordering.compound_queue import CompoundQueue, Look
from suture.search.search_result import SearchResult

CHAINED_SHARE = 0.3
"""Of the seconds: when they are over, each second candidate goes on from a change that did a part."""
FIRST_SINGLES = 2
"""Before that, single changes for each that goes on from one with which most of the failing tests pass."""


class Turns:
    """The two kinds of candidates of one search, in turns.

    Args:
        limits: What the search may use.
        found: What it has found up to now.
        ending: When it ends.
    """

    def __init__(self, limits: SearchLimits, found: SearchResult, ending: SearchClock) -> None:
        self._limits, self._found, self._ending = limits, found, ending
        self._chains = CompoundQueue()
        self._making: asyncio.Task[None] | None = None
        self._before: dict[str, TestRun] = {}

    async def close(self) -> None:
        """End what is still being made."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)

    def over(
        self, waiting: Iterator[Proposal], until: Callable[[], bool] = lambda: False
    ) -> Iterator[Proposal]:
        """Single changes, and such as go on from others, in turns until both are out.

        Args:
            waiting: Single changes.
            until: Where those are out, whether others are there, for which what goes on may wait.
        """
        is_out = False
        while not is_out:
            longer = self._chains.pop()
            if longer is not None:
                yield longer
            singles = list(islice(waiting, 1 if self._is_late() else FIRST_SINGLES))
            yield from singles
            is_out = not singles and (longer is None or until())

    def _is_late(self) -> bool:
        return self._ending.now_s() > CHAINED_SHARE * self._limits.max_seconds

    def begin_longer(self, look: Look, *, anyhow: bool = False) -> bool:
        """Make candidates that go on from what did a part, while others are tried; whether they are made.

        Args:
            look: Tells the lines that failing tests run with a change.
            anyhow: Whether single changes are out, so that these need not wait for their time.
        """
        found = self._found
        if self._making is not None:
            if not self._making.done():
                return True
            self._making.result()
        is_time = anyhow or self._is_late() or self._chains.is_near()
        if found.plausible or not is_time or not self._chains.is_due(found.tried_count):
            return False
        seed, most = self._limits.seed, self._ending.left()
        making = self._chains.extend(found.spectrum, found.texts, look, seed=seed, most=most)
        self._making = asyncio.create_task(making)
        return True

    async def longer_made(self) -> None:
        """Wait for what `begin_longer` has begun."""
        assert self._making is not None
        await self._making

    def note(self, proposal: Proposal, trial: Trial) -> bool:
        """Whether a candidate that still fails did a part, so that others go on from it."""
        return self._chains.note(proposal, trial, self._runs_before(), self._found.tried_count)

    def _runs_before(self) -> Mapping[str, TestRun]:
        """Test -> what it did on the code as it is."""
        if not self._before:
            self._before = {test.id: test for test in self._found.spectrum.tests}
        return self._before
