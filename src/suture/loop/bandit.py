"""Thompson sampling over what to mend next, in the manner of REx (Tang et al., 2024, arXiv 2405.17503).

Every candidate is an arm, and so is writing afresh. A draw comes from Beta(1 + C h, 1 + C (1 - h) + n): h is
the share of the deciding checks that the candidate passes (0 for writing afresh), n how often it was mended
before. What earlier runs with the same model saw is added to the counts. The draw is seeded, so the same
progress always draws the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from suture.loop.progress import Progress, Tried

__all__ = ["WEIGHT_OF_SCORE", "draw_parent"]

WEIGHT_OF_SCORE = 20
"""C: how much a candidate's score counts beside the number of times it was mended; the paper's own value."""
MOST_REMEMBERED = 10
"""How many earlier tries of a move count at most, so that what happens in this run soon outweighs them."""


def draw_parent(progress: Progress) -> Tried | None:
    """The candidate to mend next, or `None` for writing afresh."""
    random = Random(f"{progress.seed}:{progress.round}")
    arms: list[tuple[float, Tried | None]] = [
        (_draw(random, 0.0, _fresh_starts(progress), "sample", progress), None)
    ]
    for one in _distinct(progress):
        mended = sum(other.parent == one.candidate for other in progress.tried)
        arms.append((_draw(random, _score(one), mended, "repair", progress), one))
    return max(arms, key=lambda arm: arm[0])[1]


def _draw(random: Random, score: float, tries: int, kind: str, progress: Progress) -> float:
    solved, failed = _remembered(progress.record, kind)
    return random.betavariate(
        1 + WEIGHT_OF_SCORE * score + solved, 1 + WEIGHT_OF_SCORE * (1 - score) + tries + failed
    )


def _remembered(record: Mapping[str, tuple[int, int]], kind: str) -> tuple[float, float]:
    """Earlier successes and failures of a kind of move, as many as count."""
    solved, tried = record.get(kind, (0, 0))
    share = min(tried, MOST_REMEMBERED) / tried if tried else 0.0
    return share * solved, share * (tried - solved)


def _score(one: Tried) -> float:
    total = one.passed + one.failed
    return 0.0 if one.regressed or not total else one.passed / total


def _fresh_starts(progress: Progress) -> int:
    return sum(one.depth == 0 and one.origin != "user" for one in progress.tried)


def _distinct(progress: Progress) -> tuple[Tried, ...]:
    """Candidates that may be mended, the same code once."""
    found: dict[str, Tried] = {}
    for one in progress.tried:
        if one.origin != "user" and not one.rejected and not one.solved:
            found.setdefault(one.fingerprint or one.candidate, one)
    return tuple(found.values())
