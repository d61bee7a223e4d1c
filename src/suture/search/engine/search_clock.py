"""When a search ends: with its time, with enough repairs, or once the rivals of what it found were tried."""

from __future__ import annotations

import time

from suture.search.search_limits import SearchLimits
from suture.search.ranking.rivals import RivalQueue
from suture.search.search_result import SearchResult

LINGER = 0.5
"""After the first plausible repair the search goes on, to compare, for this part of what trying took."""
LEAST_LINGER_S = 1.5
"""However soon the first repair was found."""
MOST_RIVALS_S = 3.0
"""Seconds after the first plausible repair, in which changes of its place are tried while there are any."""
LEAST_RIVALS = 100
"""Changes that are tried after the first plausible one, unless they take longer than `LINGER` allows."""
RECOMMENDED_SHARE = 0.5
"""Of the seconds, after which a repair that something is suspicious about ends the search too."""


class SearchClock:
    """The clock of one search, and what it says.

    Args:
        limits: What the search may use.
        found: What it found up to now.
        rivals: Changes that are to be compared with that.
    """

    def __init__(self, limits: SearchLimits, found: SearchResult, rivals: RivalQueue) -> None:
        self._limits, self._found, self._rivals = limits, found, rivals
        self._began_s = time.monotonic()
        self._first_rank = 0
        self._warned_s: float | None = None

    def now_s(self) -> float:
        """Seconds of the search."""
        return time.monotonic() - self._began_s

    def end_s(self, has_passed: bool) -> float:
        """What is kept for the proof of a repair is the search's while there is none.

        Args:
            has_passed: Whether a candidate passed the failing tests, and waits for the others.
        """
        is_found = self._found.plausible or has_passed
        return self._limits.max_seconds + (0.0 if is_found else self._limits.reserve_s)

    def left(self) -> int:
        """Candidates that may still be tried."""
        return max(0, self._limits.max_candidates - self._found.tried_count)

    def note(self, *, is_suspicious: bool) -> None:
        """A plausible repair was found."""
        if self._found.first_repair_s is None and not is_suspicious:
            self._found.first_repair_s, self._first_rank = self.now_s(), self._found.tried_count
        if self._warned_s is None:
            self._warned_s = self.now_s()

    def reason(self, has_passed: bool) -> str:
        """Why the search has to end, where it has to.

        Args:
            has_passed: As for `end_s`.
        """
        now_s, found, limits = self.now_s(), self._found, self._limits
        if len(found.plausible) >= limits.max_repairs:
            return f"{len(found.plausible)} plausible repairs are enough"
        if found.first_repair_s is not None and self._lingered(now_s - found.first_repair_s, found.first_repair_s):
            return "the likeliest changes were tried"
        if self._warned_s is not None and now_s > max(
            2 * self._warned_s + LEAST_LINGER_S, RECOMMENDED_SHARE * limits.max_seconds
        ):
            return "the likeliest changes were tried"
        if now_s >= self.end_s(has_passed):
            return f"{self.end_s(has_passed):g} s are over"
        return "" if self.left() else f"{limits.max_candidates} candidates were tried"

    def _lingered(self, since_s: float, first_s: float) -> bool:
        """Whether there was time enough for rivals of the first plausible repair.

        One that stood high is believed after a short look: half of what trying took until then, and the next
        few changes. Where trials are slow, half of all the time until then is the most.
        """
        if since_s < max(LEAST_LINGER_S, LINGER * (first_s - self._found.generation_s)):
            return False
        if self._rivals.waiting and since_s < MOST_RIVALS_S:
            return False
        return self._found.tried_count >= self._first_rank + LEAST_RIVALS or since_s > LINGER * first_s
