"""Which operators mended errors like this one: a prior on the order in which a search tries its changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

MOST, LEAST = 4.0, 0.8
"""What a factor is held within: memories order a search, and take nothing out of it."""
STRENGTH = 6.0
"""Mends that the equal start counts as: a few memories move the order a little."""
OPERATORS = 40
"""About how many operators there are; before anything is known each is as likely."""


def operator_factors(mended: Iterable[tuple[tuple[str, ...], float]]) -> Mapping[str, float]:
    """Operator -> how much likelier its changes are taken for; those never seen are not in it.

    The shares are those of a Dirichlet distribution over the operators with an even start, divided by the
    even share.

    Args:
        mended: Operators that mended a failure like this, and how like it was, in [0, 1].
    """
    weights: Counter[str] = Counter()
    for operators, weight in mended:
        for operator in operators:
            weights[operator] += weight / len(operators)  # type: ignore[assignment]  # a Counter of floats
    total = sum(weights.values())
    if not total:
        return {}
    even = 1 / OPERATORS
    return {
        operator: round(min(MOST, max(LEAST, (weight + STRENGTH * even) / (total + STRENGTH) / even)), 3)
        for operator, weight in sorted(weights.items())
    }
