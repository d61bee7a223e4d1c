"""How far a confidence can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

BINS = 10
"""As papers have it, so that an ECE can be held against theirs."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Answers of about the same confidence: how many, their mean confidence, the share that was right."""

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What a set of answers says of their confidences.

    Attributes:
        brier: Mean squared error of the confidence; 0 is perfect, 0.25 is what always saying 0.5 gives.
        ece: Expected calibration error: the mean gap of confidence and accuracy over the bins.
        bins: The bins that hold an answer, from the least confident.
        selective: `(coverage, accuracy)` as the least confident answers are left out one after the other,
            equally confident ones together.
    """

    brier: float
    ece: float
    bins: tuple[Bin, ...]
    selective: tuple[tuple[float, float], ...]


def compute_calibration(answers: Sequence[tuple[float, bool]]) -> Calibration:
    """Hold confidences against the truth.

    Args:
        answers: Of each answer its confidence in [0, 1], and whether it was right.

    Raises:
        ValueError: There are no answers, or a confidence is not in [0, 1].
    """
    if not answers or not all(0 <= confidence <= 1 for confidence, _ in answers):
        raise ValueError("confidences in [0, 1] are needed, at least one")
    total = len(answers)
    fill_placeholders: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in answers:
        fill_placeholders[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    bins = tuple(
        Bin(count=len(b), confidence=mean(c for c, _ in b), accuracy=mean(r for _, r in b))
        for b in fill_placeholders
        if b
    )
    surest = sorted(answers, key=lambda answer: -answer[0])
    return Calibration(
        brier=mean((confidence - right) ** 2 for confidence, right in answers),
        ece=sum(b.count * abs(b.confidence - b.accuracy) for b in bins) / total,
        bins=bins,
        selective=tuple(
            (kept / total, mean(right for _, right in surest[:kept]))
            for kept in range(total, 0, -1)
            if kept == total or surest[kept][0] < surest[kept - 1][0]
        ),
    )
