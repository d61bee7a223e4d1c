"""Calibration: how well confidences agree with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

BINS = 10
"""As in the literature, so that values of the ECE can be compared."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Answers of similar confidence: their number, mean confidence, and share of right ones."""

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How well the confidences of some answers agree with the truth.

    Attributes:
        brier: Mean squared error of the confidence; 0 is perfect, 0.25 results from always saying 0.5.
        ece: Expected calibration error: the mean gap of confidence and accuracy over the bins.
        bins: The bins that have an answer, the least confident first.
        selective: (coverage, accuracy) as the least confident answers are dropped one after the other,
            equally confident ones together.
    """

    brier: float
    ece: float
    bins: tuple[Bin, ...]
    selective: tuple[tuple[float, float], ...]


def compute_calibration(answers: Sequence[tuple[float, bool]]) -> Calibration:
    """Compare confidences with the truth, given (confidence in [0, 1], whether it was right) of each answer."""
    if not answers or not all(0 <= confidence <= 1 for confidence, _ in answers):
        raise ValueError("at least one confidence in [0, 1] is needed")
    total = len(answers)
    answers_by_bin: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in answers:
        answers_by_bin[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    bins = tuple(
        Bin(
            count=len(members),
            confidence=mean(confidence for confidence, _ in members),
            accuracy=mean(right for _, right in members),
        )
        for members in answers_by_bin
        if members
    )
    most_confident = sorted(answers, key=lambda answer: -answer[0])
    return Calibration(
        brier=mean((confidence - right) ** 2 for confidence, right in answers),
        ece=sum(bin_.count * abs(bin_.confidence - bin_.accuracy) for bin_ in bins) / total,
        bins=bins,
        selective=tuple(
            (count / total, mean(right for _, right in most_confident[:count]))
            for count in range(total, 0, -1)
            if count == total or most_confident[count][0] < most_confident[count - 1][0]
        ),
    )
