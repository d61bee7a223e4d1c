"""Fakes for tests; they pass the same conformance suites as the real things."""

from __future__ import annotations

from suture.models.scripted import ScriptedModel

__all__ = ["FakeClock", "ScriptedModel"]


class FakeClock:
    """A clock that stands still until told otherwise.

    Args:
        now_s: The time it starts at, in seconds since the epoch.
    """

    def __init__(self, now_s: float = 1_000_000_000.0) -> None:
        self._now_s = now_s

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_s += seconds
