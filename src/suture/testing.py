"""Public fakes for tests. They pass the same conformance suites as the real implementations."""

from __future__ import annotations

from suture.models.scripted_model import ScriptedModel

__all__ = ["FakeClock", "ScriptedModel"]


class FakeClock:
    """A clock that only moves when it is told to.

    Args:
        now_s: The initial time, in seconds since the epoch.
    """

    def __init__(self, now_s: float = 1_000_000_000.0) -> None:
        self._now_s = now_s

    def now(self) -> float:
        """Return the current time, in seconds since the epoch."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move the clock forward by a number of seconds."""
        self._now_s += seconds
