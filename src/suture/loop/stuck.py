"""Is the run going in circles? A pure function of what was tried."""

from __future__ import annotations

from collections.abc import Sequence

from suture.loop.progress import Tried

__all__ = ["SAME_FAILURE_ROUNDS", "barren_rounds", "same_failure_rounds"]

SAME_FAILURE_ROUNDS = 4
"""Rounds with the very same failure, and nothing gained, after which a run is stuck."""


def barren_rounds(tried: Sequence[Tried], rounds: int) -> int:
    """How many of the last rounds brought no candidate that had not been seen before.

    Args:
        tried: Candidates in the order of proposal; a repeated one stands there once, under its first round.
        rounds: Rounds that have ended.
    """
    last = max((t.round for t in tried), default=-1)
    return rounds - 1 - last


def same_failure_rounds(tried: Sequence[Tried], rounds: int) -> int:
    """How many rounds in a row, up to the last, gained nothing and failed only in ways seen before."""
    count = 0
    for number in range(rounds - 1, 0, -1):
        now = [t for t in tried if t.round == number]
        before = [t for t in tried if t.round < number]
        known = {t.signature for t in before}
        gained = max((t.passed for t in now), default=0) > max((t.passed for t in before), default=0)
        if gained or any(t.signature not in known for t in now):
            break
        count += 1
    return count
